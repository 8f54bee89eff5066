import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { githubDelivery } from '../../lambdas/intake/github-delivery.ts';
import { servicenowDelivery } from '../../lambdas/intake/servicenow-delivery.ts';

describe('a GitHub delivery', () => {
  const headers = { 'x-github-event': 'issues', 'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958' };
  const payload = {
    action: 'opened',
    issue: { number: 7, title: 'Checkout fails', html_url: 'https://github.com/octo-org/payments/issues/7' },
    repository: { name: 'payments', full_name: 'octo-org/payments' },
    sender: { login: 'octocat' },
  };

  it('has the fields that all sources share', () => {
    expect(githubDelivery(headers, payload)).toEqual({
      source: 'github',
      event: 'issues.opened',
      key: 'github:72d3162e-cc78-11e3-81ab-4c9367dc0958',
      bodyIsKey: true,
      subject: 'github:octo-org/payments#7',
      fields: {
        title: 'Checkout fails',
        actor: 'octocat',
        url: 'https://github.com/octo-org/payments/issues/7',
        owner: 'octo-org',
        repo: 'payments',
        number: 7,
        action: 'opened',
      },
      payload,
      makers: ['octocat'],
    });
  });

  it('without an action is named by its event; without a title it gets one from event and repository', () => {
    const { event, subject, fields } = githubDelivery(
      { ...headers, 'x-github-event': 'push' },
      { ref: 'refs/heads/main', before: 'a', after: 'b', commits: [], pusher: {}, repository: payload.repository },
    );
    expect({ event, subject, title: fields.title }).toEqual({
      event: 'push',
      subject: 'github:octo-org/payments',
      title: 'push in octo-org/payments',
    });
  });

  it.each([
    ['no event', { ...headers, 'x-github-event': undefined }, payload],
    ['an event of another form', { ...headers, 'x-github-event': 'Issues!' }, payload],
    ['no delivery id', { ...headers, 'x-github-delivery': undefined }, payload],
    ['a delivery id with a key separator', { ...headers, 'x-github-delivery': 'a#b' }, payload],
    ['a body that is no object', headers, ['issues']],
    ['an issue of another shape', headers, { issue: { number: 'seven' } }],
  ])('with %s is a bad request', (_what, given, body) => {
    expect(() => githubDelivery(given, body)).toThrow(expect.objectContaining({ status: 400, code: 'BAD_REQUEST' }));
  });

  it('is accepted for every sample that GitHub publishes', () => {
    const path = createRequire(import.meta.url).resolve('@octokit/webhooks-examples/api.github.com/index.json');
    const events: { name: string; examples: unknown[] }[] = JSON.parse(readFileSync(path, 'utf8'));
    expect(events.length).toBeGreaterThan(50);
    for (const { name, examples } of events) {
      for (const example of examples) {
        const { fields } = githubDelivery({ ...headers, 'x-github-event': name }, example);
        expect([name, fields.title]).toEqual([name, expect.stringMatching(/./)]);
      }
    }
  });
});

describe('a ServiceNow delivery', () => {
  const sysId = '0123456789abcdef0123456789abcdef';
  const payload = {
    instance: 'acme',
    table: 'incident',
    operation: 'insert',
    sys_id: sysId,
    sys_mod_count: '0',
    record: {
      number: 'INC0010001',
      short_description: 'Database down',
      priority: '1',
      opened_by: 'ana',
      u_empty: null,
    },
  };

  it('has the record and the number of its change', () => {
    expect(servicenowDelivery(payload)).toMatchObject({
      source: 'servicenow',
      event: 'incident.insert',
      key: `servicenow:acme:incident:${sysId}:0`,
      subject: 'servicenow:acme:INC0010001',
      fields: { title: 'Database down', actor: 'ana', severity: '1', sysId, number: 'INC0010001', priority: '1' },
      payload,
    });
  });

  it('has another key for every change of the record', () => {
    const changed = servicenowDelivery({ ...payload, operation: 'update', sys_mod_count: 1 });
    expect(changed.key).toBe(`servicenow:acme:incident:${sysId}:1`);
  });

  it.each([
    ['a field the rule does not send', { extra: true }],
    ['an instance that would leave its place in the key', { instance: 'acme:incident' }],
    ['a sys_id of another form', { sys_id: 'x' }],
    ['an unknown operation', { operation: 'query' }],
    ['a negative count', { sys_mod_count: -1 }],
    ['a record with values that are no text', { record: { priority: 1 } }],
    ['no record', { record: undefined }],
  ])('with %s is a bad request', (_what, differing) => {
    expect(() => servicenowDelivery({ ...payload, ...differing })).toThrow(
      expect.objectContaining({ status: 400, code: 'BAD_REQUEST' }),
    );
  });
});
