import { afterEach, describe, expect, it, vi } from 'vitest';
import { markOf, operation } from '../../lambdas/connectors/connector.ts';
import { addLabels } from '../../lambdas/connectors/github.ts';
import { findOperation, toolNames } from '../../lambdas/connectors/registry.ts';
import { addWorkNote, updateIncident } from '../../lambdas/connectors/servicenow.ts';
import { postMessage } from '../../lambdas/connectors/slack.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';

const sysId = '0123456789abcdef0123456789abcdef';
afterEach(() => vi.unstubAllGlobals());

describe('a proposal', () => {
  it('has the same key for the same write, however its input was put', () => {
    const key = (labels: string[]) =>
      addLabels.propose(addLabels.parse({ owner: 'o', repo: 'r', number: 7, labels }), 'acme').key;
    expect(key(['b', 'a'])).toBe(key(['a', 'b']));
    const update = (fields: Record<string, string>) => updateIncident.propose({ sysId, fields }, 'acme').key;
    expect(update({ state: '2', priority: '1' })).toBe(update({ priority: '1', state: '2' }));
  });

  it('has another key for another target, value or instance', () => {
    const keys = [
      updateIncident.propose({ sysId, fields: { state: '2' } }, 'acme'),
      updateIncident.propose({ sysId, fields: { state: '3' } }, 'acme'),
      updateIncident.propose({ sysId: '1'.repeat(32), fields: { state: '2' } }, 'acme'),
      updateIncident.propose({ sysId, fields: { state: '2' } }, 'globex'),
      addWorkNote.propose({ sysId, note: '2' }, 'acme'),
    ].map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('carries no values in its key and target', () => {
    const note = addWorkNote.propose({ sysId, note: 'CANARY' }, 'acme');
    const message = postMessage.propose({ channel: '#incidents', text: 'CANARY' }, 'acme');
    for (const { key, target } of [note, message]) expect(`${key} ${target}`).not.toContain('CANARY');
  });
});

describe('input', () => {
  it.each([
    ['a sys_id of another form', updateIncident, { sysId: '../x', fields: { state: '2' } }],
    ['no field', updateIncident, { sysId, fields: {} }],
    ['a journal field, which appends', updateIncident, { sysId, fields: { work_notes: 'x' } }],
    ['a field that would leave the path', updateIncident, { sysId, fields: { 'a,b': 'x' } }],
    ['an empty note', addWorkNote, { sysId, note: '' }],
    ['too long a note', addWorkNote, { sysId, note: 'x'.repeat(4_001) }],
    ['an owner that would leave the path', addLabels, { owner: 'o/../x', repo: 'r', number: 7, labels: ['a'] }],
    ['no label', addLabels, { owner: 'o', repo: 'r', number: 7, labels: [] }],
    ['a number that is text', addLabels, { owner: 'o', repo: 'r', number: '7', labels: ['a'] }],
    ['an unknown field', postMessage, { channel: '#x', text: 'x', blocks: [] }],
  ])('with %s is refused', (_what, { parse }, input) => {
    expect(() => parse(input)).toThrow(expect.objectContaining({ code: 'INPUT_INVALID' }));
  });
});

it('a mark is short, the same for every attempt of one write, and different for any other', () => {
  expect(markOf('acme', 'key')).toMatch(/^countersign:[0-9a-f]{20}$/);
  expect(markOf('acme', 'key')).toBe(markOf('acme', 'key'));
  expect(new Set([markOf('acme', 'key'), markOf('acme', 'key2'), markOf('globex', 'key')]).size).toBe(3);
});

it('an operation that must be probed says how', () => {
  const { probe: _none, ...without } = postMessage;
  expect(() => operation(without)).toThrow(/must say how to probe/);
});

it('every tool that reaches outside is found by its name', () => {
  const outside = toolNames().filter((name) => name.includes('.') && name !== 'wait.external');
  expect(outside.length).toBeGreaterThan(3);
  for (const name of outside) expect(findOperation(name)?.tool).toBe(name);
  expect(findOperation('transform')).toBeUndefined();
});

describe('labels before a write', () => {
  it('are told from what it added without regard to case, as GitHub does', async () => {
    const there = [{ name: 'Triage' }];
    vi.stubGlobal('fetch', async () => Response.json(there));
    const access = { baseUrl: 'http://github', instance: 'acme', credential: { token: 'x' } };
    const performance = { access, mark: 'm', openSince: STORY_BEGINS_AT, firstAttempt: true };
    const { reversal } = await addLabels.perform({ owner: 'o', repo: 'r', number: 7, labels: ['triage'] }, performance);
    expect(reversal).toHaveProperty('irreversible');
  });
});

describe('a probe in Slack', () => {
  const access = { baseUrl: 'http://slack', instance: 'acme', credential: { botToken: 'x' } };
  const performance = { access, mark: 'ours', openSince: STORY_BEGINS_AT, firstAttempt: false };

  it('reads on, page after page, until it finds its mark', async () => {
    const asked: string[] = [];
    const page = (messages: object[], next_cursor: string) => ({
      ok: true,
      messages,
      response_metadata: { next_cursor },
    });
    const ours = { ts: '1.2', metadata: { event_type: 'countersign_write', event_payload: { mark: 'ours' } } };
    vi.stubGlobal('fetch', async (url: string) => {
      asked.push(url);
      return Response.json(asked.length < 3 ? page([{ ts: '1.1' }], `page ${asked.length + 1}`) : page([ours], ''));
    });
    const found = await postMessage.probe?.({ channel: 'C0INCIDENTS', text: 'x' }, performance);
    expect(found).toMatchObject({ recovered: true, response: { ts: '1.2' } });
    expect(asked.map((url) => new URL(url).searchParams.get('cursor'))).toEqual([null, 'page 2', 'page 3']);
  });

  it('that is refused says nothing about the message', async () => {
    vi.stubGlobal('fetch', async () => Response.json({ ok: false, error: 'missing_scope' }));
    const probing = postMessage.probe?.({ channel: 'C0INCIDENTS', text: 'x' }, performance);
    await expect(probing).rejects.toMatchObject({ code: 'TARGET_REFUSED', retryable: false });
  });
});
