import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DynamoDBClient, GetItemCommand, PutItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import { DescribeExecutionCommand, ExecutionDoesNotExist, SFNClient } from '@aws-sdk/client-sfn';
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type StartApproval, startEntryId } from '../../lambdas/outbox/outbox.ts';
import type { Approval } from '../../lambdas/run/approval.ts';
import { docOf } from '../../lambdas/run/dynamo/dynamo-items.ts';
import { COMMIT_PREFIX, outboxKey, runPartition, taskTokenKey } from '../../lambdas/run/dynamo/dynamo-keys.ts';
import { ACTIONS } from '../../lambdas/slack/card/approval-card.ts';
import { Approvers, SLACK } from './harness/approvers.ts';
import { publish } from './harness/definitions.ts';
import { incident } from './harness/deliveries.ts';
import { eventually } from './harness/eventually.ts';
import { ACME_KEY, APPROVER_KEY, isTerminal } from './harness/host-client.ts';
import { triageWrites } from './harness/seen-writes.ts';
import { startTestHost, type TestHost } from './harness/test-host.ts';

const BEN = 'local-approver2-key';
const MINUTE_MS = 60_000;
const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-approvals-'));
let host: TestHost;
let people: Approvers;
let incidents = 0;

beforeAll(async () => {
  host = await startTestHost({ dataFolder });
  people = new Approvers(host);
});
afterAll(async () => {
  await host.stop();
  rmSync(dataFolder, { recursive: true, force: true });
});

/** An incident reported by Ana, and the approval its assignment waits for. */
async function gated() {
  incidents += 1;
  const filed = incident(`to be approved ${incidents}`, { sys_updated_by: 'ana' });
  const runId = await host.fileIncident(filed);
  return { filed, runId, approval: await people.waiting(runId) };
}

const writes = async (filed: ReturnType<typeof incident>) => triageWrites(await host.calls(), filed);

/** The status of its execution, if it has one. */
async function execution({ approvalId }: Approval): Promise<string | undefined> {
  const client = new SFNClient(host.clientConfig());
  const machine = host.only('AWS::StepFunctions::StateMachine').arn;
  const executionArn = `${machine.replace(':stateMachine:', ':execution:')}:${approvalId}`;
  const found = await client.send(new DescribeExecutionCommand({ executionArn })).catch((error: unknown) => {
    if (!(error instanceof ExecutionDoesNotExist)) throw error;
  });
  client.destroy();
  return found?.status;
}

/** People are to be reminded: from now on an execution waits for the decision. */
async function reminded(approval: Approval): Promise<void> {
  expect(await execution(approval)).toBeUndefined();
  await goTo(approval.remindAt);
  await eventually('the reminder', async () => (await people.approval(approval.approvalId)).remindedAt);
  expect(await execution(approval)).toBe('RUNNING');
}

describe('in Slack', () => {
  it('people see the write; a maker of it is refused, another person approves, and the card shows it', async () => {
    const { filed, runId, approval } = await gated();
    const card = await people.card(approval);
    for (const shown of ['servicenow.incident.update', 'assignment_group', filed.sysId, 'medium', 'Approve']) {
      expect(card).toContain(shown);
    }
    await people.click(SLACK.ana, approval, ACTIONS.approve);
    const reply = await eventually('Ana gets a reply', async () =>
      (await people.messages()).find(({ ephemeral_for }) => ephemeral_for === SLACK.ana),
    );
    expect(reply.text).toMatch(/someone else must decide/);
    expect((await writes(filed)).assign).toBe(0);

    await people.click(SLACK.ben, approval, ACTIONS.approve);
    const run = await host.waitForRun(runId);
    expect(run.status).toBe('succeeded');
    expect(await writes(filed)).toEqual({ assign: 1, note: 1, post: 1 });
    await host.idle();
    expect(await people.approval(approval.approvalId)).toMatchObject({
      status: 'approved',
      votes: [{ person: 'ben', via: 'slack' }],
    });
    const after = await people.card(approval);
    expect(after).toContain('Ben');
    expect(after).not.toContain('"Approve"');
    // It was decided before people were to be reminded.
    expect(await execution(approval)).toBeUndefined();
    expect(await startEntries(approval)).toEqual([]);
  });

  it('two clicks and a repeated request of Slack decide once', async () => {
    const { filed, runId, approval } = await gated();
    await Promise.all([
      people.click(SLACK.ben, approval, ACTIONS.approve),
      people.click(SLACK.ben, approval, ACTIONS.approve),
    ]);
    expect((await host.waitForRun(runId)).status).toBe('succeeded');
    expect((await people.approval(approval.approvalId)).votes).toHaveLength(1);
    expect((await writes(filed)).assign).toBe(1);
  });

  it('a rejection requires a reason, and the write is not made', async () => {
    const { filed, runId, approval } = await gated();
    await people.fillIn(await people.modal(SLACK.ben, approval, ACTIONS.reject), 'the group is on holiday');
    const run = await host.waitForRun(runId);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'APPROVAL_REJECTED' } });
    expect((await writes(filed)).assign).toBe(0);
    expect(JSON.stringify(run.commits)).not.toContain('holiday');
  });

  it('another person decides on an edit, and the edited write is made', async () => {
    const { filed, runId, approval } = await gated();
    const group = '19bba1f613c636a33e096de45697b880';
    await people.fillIn(await people.modal(SLACK.ben, approval, ACTIONS.edit), group);
    const edited = await people.approval(approval.approvalId);
    expect(edited).toMatchObject({
      makers: ['ana', 'ben'],
      votes: [],
      action: { fields: { assignment_group: group } },
    });
    expect(edited.actionHash).not.toBe(approval.actionHash);
    const asSeenBefore = await people.decide(approval, { decision: 'approve' }, ACME_KEY);
    expect([asSeenBefore.status, asSeenBefore.body.code]).toEqual([409, 'APPROVAL_STALE']);
    const unseen = await host.command(`/approvals/${approval.approvalId}/decision`, { decision: 'approve' }, ACME_KEY);
    expect([unseen.status, unseen.text]).toEqual([400, expect.stringContaining('actionHash')]);
    expect((await people.decide(edited, { decision: 'approve' }, BEN)).body.code).toBe('APPROVAL_SELF');
    expect((await people.decide(edited, { decision: 'approve' }, ACME_KEY)).status).toBe(200);
    await host.waitForRun(runId);
    const [patch] = (await host.calls({ system: 'servicenow', method: 'PATCH' })).filter(({ path }) =>
      path.includes(filed.sysId),
    );
    expect(patch?.body).toEqual({ assignment_group: group });
  });

  it('/countersign pending lists the pending approvals', async () => {
    const { approval } = await gated();
    expect(await people.type(SLACK.ben, '/countersign pending')).toMatchObject({ ok: true });
    const listed = (await people.messages()).filter(({ ephemeral_for }) => ephemeral_for === SLACK.ben).at(-1);
    expect(JSON.stringify(listed)).toContain(approval.approvalId);
    await people.click(SLACK.ben, approval, ACTIONS.approve);
  });
});

it('40 fields of 3,000 Hebrew letters are shown, edited in Slack and written', async () => {
  // Like random text, so that no row is small because its text repeats.
  const hebrew = (seed: number) => {
    const bytes = Array.from({ length: 94 }, (_each, block) =>
      createHash('sha256').update(`${seed} ${block}`).digest(),
    );
    return [...Buffer.concat(bytes).subarray(0, 3_000)]
      .map((byte) => String.fromCharCode(0x05d0 + (byte % 27)))
      .join('');
  };
  const names = Array.from({ length: 40 }, (_each, index) => `u_${index}`);
  const filed = incident('in Hebrew', Object.fromEntries(names.map((name) => [name, hebrew(1)])));
  await host.createIncident(filed);
  const fields = Object.fromEntries(names.map((name, index) => [name, hebrew(index + 2)]));
  await publish(host, {
    name: 'in-hebrew',
    event: 'star.created',
    steps: [{ id: 'write', tool: 'servicenow.incident.update', with: { sysId: filed.sysId, fields } }],
  });
  const { body } = await host.sendGithub({ action: 'created' }, { event: 'star' });
  const runId = body.runIds[0] ?? '';
  const approval = await people.waiting(runId);
  const card = await people.card(approval);
  for (const name of names) expect(card).toContain(`• ${name}: `);

  const all = await people.modal(SLACK.ben, approval, ACTIONS.showAll);
  expect(JSON.stringify(all)).toContain(hebrew(2).slice(0, 2_900));
  const typed = hebrew(99);
  const form = await people.modal(SLACK.ben, approval, ACTIONS.edit);
  expect(await people.fillIn(form, typed)).toMatchObject({ ok: true, message: expect.stringMatching(/^Accepted/) });
  const edited = await people.approval(approval.approvalId);
  expect(edited).toMatchObject({ votes: [], edits: [{ person: 'ben', changes: [{ field: 'u_0', to: typed }] }] });
  expect((await people.decide(edited, { decision: 'approve' }, APPROVER_KEY)).status).toBe(200);
  expect((await host.waitForRun(runId)).status).toBe('succeeded');
  const [patch] = (await host.calls({ system: 'servicenow', method: 'PATCH' })).filter(({ path }) =>
    path.includes(filed.sysId),
  );
  expect(patch?.body).toEqual({ ...fields, u_0: typed });
});

describe('exactly one outcome', () => {
  it('when an approval and a rejection come at the same time; the loser gets an error', async () => {
    const { filed, runId, approval } = await gated();
    const answers = await Promise.all([
      people.decide(approval, { decision: 'approve' }, BEN),
      people.decide(approval, { decision: 'reject', reason: 'no' }, ACME_KEY),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(answers.find(({ status }) => status === 409)?.body.code).toMatch(/APPROVAL_CLOSED|RUN_TERMINAL_STATE/);
    const { status } = await people.approval(approval.approvalId);
    const run = await host.waitForRun(runId);
    expect(run.status).toBe(status === 'approved' ? 'succeeded' : 'failed_terminal');
    expect((await writes(filed)).assign).toBe(status === 'approved' ? 1 : 0);
  });

  it('when a decision is stored and its message is lost: the sweeper completes the token, and the write does not wait for it', async () => {
    const { filed, runId, approval } = await gated();
    await reminded(approval);
    await host.fault({ function: 'ApprovalFlowFollow', service: 'states', kind: 'error', times: 'always' });
    await people.decide(approval, { decision: 'approve' }, BEN);
    expect((await host.waitForRun(runId)).status).toBe('succeeded');
    await host.idle();
    expect(await execution(approval)).toBe('RUNNING');
    await host.clearFaults();
    await host.letTimePassUntil([runId], () => true);
    await eventually('the execution ended', async () => {
      await host.advance(MINUTE_MS);
      await host.sweep();
      await host.idle();
      return (await execution(approval)) === 'SUCCEEDED' ? true : undefined;
    });
    expect((await writes(filed)).assign).toBe(1);
  });

  it('when the approval expires as the decision arrives', async () => {
    const { filed, runId, approval } = await gated();
    const left = Date.parse(approval.expiresAt) - (await host.now());
    const [, answer] = await Promise.all([
      host.advance(left + 1),
      people.decide(approval, { decision: 'approve' }, BEN),
    ]);
    await host.letTimePassUntil([runId], isTerminal);
    const { status } = await people.approval(approval.approvalId);
    expect(status).toBe(answer.status === 200 ? 'approved' : 'expired');
    expect((await writes(filed)).assign).toBe(status === 'approved' ? 1 : 0);
  });

  it('when the token is completed twice', async () => {
    const { runId, approval } = await gated();
    await reminded(approval);
    await people.decide(approval, { decision: 'approve' }, BEN);
    await host.waitForRun(runId);
    await host.idle();
    const QueueUrl = host.stack
      .ofType('AWS::SQS::Queue')
      .find(({ logicalId }) => /^ApprovalFlowQueue(?!Dead)/.test(logicalId))?.ref;
    const MessageBody = JSON.stringify({ entryId: 'again', tenant: 'acme', runId, approvalId: approval.approvalId });
    const sqs = new SQSClient(host.clientConfig());
    await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody }));
    sqs.destroy();
    await host.idle();
    expect(await execution(approval)).toBe('SUCCEEDED');
    expect((await people.approval(approval.approvalId)).status).toBe('approved');
  });

  it('when the run is canceled: its approval and its execution are closed', async () => {
    const { filed, runId, approval } = await gated();
    await reminded(approval);
    expect((await host.command(`/runs/${runId}/cancel`)).status).toBe(200);
    await host.waitForRun(runId);
    await host.idle();
    expect((await people.approval(approval.approvalId)).status).toBe('canceled');
    expect(await execution(approval)).toBe('SUCCEEDED');
    expect((await people.decide(approval, { decision: 'approve' }, BEN)).status).toBe(409);
    expect((await writes(filed)).assign).toBe(0);
  });
});

it('a payload that changed after its approval is not written, and the approval is requested again', async () => {
  const { filed, runId, approval } = await gated();
  await host.fault({ function: 'ApiApprovals', service: 'sqs', kind: 'error', times: 'always' });
  await people.decide(approval, { decision: 'approve' }, BEN);
  // Somebody with access to the table puts another group into the approved step.
  const client = new DynamoDBClient(host.clientConfig());
  const { Items: [Item = {}] = [] } = await client.send(
    new QueryCommand({
      TableName: host.tableName,
      KeyConditionExpression: 'pk = :pk AND begins_with(sk, :prefix)',
      ExpressionAttributeValues: marshall({ ':pk': runPartition('acme', runId), ':prefix': COMMIT_PREFIX }),
      ScanIndexForward: false,
      Limit: 1,
    }),
  );
  const doc = JSON.stringify(docOf(Item)).replaceAll(String(approval.action?.fields.assignment_group), 'f'.repeat(32));
  await client.send(new PutItemCommand({ TableName: host.tableName, Item: { ...Item, doc: { S: doc } } }));
  client.destroy();
  await host.clearFaults();
  await host.letTimePassUntil([runId], ({ commits }) => JSON.stringify(commits).includes('approval.stale'));
  expect((await writes(filed)).assign).toBe(0);
  const second = await people.waiting(runId);
  expect(second.action?.fields).toEqual({ assignment_group: 'f'.repeat(32) });
  await host.command(`/runs/${runId}/cancel`);
});

it('one person with several identities counts once', async () => {
  const blast = { name: 'far-reaching', event: 'fork', blastRadius: 'high' as const };
  const label = { owner: 'o', repo: 'r', number: 1, labels: ['forked'] };
  await publish(host, { ...blast, steps: [{ id: 'label', tool: 'github.labels.add', with: label }] });
  const { body } = await host.sendGithub({ sender: { login: 'ben-okafor' } }, { event: 'fork' });
  const approval = await people.waiting(body.runIds[0] ?? '');
  // Ben caused it, although GitHub, Slack and Countersign know him by different names.
  expect(approval).toMatchObject({ makers: ['ben'], requirement: { quorum: 2 } });
  expect((await people.decide(approval, { decision: 'approve' }, BEN)).body.code).toBe('APPROVAL_SELF');
  await people.click(SLACK.ana, approval, ACTIONS.approve);
  expect((await people.decide(approval, { decision: 'approve' }, APPROVER_KEY)).body.outcome).toBe('already');
  expect((await people.approval(approval.approvalId)).status).toBe('notified');
  expect((await people.decide(approval, { decision: 'approve' }, ACME_KEY)).body.outcome).toBe('approved');
});

it('after a change of policy the approval is requested again, and nothing is written meanwhile', async () => {
  const { filed, runId, approval } = await gated();
  // The worker gets no message, so that policy can change between approval and execution.
  await host.fault({ function: 'ApiApprovals', service: 'sqs', kind: 'error', times: 'always' });
  await people.decide(approval, { decision: 'approve' }, BEN);
  const stricter =
    '@id("two") @tier("medium") @quorum("2") permit (principal, action == Action::"executeWithApproval", resource) when { resource.risk == Risk::"medium" };';
  const put = (files: object) =>
    host.request('PUT', '/api/v1/policies', {
      headers: { 'x-api-key': ACME_KEY },
      body: JSON.stringify({ engine: 'cedar', files }),
    });
  expect(await put({ 'two.cedar': stricter })).toMatchObject({ status: 200 });
  await host.clearFaults();
  await host.letTimePassUntil([runId], ({ commits }) => JSON.stringify(commits).includes('approval.stale'));
  expect((await writes(filed)).assign).toBe(0);
  const second = await people.waiting(runId);
  expect(second).toMatchObject({ requirement: { quorum: 2 } });
  await people.decide(second, { decision: 'approve' }, BEN);
  await people.decide(second, { decision: 'approve' }, ACME_KEY);
  expect((await host.waitForRun(runId)).status).toBe('succeeded');
  expect((await writes(filed)).assign).toBe(1);
  await put({});
  await host.advance(MINUTE_MS + 1_000);
});

it('a task token is in no log, response, card or bundle', async () => {
  const { runId, approval } = await gated();
  await reminded(approval);
  const client = new DynamoDBClient(host.clientConfig());
  const Key = marshall(taskTokenKey('acme', runId, approval.approvalId));
  const { Item } = await client.send(new GetItemCommand({ TableName: host.tableName, Key }));
  client.destroy();
  const { taskToken } = JSON.parse(unmarshall(Item ?? {}).doc);
  expect(taskToken.length).toBeGreaterThan(20);
  await people.decide(approval, { decision: 'approve' }, APPROVER_KEY);
  await people.decide(approval, { decision: 'approve' }, BEN);
  await host.waitForRun(runId);
  await host.idle();
  const seen = [
    ...host.log,
    (await host.api(`/runs/${runId}`)).text,
    (await host.api(`/approvals/${approval.approvalId}`)).text,
    JSON.stringify(await host.calls()),
    JSON.stringify(await people.messages()),
  ];
  expect(seen.filter((text) => text.includes(taskToken))).toEqual([]);
});

/** The outbox entries that start the execution of an approval. */
async function startEntries({ runId, approvalId }: Approval): Promise<StartApproval[]> {
  const client = new DynamoDBClient(host.clientConfig());
  const Key = marshall(outboxKey(startEntryId({ tenant: 'acme', runId, approvalId })));
  const { Item } = await client.send(new GetItemCommand({ TableName: host.tableName, Key }));
  client.destroy();
  return Item ? [docOf<StartApproval>(Item)] : [];
}

/** Advances the clock to just after a time, and runs everything that is due until then. */
async function goTo(time: string): Promise<void> {
  await host.idle();
  await host.advance(Date.parse(time) - (await host.now()) + 1_000);
  await host.sweep();
  await host.idle();
}

const alertFor = async ({ approvalId }: Approval) =>
  (await people.alerts()).find(({ dedup_key }) => dedup_key === approvalId);

describe('before people are reminded', () => {
  it('a decision needs no execution, also if the message about it is lost', async () => {
    const { runId, approval } = await gated();
    expect(await startEntries(approval)).toMatchObject([{ dueAt: approval.remindAt }]);
    await host.fault({ function: 'ApiApprovals', service: 'sqs', kind: 'error', times: 'always' });
    await people.decide(approval, { decision: 'approve' }, BEN);
    await host.clearFaults();
    await host.letTimePassUntil([runId], isTerminal);
    await eventually('the outbox entries are removed', async () => {
      await host.advance(MINUTE_MS);
      await host.sweep();
      await host.idle();
      return (await startEntries(approval)).length === 0 ? true : undefined;
    });
    expect(await execution(approval)).toBeUndefined();
    expect(await people.card(approval)).not.toContain('"Approve"');
  });

  it('the execution posts the card if the worker cannot have it posted', async () => {
    await host.fault({ function: 'WorkerStep', service: 'lambda', kind: 'error', times: 'always' });
    incidents += 1;
    const runId = await host.fileIncident(incident(`not announced ${incidents}`, { sys_updated_by: 'ana' }));
    await host.waitForRun(runId, (run) => run.steps.some(({ approvalId }) => approvalId));
    await host.clearFaults();
    await host.idle();
    await host.advance(MINUTE_MS);
    await host.sweep();
    const approval = await people.waiting(runId);
    expect(await people.card(approval)).toContain('Approval needed');
    expect(await execution(approval)).toBe('RUNNING');
    expect(await startEntries(approval)).toEqual([]);
    await people.decide(approval, { decision: 'approve' }, BEN);
    expect((await host.waitForRun(runId)).status).toBe('succeeded');
    await host.idle();
    expect(await execution(approval)).toBe('SUCCEEDED');
  });

  it('the execution finds the card of a function that ended before it could store it', async () => {
    await host.fault({
      ...{ function: 'ApprovalFlowHold', service: 'dynamodb', operation: 'TransactWriteItems' },
      ...{ kind: 'error', times: 'always' },
    });
    incidents += 1;
    const runId = await host.fileIncident(incident(`not stored ${incidents}`, { sys_updated_by: 'ana' }));
    const { steps } = await host.waitForRun(runId, (run) => run.steps.some(({ approvalId }) => approvalId));
    const approvalId = steps.find((step) => step.approvalId)?.approvalId ?? '';
    await host.idle();
    const isCard = ({ metadata, blocks }: object & { metadata?: unknown; blocks?: unknown }) =>
      metadata !== undefined && JSON.stringify(blocks).includes(approvalId);
    const cards = async () => (await people.messages()).filter(isCard);
    expect(await cards()).toHaveLength(1);
    await host.clearFaults();
    await host.advance(MINUTE_MS);
    await host.sweep();
    await people.waiting(runId);
    expect(await cards()).toHaveLength(1);
    await people.decide(await people.approval(approvalId), { decision: 'approve' }, BEN);
    expect((await host.waitForRun(runId)).status).toBe('succeeded');
  });
});

describe('while Slack is down', () => {
  const OUTAGE = { system: 'slack', path: 'chat.postMessage', kind: 'status', status: 503, times: 10_000 };
  const slackIsBack = () => host.request('DELETE', '/_sim/faults');

  /** An approval without a notification. */
  async function withoutNotification() {
    await host.simulatedFault(OUTAGE);
    incidents += 1;
    const runId = await host.fileIncident(incident(`not notified ${incidents}`, { sys_updated_by: 'ana' }));
    const { steps } = await host.waitForRun(runId, (run) => run.steps.some(({ approvalId }) => approvalId));
    const approvalId = steps.find((step) => step.approvalId)?.approvalId ?? '';
    return { runId, approval: await people.approval(approvalId) };
  }

  it('nobody is paged early, and people see the card within a minute after Slack is back', async () => {
    const { runId, approval } = await withoutNotification();
    for (let minute = 0; minute < 7; minute += 1) {
      await host.idle();
      await host.advance(MINUTE_MS);
    }
    await host.idle();
    const meanwhile = await people.approval(approval.approvalId);
    expect(meanwhile).toMatchObject({ status: 'requested' });
    expect([meanwhile.escalatedAt, await alertFor(approval)]).toEqual([undefined, undefined]);

    await slackIsBack();
    const backAtMs = await host.now();
    await host.advance(MINUTE_MS);
    const notified = await people.waiting(runId);
    expect(await people.card(notified)).toContain('Approval needed');
    expect((await host.now()) - backAtMs).toBeLessThan(2 * MINUTE_MS);

    // A late stage delays no other.
    await goTo(approval.remindAt);
    await eventually('the reminder', async () => (await people.approval(approval.approvalId)).remindedAt);
    await goTo(approval.slaAt);
    await eventually('the alert', () => alertFor(approval));
    const { escalatedAt = '' } = await people.approval(approval.approvalId);
    expect(Date.parse(escalatedAt) - Date.parse(approval.slaAt)).toBeLessThan(MINUTE_MS);
    await people.decide(notified, { decision: 'approve' }, BEN);
    expect((await host.waitForRun(runId)).status).toBe('succeeded');
    await host.idle();
    expect(await alertFor(approval)).toMatchObject({ status: 'resolved' });
    expect(await execution(approval)).toBe('SUCCEEDED');
  });

  it('others are paged when the SLA has passed, and the approval expires on time', async () => {
    const { runId, approval } = await withoutNotification();
    await goTo(approval.remindAt);
    expect(await alertFor(approval)).toBeUndefined();
    await goTo(approval.slaAt);
    await eventually('the alert', () => alertFor(approval));
    await goTo(approval.expiresAt);
    const ended = await host.waitForRun(runId, isTerminal);
    expect(ended).toMatchObject({ status: 'failed_terminal', error: { code: 'APPROVAL_EXPIRED' } });
    expect(await people.approval(approval.approvalId)).not.toHaveProperty('card');
    await host.idle();
    expect(await execution(approval)).toBe('SUCCEEDED');
    await slackIsBack();
  });
});

it('reminder, escalation and expiry work over a restart', async () => {
  await publish(host, {
    name: 'label-after-approval',
    event: 'release.published',
    steps: [
      { id: 'gate', tool: 'approval', with: { message: 'Is the release out?' } },
      { id: 'label', tool: 'github.labels.add', with: { owner: 'o', repo: 'r', number: 1, labels: ['released'] } },
    ],
  });
  const { body } = await host.sendGithub({ action: 'published' }, { event: 'release' });
  const runId = body.runIds[0] ?? '';
  const approval = await people.waiting(runId);
  const said = async () => (await people.messages()).map(({ text }) => text);

  await goTo(approval.remindAt);
  await eventually('a reminder', async () =>
    (await said()).some((text) => text.startsWith('Still waiting')) ? true : undefined,
  );
  expect(await alertFor(approval)).toBeUndefined();

  await host.stop();
  host = await startTestHost({ dataFolder });
  people = new Approvers(host);
  expect(await execution(approval)).toBe('RUNNING');
  await goTo(approval.slaAt);
  await eventually('an alert', () => alertFor(approval));
  expect((await host.run(runId)).status).toBe('waiting_approval');
  expect((await people.approval(approval.approvalId)).escalatedAt).toBeDefined();

  await goTo(approval.expiresAt);
  const ended = await host.waitForRun(runId, isTerminal);
  expect(ended).toMatchObject({ status: 'failed_terminal', error: { code: 'APPROVAL_EXPIRED' } });
  expect((await people.approval(approval.approvalId)).status).toBe('expired');
  await host.idle();
  expect(await execution(approval)).toBe('SUCCEEDED');
  expect(JSON.stringify(await host.calls({ system: 'github', method: 'POST' }))).not.toContain('released');
});
