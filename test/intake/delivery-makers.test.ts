import { describe, expect, it } from 'vitest';
import { githubDelivery } from '../../lambdas/intake/github-delivery.ts';
import { servicenowDelivery } from '../../lambdas/intake/servicenow-delivery.ts';

/** An unknown event name, so that the body is not checked and can have any members. */
const github = (payload: object, event = 'some_new_event') =>
  githubDelivery({ 'x-github-event': event, 'x-github-delivery': 'd-1' }, payload);
const servicenow = (record: Record<string, string | null>) =>
  servicenowDelivery({
    ...{ instance: 'acme', table: 'incident', operation: 'update', sys_id: '1'.repeat(32), sys_mod_count: 3 },
    record: { short_description: 'down', ...record },
  });

describe('the makers of a GitHub delivery are', () => {
  it.each<[string, object, string[]]>([
    [
      'its sender and the author of the issue',
      { sender: { login: 'ben' }, issue: { user: { login: 'ana' } } },
      ['ben', 'ana'],
    ],
    [
      'the author of a comment on somebody’s pull request',
      { sender: { login: 'ben' }, comment: { user: { login: 'cy' } }, issue: { user: { login: 'ana' } } },
      ['ben', 'ana', 'cy'],
    ],
    [
      'a reviewer and the author of the pull request',
      { sender: { login: 'ben' }, review: { user: { login: 'ben' } }, pull_request: { user: { login: 'ana' } } },
      ['ben', 'ana'],
    ],
    [
      'the pusher, and the authors of the commits',
      {
        pusher: { name: 'ben' },
        commits: [
          { author: { name: 'Ana', username: 'ana' }, committer: { username: 'web-flow' } },
          { author: { name: 'olivia-gh' } },
        ],
        head_commit: { author: { username: 'cy' } },
      },
      ['ben', 'ana', 'web-flow', 'cy'],
    ],
    ['the creator of a deployment', { deployment: { creator: { login: 'ana' } } }, ['ana']],
    ['not the owner of the repository', { repository: { full_name: 'o/r', owner: { login: 'ana' } } }, []],
    ['found behind empty and padded names', { sender: { login: ' ' }, issue: { user: { login: ' ana ' } } }, ['ana']],
    ['none where there is no user', { sender: null, issue: { user: null } }, []],
  ])('%s', (_who, payload, makers) => {
    expect(github({ action: 'opened', ...payload }).makers).toEqual(makers);
  });
});

describe('the makers of a ServiceNow delivery are', () => {
  it.each<[string, Record<string, string | null>, string[]]>([
    [
      'everybody who opened, created or changed the record',
      { opened_by: 'ana', sys_created_by: 'ben', sys_updated_by: 'cy', 'opened_by.user_name': 'ana.m' },
      ['cy', 'ben', 'ana.m', 'ana'],
    ],
    ['each of them once', { opened_by: 'ana', sys_created_by: 'ana', sys_updated_by: 'ana' }, ['ana']],
    ['not hidden by an empty last editor', { sys_updated_by: '', opened_by: 'ana' }, ['ana']],
    [
      'not hidden by a padded or missing one',
      { sys_updated_by: '  ', sys_created_by: null, opened_by: ' ana ' },
      ['ana'],
    ],
    ['none of an empty record', {}, []],
  ])('%s', (_who, record, makers) => {
    const delivery = servicenow(record);
    expect(delivery.makers).toEqual(makers);
    expect(delivery.fields.actor).toBe(makers[0]);
  });
});
