import { createHmac } from 'node:crypto';
import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterEach, expect, it } from 'vitest';
import { localSecret } from '../../../bin/commands/local-stage.ts';
import { signedHeaders } from '../../../bin/commands/webhook/sign-delivery.ts';
import { apiKeyHash } from '../../../lambdas/api/authorizer/api-keys.ts';
import { invokeFunction } from '../../../lambdas/entry/invoke-function.ts';
import { toItem } from '../../../lambdas/run/dynamo/dynamo-items.ts';
import { apiKeyKey } from '../../../lambdas/run/dynamo/dynamo-keys.ts';
import { bootstrapFunctionName } from '../../../lambdas/setup/environment.ts';
import { ACTIONS } from '../../../lambdas/slack/card/approval-card.ts';
import { REGION } from '../../../local/aws/aws.ts';
import { HOST_CREDENTIALS } from '../../../local/aws/aws-endpoint.ts';
import { LOCAL_SLACK_SIGNING_SECRET } from '../../../local/host/seed.ts';
import { TEAM } from '../../../local/simulators/slack/workspace.ts';
import type { Assembly } from '../../../local/template/synthesize.ts';
import { ask, enrolledAgent, publishCommand, type StoryAgent, startCommand } from '../harness/agent-story.ts';
import { Approvers, SLACK } from '../harness/approvers.ts';
import { publish } from '../harness/definitions.ts';
import { incident } from '../harness/deliveries.ts';
import { ACME_KEY, isTerminal, type ShownRun } from '../harness/host-client.ts';
import { LiveWatcher, liveTicket } from '../harness/live-watcher.ts';
import { labelWrites } from '../harness/seen-writes.ts';
import { contractOf, letMinutesPass, misbehave, publishSessions, startSession } from '../harness/session-story.ts';
import { saveSettings } from '../harness/settings.ts';
import { signInLocally } from '../harness/sign-in.ts';
import { requestOfStack } from '../harness/stack-request.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

const DAY_MS = 24 * 3_600_000;
let host: TestHost;
let people: Approvers;

afterEach(() => host.stop());

interface Statement {
  Action: string | string[];
  Condition?: { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': string[] } };
}

/** The same assembly, in which this function's role may no longer write rows of this kind. */
function withoutPutOf(rows: string, functionStart: string): (assembly: Assembly) => Assembly {
  return (assembly) => {
    const template = structuredClone(assembly.template);
    const roles = Object.entries(template.Resources ?? {}).filter(
      ([logicalId, { Type }]) => Type === 'AWS::IAM::Role' && logicalId.startsWith(functionStart),
    );
    const statements = roles
      .flatMap(
        ([, { Properties = {} }]) => (Properties.Policies ?? []) as { PolicyDocument: { Statement: Statement[] } }[],
      )
      .flatMap(({ PolicyDocument }) => PolicyDocument.Statement);
    const puts = statements.filter(({ Action }) => [Action].flat().includes('dynamodb:PutItem'));
    const conditions = puts.flatMap(({ Condition }) => Condition?.['ForAllValues:StringLike'] ?? []);
    const before = JSON.stringify(conditions);
    for (const condition of conditions) {
      condition['dynamodb:LeadingKeys'] = condition['dynamodb:LeadingKeys'].filter((key) => key !== `${rows}#*`);
    }
    if (JSON.stringify(conditions) === before) throw new Error(`${functionStart} never could write ${rows}`);
    return { ...assembly, template };
  };
}

it('a worker whose role lacks a grant makes no write, and the log names the grant', async () => {
  host = await startTestHost({ change: withoutPutOf('RECEIPT', 'WorkerStep') });
  const runId = await host.openIssue(1);
  await host.idle();
  expect((await host.run(runId)).status).toBe('queued');
  expect(labelWrites(await host.calls(), 1)).toBe(0);
  const denials = host.log.filter((line) => line.includes('denied:'));
  expect(denials[0]).toMatch(/WorkerStep\w+ is not authorized to perform dynamodb:PutItem on \S+:table\/\S+:.*RECEIPT/);
});

it('a webhook whose run cannot be written is not acknowledged', async () => {
  host = await startTestHost({ change: withoutPutOf('IDEM', 'IntakeGithub') });
  const { status } = await host.sendGithub({ action: 'opened', issue: { number: 1, title: 'x' } });
  expect(status).toBe(500);
  expect(host.log.some((line) => /denied: IntakeGithub\w+ .* dynamodb:PutItem/.test(line))).toBe(true);
  expect(await host.allRuns()).toEqual([]);
});

/** Grants whose use cannot be seen here, each with the reason. */
const KNOWN: { role?: string; action: string; reason: string }[] = [
  { action: 'sqs:ChangeMessageVisibility', reason: 'Lambda requires it of consumers of a queue' },
  { action: 'sqs:GetQueueUrl', reason: 'CDK grants it to consumers of a queue' },
  { role: 'PolicyApi', action: 'dynamodb:Query', reason: 'second owners of a prod stage (second-owner.test.ts)' },
  { role: 'ApiBulk', action: 'dynamodb:UpdateItem', reason: 'bulk runs the handlers of ApiControl, which use it here' },
  { role: 'ApiBulk', action: 'dynamodb:DeleteItem', reason: 'the same' },
  { role: 'ApiBulk', action: 'dynamodb:PutItem', reason: 'receipts, as for ApiControl' },
  { role: 'ApiBulk', action: 'dynamodb:GetItem', reason: 'idempotency records, as for ApiStart' },
  {
    role: 'ApiControl',
    action: 'dynamodb:PutItem',
    reason: 'receipts: resolve settles unknown writes (ended-runs.test.ts)',
  },
  {
    role: 'ApiStart',
    action: 'dynamodb:GetItem',
    reason: 'idempotency records: read after a lost reply, as by intake',
  },
  { role: 'ApiMcp', action: 'dynamodb:GetItem', reason: 'idempotency records, as for ApiStart' },
  // An approved action holds a slot until a worker claims it. Who cancels it in these milliseconds returns the slot.
  {
    role: 'ApiMcp',
    action: 'dynamodb:UpdateItem',
    reason: 'the slot of an action that is canceled before it is claimed',
  },
  { role: 'ApiMcp', action: 'dynamodb:BatchGetItem', reason: 'the same: how many runs of each workspace have a slot' },
  { role: 'ApiMcp', action: 'dynamodb:Query', reason: 'the same: the next run that waits for the slot' },
  { role: 'AgentApiWork', action: 'dynamodb:UpdateItem', reason: 'slots: a result can end a run, as for ApiControl' },
  { role: 'AgentApiWork', action: 'dynamodb:DeleteItem', reason: 'the same' },
  { role: 'AgentApiWork', action: 'dynamodb:Query', reason: 'the same: the next run that waits for the slot' },
  {
    role: 'AgentApiWork',
    action: 'secretsmanager:GetSecretValue',
    reason: 'a session that is a command (agent/local-host.test.ts)',
  },
  { role: 'LiveFeedFanOut', action: 'dynamodb:DeleteItem', reason: 'connections that are gone (live-feed.test.ts)' },
  { role: 'LiveFeedFanOut', action: 'sqs:SendMessage', reason: 'batches that are given up (stream-source.test.ts)' },
  { role: 'SweepSweeper', action: 'dynamodb:GetItem', reason: 'the same, for a slot of a schedule' },
];

it('no role has a grant that the whole path, including its failures, does not need', async () => {
  host = await startTestHost();
  people = new Approvers(host);
  await publish(host, { name: 'gated', event: 'release.published', steps: [{ id: 'gate', tool: 'approval' }] });
  await straightPath();
  await decisionsInSlack();
  await decisionWithShortClock();
  await decisionsUnderCaps();
  await definitionsAndPolicies();
  await credentials();
  await evidenceTaken();
  await slowTarget();
  await lostWorkerAndMessages();
  await lostReplies();
  await unansweredApproval();
  await caps();
  await peoplesCommands();
  await tenantSetup();
  await runsThatPeopleStart();
  await conversationInSlack();
  await sessionsAndActions();
  await actionsOnManyRuns();
  await deadLetters();
  await exportsThatFail();
  await commandsOfAgents();
  await filesOfTheConsole();
  const unused = await host.unusedGrants();
  const unexplained = unused.filter(
    ({ role, action }) => !KNOWN.some((known) => known.action === action && role.startsWith(known.role ?? '')),
  );
  expect(unexplained).toEqual([]);
});

/** A message starts a run, answers wake it and end it, a command starts another one. */
async function conversationInSlack(): Promise<void> {
  await publish(host, {
    name: 'talk',
    event: 'star.created',
    concurrencyKey: '{% trigger.source %}',
    caps: { maxConcurrency: 1 },
    steps: [
      { id: 'ask', tool: 'wait.external', with: { event: 'slack.message' } },
      { id: 'confirm', tool: 'wait.external', with: { event: 'slack.message' } },
    ],
  });
  await saveSettings(host, { slackAutomation: 'talk' });
  await host.advance(61_000);
  const waitsIn = (index: number) => (run: ShownRun) => run.steps[index]?.status === 'waiting_external';
  const newest = async () => (await host.allRuns())[0]?.runId ?? '';
  const { ts } = await people.write(SLACK.oscar, '<@U900BOT> restart payments');
  const first = await newest();
  await host.letTimePassUntil([first], waitsIn(0));
  // Slack repeats a command whose response was lost.
  await host.fault({ function: 'SlackCommands', operation: 'TransactWriteItems', kind: 'lost_reply' });
  await people.type(SLACK.oscar, '/countersign run talk');
  for (const command of ['list', 'status']) await people.type(SLACK.oscar, `/countersign ${command}`);
  const second = await newest();
  await people.write(SLACK.oscar, 'yes', ts);
  await host.letTimePassUntil([first], waitsIn(1));
  await people.write(SLACK.chloe, 'may not answer', ts);
  await people.write(SLACK.oscar, 'confirmed', ts);
  await host.letTimePassUntil([first], isTerminal);
  await host.letTimePassUntil([second], waitsIn(0));
  await host.idle();
}

const isSealed = ({ evidence }: ShownRun) => evidence !== null;

async function gatedRun(): Promise<string> {
  const { body } = await host.sendGithub({ action: 'published' }, { event: 'release' });
  return body.runIds[0] ?? '';
}

async function forked(): Promise<string> {
  const { body } = await host.sendGithub({}, { event: 'fork' });
  return body.runIds[0] ?? '';
}

interface Started {
  runId: string;
  planHash: string;
  nextRuns: string[];
  token: string;
}

async function as(key: string, method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body ?? {});
  const sent = { headers: { 'x-api-key': key, ...headers }, ...(method !== 'GET' && { body: text }) };
  const answer = await host.request<Started>(method, `/api/v1${path}`, sent);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return answer.body;
}

/** Over the API, by a schedule, by a webhook of an own source, from a plan, and again from an earlier run. */
async function runsThatPeopleStart(): Promise<void> {
  const labels = { owner: 'octo-org', repo: 'payments', number: 7, labels: ['proposed'] };
  const action = await host.command('/actions', { tool: 'github.labels.add', input: labels });
  expect(action.status).toBe(201);
  // A session whose token nobody signed.
  await host.request('POST', `/api/v1/runs/run_${'0'.repeat(32)}/actions`, {
    headers: { authorization: 'Bearer cst_e30.forged', 'idempotency-key': 'one' },
    body: JSON.stringify({ tool: 'github.labels.add', input: {} }),
  });
  // An MCP client, as a session with the same token, and with a key.
  const mcp = (headers: Record<string, string>, method: string, params: object) =>
    host.request('POST', '/mcp', {
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
  await mcp({ authorization: 'Bearer cst_e30.forged' }, 'tools/list', {});
  const args = { owner: 'octo-org', repo: 'payments', number: 7001, labels: ['mcp'], idempotency_key: 'mcp' };
  await mcp({ 'x-api-key': ACME_KEY }, 'tools/call', { name: 'github_labels_add', arguments: args });
  const own = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    as(ACME_KEY, method, path, body, headers);
  const label =
    'name: label-now\nsteps:\n  - {id: label, tool: github.labels.add, with: {owner: octo-org, repo: payments, number: 7001, labels: [now]}}\n';
  await own('POST', '/workflows', label, { 'content-type': 'application/yaml' });
  const workflow = { name: 'label-now', version: 1 };
  await own('PUT', '/automations/label-now', { trigger: { source: 'manual' }, workflow });
  await own('PUT', '/sources/alerts', { title: 'Alert', event: '{% trigger.payload.status %}' });
  await own('PUT', '/automations/on-alert', { trigger: { source: 'generic', event: 'alerts.firing' }, workflow });
  await host.advance(61_000);
  const { runId } = await own('POST', '/runs', { workflow: { name: 'label-now' } }, { 'idempotency-key': 'one' });
  // Before the next run, which would otherwise sometimes be the one that makes the identical write.
  await host.letTimePassUntil([runId], isSealed);
  await own('POST', '/automations/label-now/run');
  await own('POST', `/runs/${runId}/replay`, { step: 'label' });
  await own('POST', `/runs/${runId.slice(0, -1)}/rerun`);
  const { planHash } = await own('POST', '/workflows/simulate', { workflow: { name: 'label-now' }, save: true });
  await own('POST', `/plans/${planHash}/apply`);
  const body = JSON.stringify({ status: 'firing' });
  const facts = { secret: localSecret('generic/alerts', 'acme'), id: 'alert-1', event: '', nowMs: await host.now() };
  const headers = signedHeaders('generic/alerts', Buffer.from(body), facts);
  expect((await host.send({ path: '/webhooks/generic/acme/alerts', headers, body })).status).toBe(202);
  // Only now: if the clock passed the full hour earlier, the run of the schedule would be the one that makes the write.
  await own('PUT', '/schedules/hourly', { automation: 'label-now', rate: '1 hour' });
  const { nextRuns } = await own('GET', '/schedules/hourly');
  await host.advance(Date.parse(nextRuns[0] ?? '') - (await host.now()) + 1_000);
  await host.sweep();
  await host.idle();
  await own('POST', `/runs/${runId}/assign`);
  await own('POST', `/runs/${runId}/release`);
  await own('POST', `/runs/${runId}/rollback`, { reason: 'undo it' });
  await host.idle();
  await own('GET', '/schedules?limit=1');
  await own('DELETE', '/schedules/hourly');
  await own('GET', '/status');
  await own('GET', '/doctor');
  await own('GET', `/runs/${runId.slice(0, -1)}/evidence`);
}

/** A session acts over its own routes and over MCP, completes, and is looked after when it is silent; MCP tasks are canceled. */
async function sessionsAndActions(): Promise<void> {
  await publishSessions(host);
  const rpc = (headers: Record<string, string>, method: string, params: object) =>
    host.request('POST', '/mcp', {
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
  const called = async (headers: Record<string, string>, name: string, args: object) => {
    const { text } = await rpc(headers, 'tools/call', { name, arguments: args });
    const [, actionId = ''] = /"actionId":"(run_[0-9a-f]+)"/.exec(text.replaceAll('\\', '')) ?? [];
    if (actionId === '') throw new Error(text);
    return actionId;
  };
  await host.waitForRun(
    await startSession(host, { actions: [{ tool: 'github.labels.add', input: { labels: ['s'] } }] }),
  );
  await misbehave(host, 'silent');
  const runId = await startSession(host);
  await host.waitForRun(runId, ({ status }) => status === 'waiting_external');
  const session = { authorization: `Bearer ${contractOf(host, runId).token}` };
  await host.waitForRun(await called(session, 'github_labels_add', { labels: ['over-mcp'] }), isTerminal);
  const dispatch = { owner: 'octo-org', repo: 'payments', workflow: 'deploy.yml', ref: 'canceled' };
  const waiting = await called({ 'x-api-key': ACME_KEY }, 'github_workflow_dispatch', dispatch);
  await rpc({ 'x-api-key': ACME_KEY }, 'tasks/cancel', { taskId: waiting });
  await host.waitForRun(waiting, isTerminal);
  await letMinutesPass(host, 35);
  await host.waitForRun(runId, isTerminal);
}

/** Last, because its policies replace those of the other parts. */
async function commandsOfAgents(): Promise<void> {
  await publishCommand(host);
  const agent = await enrolledAgent(host, 'one');
  await ask(host, 'GET', '/agents');
  await ask(host, 'GET', '/agents/one');
  const { token: spare } = await ask<{ token: string }>(host, 'POST', '/enrolment-tokens', {
    body: { name: 'two', environments: ['dev'] },
  });
  expect(spare).not.toBe('');
  await ask(host, 'GET', '/enrolment-tokens');
  await ask(host, 'GET', '/profiles/dev-flex');
  await ask(host, 'PUT', '/profiles/dev-flex', { body: { allow: [], deny: [{ executable: '/sbin/reboot' }] } });
  const { url } = await liveTicket(host);
  const socket = await LiveWatcher.open(url, agent.socketHeaders());
  if (typeof socket === 'number') throw new Error(`the socket of the agent was refused: ${socket}`);
  const runId = await startCommand(host);
  const watcher = await LiveWatcher.with(host);
  await watcher.subscribe(runId, [`${runId}:0:0`, `${runId}:0.1:0`]);
  const statement = await agent.take();
  await agent.print(statement, 0, 'up\n');
  await agent.sync([statement]);
  await ask(host, 'GET', `/runs/${runId}/steps/restart/output?since=0`);
  await agent.complete(statement, 1);
  await host.waitForRun(runId);
  await watcher.has('session.completed');
  expect(socket.messages).toContainEqual({ type: 'sync' });
  await stoppedCommands(agent);
  for (const each of [watcher, socket]) each.close();
  await removedWatcher(runId);
  // A minute has passed: an agent that was silent so long, and is not new, would get nothing for another minute.
  await agent.registerAgain();
  await host.fault({ function: 'AgentApiWork', service: 's3', operation: 'PutObject', times: 'always', kind: 'error' });
  const later = await startCommand(host);
  const second = await agent.take();
  await agent.print(second, 0, 'once\n');
  await agent.complete(second, 1);
  await host.clearFaults();
  await host.waitForRun(later);
  await host.advance(60_000);
  await host.sweep();
  await host.idle();
  await host.advance(8 * DAY_MS);
  await ask(host, 'GET', `/runs/${later}/steps/restart/output?since=0`);
  await agent.registerAgain();
  await ask(host, 'POST', '/workflows/simulate', { body: { workflow: { name: 'uptime' } } });
  // The second execution repeats the workflow of the last run about the ticket.
  for (const runbook of [{ runbook_id: 'uptime' }, {}]) {
    await ask(host, 'POST', '/executions', { body: { ticket_id: 'INC0001', ...runbook } });
    await agent.complete(await agent.take(), 0);
  }
  await lostAgent(agent);
  await agent.registerAgain();
  await ask(host, 'POST', '/agents/one/drain', { body: { reason: 'patches' } });
  await agent.sync();
  await ask(host, 'POST', '/agents/one/resume');
  await ask(host, 'DELETE', '/agents/one');
}

/** Its agent, whose socket is open, gets a hint at once: from a cancel of one run, and from a cancel of many. */
async function stoppedCommands(agent: StoryAgent): Promise<void> {
  const bulk = async (body: object) => as(ACME_KEY, 'POST', '/runs/bulk', body);
  const cancelOne = (runId: string) => ask(host, 'POST', `/runs/${runId}/cancel`, { body: { reason: 'not now' } });
  const cancelMany = async () => {
    const { token } = await bulk({ action: 'cancel', filter: { workflow: 'uptime', status: 'running' }, options: {} });
    await bulk({ token });
  };
  for (const cancel of [cancelOne, cancelMany]) {
    const runId = await startCommand(host);
    const statement = await agent.take();
    await cancel(runId);
    expect((await agent.sync([statement])).cancels).toMatchObject([{ assignment_id: statement.assignment_id }]);
    await agent.complete(statement, 0);
    await host.waitForRun(runId);
  }
}

/** A person who is removed while a connection is open cannot subscribe, and the connection is forgotten. */
async function removedWatcher(runId: string): Promise<void> {
  await ask(host, 'PUT', '/people/wanda', { body: { name: 'Wanda', role: 'member', identities: ['github:wanda'] } });
  const { key } = await ask<{ key: string }>(host, 'POST', '/api-keys', {
    body: { name: 'wanda-1', person: 'wanda', role: 'member' },
  });
  const watcher = await LiveWatcher.with(host, key);
  expect(await watcher.subscribe(runId)).toMatchObject({ type: 'subscribed' });
  // The fan-out ends the connection at once. While it cannot, the next subscription does.
  await host.fault({
    function: 'LiveFeedFanOut',
    service: 'dynamodb',
    operation: 'Query',
    times: 'always',
    kind: 'error',
  });
  await ask(host, 'DELETE', '/people/wanda');
  await host.advance(61_000);
  expect(await watcher.subscribe(runId)).toMatchObject({ type: 'error', code: 'FORBIDDEN' });
  await host.clearFaults();
  watcher.close();
}

/** Its output is stored some minutes later. */
async function lostAgent(agent: StoryAgent): Promise<void> {
  await startCommand(host);
  await agent.print(await agent.take(), 0, 'the last words\n');
  for (const ms of [61_000, 11 * 60_000, 61_000]) {
    await host.advance(ms);
    await host.sweep();
    await host.idle();
  }
}

async function actionsOnManyRuns(): Promise<void> {
  const waiting = [await gatedRun(), await gatedRun()];
  for (const runId of waiting) await people.waiting(runId);
  const bulk = (body: object) => as(ACME_KEY, 'POST', '/runs/bulk', body);
  const acted = async (action: string, filter: object, options: object = {}) => {
    const { token } = await bulk({ action, filter, options });
    await bulk({ token });
  };
  await acted('cancel', { automation: 'gated', status: 'waiting_approval' }, { reason: 'not needed' });
  await host.letTimePassUntil(waiting, isSealed);
  await acted('rerun', { automation: 'gated', status: 'canceled' });
}

/** Webhooks of both sources, and every read of the API. */
async function straightPath(): Promise<void> {
  const issueRun = await host.openIssue(1);
  const triaged = await host.fileIncident(incident('that uses every grant'));
  await host.approve(triaged);
  await host.waitForRun(triaged);
  await host.waitForRun(issueRun);
  await host.allRuns();
  await host.api('/runs?status=succeeded');
  await host.api(`/runs/${issueRun}/events`);
}

/** An approval on a card, the slash command, and an event of the Events API. */
async function decisionsInSlack(): Promise<void> {
  const first = await people.waiting(await gatedRun());
  await host.api('/approvals');
  await host.api(`/approvals/${first.approvalId}`);
  await people.type(SLACK.ben, '/countersign pending');
  await people.click(SLACK.ben, first, ACTIONS.approve);
  const body = JSON.stringify({ type: 'event_callback', team_id: TEAM.id });
  await host.request('POST', '/slack/events', { headers: slackSignature(body, await host.now()), body });
  await host.idle();
}

/** The worker starts the execution of an approval whose reminder is due soon. */
async function decisionWithShortClock(): Promise<void> {
  const gate = { id: 'gate', tool: 'approval' };
  await publish(host, { name: 'gated-soon', event: 'release.released', approvals: { slaSeconds: 120 }, steps: [gate] });
  const { body } = await host.sendGithub({ action: 'released' }, { event: 'release' });
  const approval = await people.waiting(body.runIds[0] ?? '');
  await people.click(SLACK.ben, approval, ACTIONS.approve);
  await host.idle();
}

/** An approval takes a slot and a rejection frees a concurrency key, in Slack and over the API. */
async function decisionsUnderCaps(): Promise<void> {
  await publish(host, {
    name: 'gated-one-by-one',
    event: 'watch.started',
    concurrencyKey: '{% trigger.source %}',
    caps: { maxConcurrency: 5 },
    steps: [
      { id: 'gate', tool: 'approval' },
      { id: 'rest', tool: 'wait', with: { seconds: 1 } },
    ],
  });
  const asked = async () => {
    const { body } = await host.sendGithub({ action: 'started' }, { event: 'watch' });
    return people.waiting(body.runIds[0] ?? '');
  };
  for (const decision of [{ decision: 'approve' }, { decision: 'reject', reason: 'no' }]) {
    const approval = await asked();
    await people.decide(approval, decision, ACME_KEY);
    await host.letTimePassUntil([approval.runId], isTerminal);
  }
  const approved = await asked();
  await people.click(SLACK.ben, approved, ACTIONS.approve);
  await host.letTimePassUntil([approved.runId], isTerminal);
  const rejected = await asked();
  await people.fillIn(await people.modal(SLACK.ben, rejected, ACTIONS.reject), 'no');
  await host.letTimePassUntil([rejected.runId], isTerminal);
}

async function definitionsAndPolicies(): Promise<void> {
  const yaml =
    'name: planned\nsteps:\n  - { id: label, tool: github.labels.add, with: { owner: o, repo: r, number: 1, labels: [a] } }\n';
  const headers = { 'x-api-key': ACME_KEY };
  await host.request('POST', '/api/v1/workflows', {
    headers: { ...headers, 'content-type': 'application/yaml' },
    body: yaml,
  });
  await host.api('/workflows');
  await host.api('/workflows/planned');
  await host.api('/workflows/planned/versions/1');
  await host.api('/automations');
  await host.api('/automations/label-new-issue');
  await host.command('/workflows/simulate', {
    workflow: yaml,
    source: 'github',
    event: 'issues',
    payload: { action: 'opened', issue: { number: 1 } },
  });
  await host.api('/policies');
  // An owner who becomes a member: another owner must remain.
  for (const role of ['owner', 'member']) {
    const body = JSON.stringify({ name: 'Dora', role, identities: ['github:dora'] });
    await host.request('PUT', '/api/v1/people/dora', { headers, body });
  }
  await host.request('DELETE', '/api/v1/people/dora', { headers });
  await host.api('/changes');
  const policies = { engine: 'cedar', files: {} };
  await host.request('PUT', '/api/v1/policies', { headers, body: JSON.stringify(policies) });
  await host.command('/policies/replay', { policies });
}

/** A key that is created, used and revoked; a key of the first version; a sign-in; a token of an unknown issuer. */
async function credentials(): Promise<void> {
  const { body } = await host.command('/api-keys', { name: 'ci', machine: true, role: 'member' });
  await host.api('/api-keys', String(body.key));
  await host.request('DELETE', '/api/v1/api-keys/ci', { headers: { 'x-api-key': ACME_KEY } });
  const dynamo = new DynamoDBClient(host.clientConfig());
  const item = toItem(apiKeyKey(apiKeyHash('old-key')), { tenant: 'acme', person: 'olivia', role: 'owner' });
  await dynamo.send(new PutItemCommand({ TableName: host.tableName, Item: item }));
  dynamo.destroy();
  await host.api('/me', 'old-key');
  const { id_token: token } = await signInLocally(host.url, 'olivia');
  const [header, , signature] = token.split('.');
  const strange = Buffer.from(JSON.stringify({ iss: 'https://a.example', aud: 'b' })).toString('base64url');
  for (const each of [token, `${header}.${strange}.${signature}`]) {
    await host.request('GET', '/api/v1/me', { headers: { authorization: `Bearer ${each}` } });
  }
}

function slackSignature(body: string, atMs: number): Record<string, string> {
  const timestamp = String(Math.floor(atMs / 1000));
  const mac = createHmac('sha256', LOCAL_SLACK_SIGNING_SECRET).update(`v0:${timestamp}:${body}`).digest('hex');
  return { 'x-slack-request-timestamp': timestamp, 'x-slack-signature': `v0=${mac}` };
}

/** What an auditor reads: the keys, a bundle, and a closed day of the log. */
async function evidenceTaken(): Promise<void> {
  const runId = await host.openIssue(77);
  await host.waitForRun(runId);
  await host.request('GET', '/.well-known/countersign-keys.json');
  await host.api(`/runs/${runId}/evidence`);
  await host.api(`/runs/${runId}/evidence/bundle.json`);
  await host.api(`/runs/${runId}/evidence/values.json`);
  const { body: policies } = await host.api('/policies');
  await host.api(`/texts/${policies.hash}`);
  // An invocation that crashed before it recorded its first signature, its second row, finds it in the next invocation.
  await host.fault({
    function: 'EvidenceLogCloseDays',
    service: 'dynamodb',
    operation: 'PutItem',
    nth: 2,
    kind: 'crash_before',
  });
  await host.advance(DAY_MS);
  await host.idle();
  await host.clearFaults();
  await host.advance(DAY_MS);
  await host.idle();
  const yesterday = new Date((await host.now()) - DAY_MS).toISOString().slice(0, 10);
  await host.api(`/changes/days/${yesterday}/changes.json`);
}

async function slowTarget(): Promise<void> {
  await host.simulatedFault({ system: 'github', method: 'POST', kind: 'status', status: 429, retryAfterSeconds: 1 });
  await host.letTimePassUntil([await host.openIssue(2)], isTerminal);
}

/** A worker that crashes after its write, and later one whose outbox entries for seal and approval are not sent. */
async function lostWorkerAndMessages(): Promise<void> {
  const write = { function: 'WorkerStep', service: 'dynamodb', operation: 'TransactWriteItems' };
  await host.fault({ ...write, nth: 2, kind: 'crash_before' });
  await host.letTimePassUntil([await host.openIssue(3)], isTerminal);
  await host.fault({ function: 'WorkerStep', service: 'states', kind: 'error', times: 3 });
  await host.fault({ function: 'WorkerStep', service: 'sqs', kind: 'error', times: 'always' });
  await gatedRun();
  await host.letTimePassUntil([await host.openIssue(4)], isSealed);
  await host.clearFaults();
}

/** A commit whose reply was lost, and a bundle that was stored but not recorded. */
async function lostReplies(): Promise<void> {
  const write = { service: 'dynamodb', operation: 'TransactWriteItems' };
  await host.fault({ ...write, function: 'WorkerStep', kind: 'lost_reply', times: 3 });
  await host.fault({ ...write, function: 'EvidenceVaultSeal', kind: 'crash_before' });
  const runId = await host.openIssue(5);
  await host.letTimePassUntil([runId], isSealed);
  await host.clearFaults();
  await host.fault({ ...write, function: 'EvidenceVaultSeal', kind: 'crash_before' });
  expect((await host.command(`/runs/${runId}/assign`, {})).status).toBeLessThan(300);
  for (let addenda = 0; addenda === 0; ) {
    await host.idle();
    await host.advance(10 * 60_000);
    await host.sweep();
    await host.idle();
    addenda = (await host.api<{ addenda: unknown[] }>(`/runs/${runId}/evidence`)).body.addenda.length;
  }
  await host.clearFaults();
}

async function unansweredApproval(): Promise<void> {
  const { runId, remindAt, slaAt, expiresAt } = await people.waiting(await gatedRun());
  const goTo = async (time: string) => {
    await host.idle();
    await host.advance(Date.parse(time) - (await host.now()) + 1_000);
  };
  await goTo(remindAt);
  // It starts the execution, which waits for the decision from now on.
  await host.sweep();
  await goTo(slaAt);
  // The digest, which the sweeper asks for.
  await host.idle();
  await host.advance(61_000);
  await host.sweep();
  await goTo(expiresAt);
  await host.waitForRun(runId, isTerminal);
}

/** Two runs that may only run one after the other, and that wait for a signal while they do. */
async function caps(): Promise<void> {
  await publish(host, {
    name: 'one-at-a-time',
    event: 'fork',
    concurrencyKey: '{% trigger.source %}',
    caps: { maxConcurrency: 1, maxRunsPerMinute: 100 },
    steps: [
      { id: 'go', tool: 'wait.external', with: { event: 'go' } },
      { id: 'label', tool: 'github.labels.add', with: { owner: 'o', repo: 'r', number: 1, labels: ['forked'] } },
    ],
  });
  const first = await forked();
  await host.waitForRun(first, ({ status }) => status === 'waiting_external');
  const second = await forked();
  await host.idle();
  expect((await host.run(second)).status).toBe('queued');
  expect((await host.command(`/runs/${first}/signal`, { event: 'go' })).status).toBe(200);
  await host.letTimePassUntil([second], ({ status }) => status === 'waiting_external');
  expect((await host.command(`/runs/${second}/cancel`)).status).toBe(200);
  await host.waitForRun(second);
}

/** What CloudFormation asks for when it deploys the stack and when it deletes it. */
async function filesOfTheConsole(): Promise<void> {
  const s3 = new S3Client(host.clientConfig());
  const Bucket = host.only('AWS::S3::Bucket', 'ConsoleBucket').ref;
  const stored = async () => (await s3.send(new ListObjectsV2Command({ Bucket }))).Contents ?? [];
  expect(await requestOfStack(host, 'Custom::ConsoleFiles', 'Create')).toMatchObject({ Status: 'SUCCESS' });
  expect((await stored()).map(({ Key }) => Key)).toContain('index.html');
  expect(await requestOfStack(host, 'Custom::ConsoleFiles', 'Delete')).toMatchObject({ Status: 'SUCCESS' });
  expect(await stored()).toEqual([]);
}

async function peoplesCommands(): Promise<void> {
  const runId = await forked();
  await host.waitForRun(runId, ({ status }) => status === 'waiting_external');
  for (const command of ['pause', 'resume', 'cancel']) {
    expect([command, (await host.command(`/runs/${runId}/${command}`)).status]).toEqual([command, 200]);
  }
  await host.waitForRun(runId);
}

/** What operators and owners do to set up a tenant; its credentials are read and written behind the API. */
async function tenantSetup(): Promise<void> {
  const bootstrap = {
    functionName: bootstrapFunctionName('local'),
    region: REGION,
    endpoint: host.clientConfig().endpoint,
    credentials: HOST_CREDENTIALS,
  };
  const invoked = await invokeFunction(bootstrap, {
    action: 'addOwners',
    request: {
      tenant: 'globex',
      owners: [{ id: 'gus', name: 'Gus', identities: ['github:gus'] }],
      keys: [{ person: 'gus', sha256: apiKeyHash('key of gus') }],
    },
  });
  const request = { tenant: 'globex', changeIds: ['chg_unknown'], reason: 'a test' };
  const erased = await invokeFunction(bootstrap, { action: 'eraseChanges', request });
  expect(erased).toMatchObject({ refused: { code: 'NOT_FOUND' } });
  expect(invoked).toEqual({ result: { added: ['gus'], existing: [] } });
  const as = (method: string, path: string, body?: object) =>
    host.request(method, `/api/v1${path}`, {
      headers: { 'x-api-key': 'key of gus' },
      ...(body && { body: JSON.stringify(body) }),
    });
  const issuers = [{ name: 'corp', issuer: 'https://login.example.com', audience: 'globex' }];
  const steps: [string, string, object?][] = [
    [
      'PUT',
      '/connections/github',
      { baseUrl: `${host.url}/_sim/github`, instance: 'globex', credential: { token: 'local-2' } },
    ],
    ['POST', '/connections/github/test'],
    ['PUT', '/webhook-secrets/servicenow', { secret: 'a second secret of globex' }],
    ['PUT', '/settings', { issuers }],
    ['PUT', '/settings', {}],
    ['GET', '/connections'],
    ['DELETE', '/connections/pagerduty'],
  ];
  for (const [method, path, body] of steps) {
    const { status, text } = await as(method, path, body);
    expect([method, path, status, status === 200 ? '' : text]).toEqual([method, path, 200, '']);
  }
}

/** A message that failed five times is in the dead-letter queue until an operator redrives it. */
async function deadLetters(): Promise<void> {
  const runId = await gatedRun();
  const { approvalId } = await people.waiting(runId);
  const message = { tenant: 'acme', runId, approvalId, entryId: `acme.${runId}.none`, kind: 'export_run' };
  const sqs = new SQSClient(host.clientConfig());
  for (const name of ['StepQueueDeadLetters', 'SealQueueDeadLetters', 'ApprovalFlowQueueDeadLetters']) {
    const QueueUrl = host.only('AWS::SQS::Queue', name).ref;
    await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify(message) }));
  }
  sqs.destroy();
  expect((await host.api('/dead-letters')).body).toMatchObject({ queues: expect.anything() });
  expect((await host.command('/dead-letters/redrive')).status).toBe(202);
  expect((await host.command('/outbox/redrive')).status).toBe(202);
  await host.idle();
}

/** Only exports, because the order of what a sealer puts differs: a text that is stored already is not put again. */
async function exportsThatFail(): Promise<void> {
  const put = { function: 'EvidenceVaultSeal', service: 's3', operation: 'PutObject', resource: '/artifacts/' };
  await host.fault({ ...put, times: 'always', kind: 'error' });
  await host.waitForRun(await host.openIssue(6));
  await host.clearFaults();
}
