import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { checkGithubEvent } from '../../lambdas/intake/check-github-event.ts';
import { checkEventName } from '../../lambdas/pipeline/check-event-name.ts';

/** Examples of GitHub and of releases of its Enterprise Server. */
const EVENTS = ['api.github.com', 'ghes-31', 'ghes-33', 'ghes-35'].flatMap(
  (host): { name: string; examples: Record<string, unknown>[] }[] => {
    const path = createRequire(import.meta.url).resolve(`@octokit/webhooks-examples/${host}/index.json`);
    return JSON.parse(readFileSync(path, 'utf8'));
  },
);
/** The events that an automation can name. */
const NAMES = [...new Set(EVENTS.map(({ name }) => name))].filter(
  (event) => !checkEventName({ source: 'github', event }),
);
const accepts = (name: string, body: Record<string, unknown>) => {
  try {
    checkGithubEvent(name, body);
    return true;
  } catch (error) {
    expect(error).toMatchObject({ status: 400, code: 'BAD_REQUEST' });
    return false;
  }
};

describe('the event that the unsigned header names', () => {
  it('is accepted with every body that GitHub publishes for it', () => {
    for (const { name, examples } of EVENTS) {
      for (const example of examples) expect([name, accepts(name, example)]).toEqual([name, true]);
    }
  });

  it('is refused with every body that GitHub publishes for any other event', () => {
    const mistaken = EVENTS.flatMap(({ name, examples }) =>
      NAMES.filter((other) => other !== name).flatMap((other) =>
        examples.some((example) => accepts(other, example)) ? [`${name} as ${other}`] : [],
      ),
    );
    expect(NAMES.length).toBeGreaterThan(50);
    expect(mistaken).toEqual([]);
  });

  it('is checked for every event that an automation can name', () => {
    const unchecked = EVENTS.filter(({ name }) => accepts(name, { zen: 'x', issue: {}, forkee: {}, commits: [] }));
    expect(unchecked.map(({ name }) => name).filter((event) => !checkEventName({ source: 'github', event }))).toEqual(
      [],
    );
  });

  it('is refused with an error that names the header and the member', () => {
    const review = { action: 'edited', pull_request: {}, number: 7, review: {} };
    expect(() => checkGithubEvent('pull_request', review)).toThrow(
      'X-GitHub-Event is pull_request, but the body belongs to another event: it has `review`',
    );
    expect(() => checkGithubEvent('issues', { action: 'opened' })).toThrow('it has no `issue`');
  });
});
