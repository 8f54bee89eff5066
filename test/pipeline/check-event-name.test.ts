import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { unknownEvent } from '../../lambdas/pipeline/check-event-name.ts';

describe('an event that an automation names', () => {
  it.each([
    ['github', 'issues'],
    ['github', 'issues.opened'],
    ['github', 'pull_request.closed'],
    ['github', 'push'],
    ['github', 'repository_dispatch.whatever-its-sender-says'],
    ['servicenow', 'incident'],
    ['servicenow', 'incident.insert'],
    ['servicenow', 'u_request_2.delete'],
  ] as const)('of %s may be %s', (source, event) => {
    expect(unknownEvent({ source, event })).toBeUndefined();
  });

  it.each([
    ['github', 'issues.open', 'opened'],
    ['github', 'issues.', 'opened'],
    ['github', 'issue.opened', 'no event "issue"'],
    ['github', 'incident.insert', 'no event "incident"'],
    ['github', 'push.', 'no event'],
    ['github', '', 'no event'],
    ['github', 'constructor', 'no event'],
    ['servicenow', 'issues.opened', 'insert, update, delete'],
    ['servicenow', 'incident.created', 'insert, update, delete'],
    ['servicenow', 'Incident.insert', 'insert, update, delete'],
    ['servicenow', '', 'insert, update, delete'],
  ] as const)('of %s is not %s, and the refusal says what there is', (source, event, said) => {
    expect(unknownEvent({ source, event })).toContain(said);
  });

  it('may be any that GitHub has been seen to send', () => {
    const path = createRequire(import.meta.url).resolve('@octokit/webhooks-examples/api.github.com/index.json');
    const seen = (
      JSON.parse(readFileSync(path, 'utf8')) as { name: string; examples: { action?: string }[] }[]
    ).flatMap(({ name, examples }) => examples.map(({ action }) => (action ? `${name}.${action}` : name)));
    expect(seen.length).toBeGreaterThan(100);
    expect(seen.filter((event) => unknownEvent({ source: 'github', event }))).toEqual([]);
  });
});
