import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connectorOf } from '../../../lambdas/connectors/connector.ts';
import { addAssignees } from '../../../lambdas/connectors/github/assignees.ts';
import { createComment } from '../../../lambdas/connectors/github/comments.ts';
import { toolNames } from '../../../lambdas/connectors/registry.ts';
import { getIncident, updateIncident } from '../../../lambdas/connectors/servicenow/incidents.ts';
import { postMessage, updateMessage } from '../../../lambdas/connectors/slack/messages.ts';
import { later } from '../../../lambdas/run/lease.ts';
import { STORY_BEGINS_AT } from '../../fakes/fake-clock.ts';
import { describeConnectorsContract, perform, performance, readBefore } from './connectors-contract.ts';
import { EXAMPLES } from './connectors-examples.ts';
import { ISSUE, type Outside, openFakeTargets, openSimulatedOutside, SYS_ID } from './connectors-outside.ts';

const REFUSED = { code: 'TARGET_REFUSED', retryable: false };
const HOUR_MS = 3_600_000;

describeConnectorsContract('the fake outside', openFakeTargets, { everyAnswer: true });
describeConnectorsContract('the simulators', openSimulatedOutside, { everyAnswer: false });

it('every operation on an external system has a contract test', () => {
  // These call any host or model that a tenant names, and have their own tests.
  const others = ['http', 'model', 'agent'];
  const tools = toolNames().filter((tool) => !others.includes(connectorOf(tool)));
  expect(EXAMPLES.map(({ operation }) => operation.tool).sort()).toEqual(tools.sort());
});

describe.each([
  ['the fake outside', openFakeTargets],
  ['the simulators', openSimulatedOutside],
])('what only some operations meet, on %s', (_name, open) => {
  let outside: Outside;
  beforeEach(async () => {
    outside = await open();
  });
  afterEach(() => outside.close());

  const message = { channel: '#incidents', text: 'INC0010001 → Database' };
  const probe = async (operation: typeof postMessage, input: unknown, differing = {}) =>
    operation.probe?.(operation.parse(input), performance(outside, operation, differing));

  it('a missing incident is a final refusal, before anything is written', async () => {
    const missing = { sysId: '0'.repeat(32), fields: { state: '2' } };
    await expect(readBefore(outside, updateIncident, missing)).rejects.toMatchObject(REFUSED);
    await expect(perform(outside, updateIncident, missing)).rejects.toMatchObject(REFUSED);
  });

  const performed = async (operation: typeof updateIncident, input: unknown) =>
    perform(outside, operation, input, { before: await readBefore(outside, operation, input) });

  it('a field that ServiceNow does not show is a final refusal, before anything is written', async () => {
    const refused = { ...REFUSED, message: expect.stringContaining('no_such_column') };
    for (const fields of [{ no_such_column: 'x' }, { state: '2', no_such_column: 'x' }]) {
      await expect(readBefore(outside, updateIncident, { sysId: SYS_ID, fields })).rejects.toMatchObject(refused);
    }
    const read = { sysId: SYS_ID, fields: ['number', 'no_such_column'] };
    await expect(perform(outside, getIncident, read)).rejects.toMatchObject(refused);
  });

  it('a field that ServiceNow does not change is a refusal; other fields that it changed count as written and can be undone', async () => {
    const about = expect.stringMatching(/did not change number/);
    const ignored = { sysId: SYS_ID, fields: { number: 'INC7', state: '1' } };
    await expect(performed(updateIncident, ignored)).rejects.toMatchObject({ ...REFUSED, message: about });
    expect(await performed(updateIncident, { sysId: SYS_ID, fields: { state: '2', number: 'INC7' } })).toMatchObject({
      incomplete: about,
      reversal: { input: { sysId: SYS_ID, fields: { state: '1' } }, expects: { state: '2' } },
    });
  });

  it('a value that ServiceNow stores in another form is set, and undone by the stored value', async () => {
    const due = { sysId: SYS_ID, fields: { due_date: '2026-12-01' } };
    const result = await performed(updateIncident, due);
    expect(result).toMatchObject({
      output: { fields: { due_date: '2026-12-01 00:00:00' } },
      reversal: { input: { fields: { due_date: '' } }, expects: { due_date: '2026-12-01 00:00:00' } },
    });
    expect(result).not.toHaveProperty('incomplete');
    expect(await readBefore(outside, updateIncident, due)).toEqual({ due_date: '2026-12-01 00:00:00' });
  });

  it('people whom GitHub silently does not assign are a refusal; others that it assigned count as written and can be undone', async () => {
    const assignees = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8', 'a9'];
    await perform(outside, addAssignees, { ...ISSUE, assignees });
    const about = expect.stringMatching(/ignored ben:/);
    expect(await performed(addAssignees, { ...ISSUE, assignees: ['a1', 'ana', 'ben'] })).toMatchObject({
      incomplete: about,
      reversal: { input: { ...ISSUE, assignees: ['ana'] }, expects: { ana: true } },
    });
    const refused = { ...REFUSED, message: about };
    await expect(performed(addAssignees, { ...ISSUE, assignees: ['ana', 'ben'] })).rejects.toMatchObject(refused);
    await expect(perform(outside, addAssignees, { ...ISSUE, assignees: ['ben'] })).rejects.toMatchObject(refused);
  });

  it('a probe searches back to the time of the first intent, and not further', async () => {
    const comment = { ...ISSUE, body: 'x' };
    await perform(outside, postMessage, message);
    await perform(outside, createComment, comment);
    const since = (ms: number) => ({ openSince: later(STORY_BEGINS_AT, ms) });
    expect(await probe(postMessage, message, since(-HOUR_MS))).toMatchObject({ recovered: true });
    expect(await probe(createComment, comment, since(-HOUR_MS))).toMatchObject({ recovered: true });
    expect(await probe(postMessage, message, since(HOUR_MS))).toBeUndefined();
    expect(await probe(createComment, comment, since(HOUR_MS))).toBeUndefined();
  });

  it('a reply in a thread is found and changed there, and only there', async () => {
    const parent = await perform(outside, postMessage, message, { mark: 'countersign:parent' });
    const { channel, ts: threadTs } = parent.output as { channel: string; ts: string };
    const reply = { ...message, threadTs };
    expect(await probe(postMessage, reply)).toBeUndefined();
    const { ts } = (await perform(outside, postMessage, reply)).output as { ts: string };
    expect(await probe(postMessage, reply)).toMatchObject({ recovered: true });
    expect(await probe(postMessage, message)).toBeUndefined();
    const edit = { channel, ts, text: 'better' };
    expect(await readBefore(outside, updateMessage, { ...edit, threadTs })).toEqual({ text: message.text });
    await expect(readBefore(outside, updateMessage, edit)).rejects.toMatchObject(REFUSED);
  });

  it('a channel that is not listed proves nothing about a message, and no message in it can be changed', async () => {
    const elsewhere = { ...message, channel: '#nowhere' };
    await expect(probe(postMessage, elsewhere)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    const edit = { channel: '#nowhere', ts: '1.000001', text: 'x' };
    await expect(readBefore(outside, updateMessage, edit)).rejects.toMatchObject(REFUSED);
    await expect(perform(outside, updateMessage, edit)).rejects.toMatchObject(REFUSED);
  });
});
