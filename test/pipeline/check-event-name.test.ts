import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { checkEventName } from '../../lambdas/pipeline/check-event-name.ts';

describe('an event that an automation names', () => {
  it.each([
    ['github', 'issues'],
    ['github', 'issues.opened'],
    ['github', 'pull_request.closed'],
    ['github', 'push'],
    ['github', 'repository_dispatch.any-name'],
    ['servicenow', 'incident'],
    ['servicenow', 'incident.insert'],
    ['servicenow', 'u_request_2.delete'],
  ] as const)('of %s may be %s', (source, event) => {
    expect(checkEventName({ source, event })).toBeUndefined();
  });

  it.each([
    ['github', 'issues.open', 'opened'],
    ['github', 'issues.', 'opened'],
    ['github', 'milestone.open', 'opened'],
    ['github', 'issue.opened', '"issue" is not a GitHub event'],
    ['github', 'incident.insert', '"incident" is not a GitHub event'],
    ['github', 'push.', 'push has no actions'],
    ['github', 'repository_dispatch.', 'is not a GitHub event'],
    ['github', '', 'is not a GitHub event'],
    ['github', 'constructor', 'is not a GitHub event'],
    ['servicenow', 'issues.opened', 'insert, update, delete'],
    ['servicenow', 'incident.created', 'insert, update, delete'],
    ['servicenow', 'Incident.insert', 'insert, update, delete'],
    ['servicenow', '', 'insert, update, delete'],
  ] as const)('of %s is not %s, and the error lists the valid ones', (source, event, message) => {
    expect(checkEventName({ source, event })).toContain(message);
  });

  it('may be any event in GitHub’s published examples', () => {
    const path = createRequire(import.meta.url).resolve('@octokit/webhooks-examples/api.github.com/index.json');
    const published = (
      JSON.parse(readFileSync(path, 'utf8')) as { name: string; examples: { action?: string }[] }[]
    ).flatMap(({ name, examples }) => examples.map(({ action }) => (action ? `${name}.${action}` : name)));
    expect(published.length).toBeGreaterThan(100);
    expect(published.filter((event) => checkEventName({ source: 'github', event }))).toEqual([]);
  });
});
