import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connectorOf } from '../../lambdas/connectors/connector.ts';
import { addAssignees } from '../../lambdas/connectors/github-assignees.ts';
import { createComment } from '../../lambdas/connectors/github-comments.ts';
import { toolNames } from '../../lambdas/connectors/registry.ts';
import { updateIncident } from '../../lambdas/connectors/servicenow.ts';
import { postMessage, updateMessage } from '../../lambdas/connectors/slack.ts';
import { later } from '../../lambdas/run/lease.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { describeConnectorsContract, perform, performance, readBefore } from './connectors-contract.ts';
import { EXAMPLES } from './connectors-examples.ts';
import { ISSUE, type Outside, openFakeOutside, openSimulatedOutside, SYS_ID } from './connectors-outside.ts';

const REFUSED = { code: 'TARGET_REFUSED', retryable: false };
const HOUR_MS = 3_600_000;

describeConnectorsContract('the fake outside', openFakeOutside, { everyAnswer: true });
describeConnectorsContract('the simulators', openSimulatedOutside, { everyAnswer: false });

it('every operation on a system outside is held to the contract', () => {
  const held = ['servicenow', 'github', 'slack', 'pagerduty'];
  const tools = toolNames().filter((tool) => held.includes(connectorOf(tool)));
  expect(EXAMPLES.map(({ operation }) => operation.tool).sort()).toEqual(tools.sort());
});

describe.each([
  ['the fake outside', openFakeOutside],
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

  it('an incident that is not there is a final refusal, before anything is written', async () => {
    const missing = { sysId: '0'.repeat(32), fields: { state: '2' } };
    await expect(readBefore(outside, updateIncident, missing)).rejects.toMatchObject(REFUSED);
    await expect(perform(outside, updateIncident, missing)).rejects.toMatchObject(REFUSED);
  });

  it('a field that ServiceNow drops is a refusal, and an open outcome if another was set', async () => {
    const ignored = { sysId: SYS_ID, fields: { no_such_column: 'x' } };
    const about = expect.stringContaining('no_such_column');
    await expect(perform(outside, updateIncident, ignored)).rejects.toMatchObject({ ...REFUSED, message: about });
    const partly = { sysId: SYS_ID, fields: { state: '2', no_such_column: 'x' } };
    const open = { code: 'OUTCOME_UNKNOWN', message: about };
    await expect(perform(outside, updateIncident, partly)).rejects.toMatchObject(open);
  });

  it('people whom GitHub silently does not assign are a refusal, and an open outcome if others were assigned', async () => {
    const assignees = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8', 'a9'];
    await perform(outside, addAssignees, { ...ISSUE, assignees });
    const both = { ...ISSUE, assignees: ['ana', 'ben'] };
    const about = expect.stringMatching(/ignored ben:/);
    const open = { code: 'OUTCOME_UNKNOWN', message: about };
    await expect(perform(outside, addAssignees, both)).rejects.toMatchObject(open);
    const refused = { ...REFUSED, message: about };
    await expect(perform(outside, addAssignees, { ...ISSUE, assignees: ['ben'] })).rejects.toMatchObject(refused);
  });

  it('a probe looks back to where the write was first intended, and not further', async () => {
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

  it('a channel that is not listed settles nothing about a message, and is no place to change one', async () => {
    const elsewhere = { ...message, channel: '#nowhere' };
    await expect(probe(postMessage, elsewhere)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    const edit = { channel: '#nowhere', ts: '1.000001', text: 'x' };
    await expect(readBefore(outside, updateMessage, edit)).rejects.toMatchObject(REFUSED);
    await expect(perform(outside, updateMessage, edit)).rejects.toMatchObject(REFUSED);
  });
});
