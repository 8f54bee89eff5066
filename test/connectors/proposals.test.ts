import { describe, expect, it } from 'vitest';
import { markOf, operation } from '../../lambdas/connectors/connector.ts';
import { addAssignees } from '../../lambdas/connectors/github/assignees.ts';
import { createComment, deleteComment } from '../../lambdas/connectors/github/comments.ts';
import { addLabels, removeLabels } from '../../lambdas/connectors/github/labels.ts';
import { setStatus } from '../../lambdas/connectors/github/status.ts';
import { sendEvent } from '../../lambdas/connectors/pagerduty/events.ts';
import { findOperation, toolNames } from '../../lambdas/connectors/registry.ts';
import { addWorkNote, updateIncident } from '../../lambdas/connectors/servicenow/incidents.ts';
import { postMessage, updateMessage } from '../../lambdas/connectors/slack/messages.ts';

const sysId = '0123456789abcdef0123456789abcdef';
const commit = { owner: 'o', repo: 'r', sha: '0'.repeat(40), description: '', targetUrl: '' };
const issue = { owner: 'o', repo: 'r', number: 7 };

describe('a proposal', () => {
  it('has the same key for the same write, for any order of its input', () => {
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
      addLabels.propose({ ...issue, labels: ['2'] }, 'acme'),
      removeLabels.propose({ ...issue, labels: ['2'] }, 'acme'),
      addAssignees.propose({ ...issue, assignees: ['2'] }, 'acme'),
      createComment.propose({ ...issue, body: '2' }, 'acme'),
      sendEvent.propose({ action: 'resolve', dedupKey: '2' }, 'acme'),
      sendEvent.propose({ action: 'acknowledge', dedupKey: '2' }, 'acme'),
    ].map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('has no values in its key and target', () => {
    const note = addWorkNote.propose({ sysId, note: 'CANARY' }, 'acme');
    const message = postMessage.propose({ channel: '#incidents', text: 'CANARY' }, 'acme');
    const comment = createComment.propose({ ...issue, body: 'CANARY' }, 'acme');
    const event = { action: 'trigger', summary: 'CANARY', source: 'CANARY', severity: 'info' };
    const alert = sendEvent.propose({ action: 'resolve', dedupKey: 'CANARY' }, 'acme');
    const status = setStatus.propose({ ...commit, context: 'CANARY', state: 'success' }, 'acme');
    for (const { key, target } of [note, message, comment, alert, status, sendEvent.propose(event, 'acme')])
      expect(`${key} ${target}`).not.toContain('CANARY');
  });

  it('distinguishes targets by name without showing the names, and shows them to approvers', () => {
    const alerts = ['a', 'b'].map((dedupKey) => sendEvent.propose({ action: 'resolve', dedupKey }, 'acme'));
    const statuses = ['a', 'b'].map((context) => setStatus.propose({ ...commit, context, state: 'success' }, 'acme'));
    for (const [one, other] of [alerts, statuses]) {
      expect(one?.target).not.toBe(other?.target);
      expect(one?.key).not.toBe(other?.key);
    }
    expect(alerts[0]?.fields).toMatchObject({ dedupKey: 'a' });
    expect(statuses[0]?.fields).toMatchObject({ context: 'a' });
  });
});

it('an edit changes the fields it names, and no others', () => {
  const edited = updateIncident.edited({ sysId, fields: { state: '1', priority: '3' } }, { priority: '2' });
  expect(edited).toEqual({ sysId, fields: { state: '1', priority: '2' } });
  expect(addWorkNote.edited({ sysId, note: 'a' }, { note: 'b' })).toEqual({ sysId, note: 'b', markdown: true });
});

describe('input', () => {
  it.each([
    ['a sys_id of another form', updateIncident, { sysId: '../x', fields: { state: '2' } }],
    ['no field', updateIncident, { sysId, fields: {} }],
    ['a journal field, which appends', updateIncident, { sysId, fields: { work_notes: 'x' } }],
    ['a field that would leave the path', updateIncident, { sysId, fields: { 'a,b': 'x' } }],
    ['a sentence for a channel', postMessage, { channel: 'Ana wants her money back', text: 'x' }],
    ['an empty note', addWorkNote, { sysId, note: '' }],
    ['too long a note', addWorkNote, { sysId, note: 'x'.repeat(4_001) }],
    ['an owner that would leave the path', addLabels, { owner: 'o/../x', repo: 'r', number: 7, labels: ['a'] }],
    ['a label that is the path itself', removeLabels, { ...issue, labels: ['bug', '.'] }],
    ['a label that is a step up the path', addLabels, { ...issue, labels: ['..'] }],
    ['no label', addLabels, { owner: 'o', repo: 'r', number: 7, labels: [] }],
    ['a number that is text', addLabels, { owner: 'o', repo: 'r', number: '7', labels: ['a'] }],
    ['an owner that is a step up the path', addLabels, { owner: '..', repo: 'r', number: 7, labels: ['a'] }],
    ['more labels than a step has time for', removeLabels, { ...issue, labels: Array(21).fill('a') }],
    ['a login that would leave the path', addAssignees, { ...issue, assignees: ['a/b'] }],
    ['a comment by another name than its number', deleteComment, { owner: 'o', repo: 'r', commentId: '1/../2' }],
    ['a branch for a commit', setStatus, { owner: 'o', repo: 'r', sha: 'main', context: 'c', state: 'success' }],
    [
      'a link that is no link',
      setStatus,
      { owner: 'o', repo: 'r', sha: 'a'.repeat(40), context: 'c', state: 'success', targetUrl: 'javascript:x' },
    ],
    ['an unknown field', postMessage, { channel: '#x', text: 'x', blocks: [] }],
    ['a ts that would add to the query', updateMessage, { channel: '#x', ts: '1.2&channel=C1', text: 'x' }],
    ['a trigger that says nothing', sendEvent, { action: 'trigger', dedupKey: 'k' }],
    ['a resolve of nothing', sendEvent, { action: 'resolve' }],
  ])('with %s is refused', (_what, { parse }, input) => {
    expect(() => parse(input)).toThrow(expect.objectContaining({ code: 'INPUT_INVALID' }));
  });
});

it('a login of a managed user may be assigned', () => {
  const managed = { ...issue, assignees: ['ana-maria_acme', 'dependabot[bot]'] };
  expect(addAssignees.parse(managed)).toEqual(managed);
});

it('a mark is short, the same for every attempt at one write, and different for any other', () => {
  expect(markOf('acme', 'key')).toMatch(/^countersign:[0-9a-f]{20}$/);
  expect(markOf('acme', 'key')).toBe(markOf('acme', 'key'));
  expect(new Set([markOf('acme', 'key'), markOf('acme', 'key2'), markOf('globex', 'key')]).size).toBe(3);
});

it('an operation of effect probe must have a probe function', () => {
  const { probe: _none, ...without } = postMessage;
  expect(() => operation(without)).toThrow(/needs a probe function/);
});

it('every tool is found by its name', () => {
  expect(toolNames().length).toBeGreaterThan(3);
  for (const name of toolNames()) expect(findOperation(name)?.tool).toBe(name);
  expect(findOperation('transform')).toBeUndefined();
});
