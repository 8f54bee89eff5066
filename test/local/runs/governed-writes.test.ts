import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DynamoDefinitions } from '../../../lambdas/pipeline/dynamo-definitions.ts';
import { slotCounterKey } from '../../../lambdas/run/dynamo/dynamo-keys.ts';
import type { RecordedCall } from '../../../local/simulators/calls.ts';
import { byTest } from '../../fakes/by-test.ts';
import { credentials, ownPort, saveCredentials } from '../harness/credentials.ts';
import { publish } from '../harness/definitions.ts';
import { eventually } from '../harness/eventually.ts';
import { ACME_KEY, isTerminal, type ShownRun } from '../harness/host-client.ts';
import { saveSettings } from '../harness/settings.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

/** A client waits ten seconds for a response. */
const TOO_LATE_MS = 11_000;
const RETRY_AFTER_SECONDS = 90;
/** Longer than a warm function caches policies. */
const KNOWN_EVERYWHERE_AFTER_MS = 61_000;

/** Everything is allowed but one label; and there is a policy that fails at a run's second write if it adds another. */
const POLICIES = `
@id("trust") permit (principal, action, resource);
@id("never") @reason("nobody may say so") forbid (principal, action, resource)
  when { context.values.contains("labels=forbidden") };
@id("fails") forbid (principal, action, resource)
  when { context.values.contains("labels=overflow") && context.writesBefore + 9223372036854775807 > 0 };
`;

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost();
  await savePolicies(POLICIES);
  const http = ownPort(host, 'Bearer local-http-token');
  await saveCredentials(host, JSON.stringify({ ...(await credentials(host)), http }));
  await publishWorkflows();
});
afterAll(() => host.stop());

/** Stored directly, without the checks of publishing. */
async function savePolicies(cedar: string): Promise<void> {
  const client = new DynamoDBClient(host.clientConfig());
  const definitions = new DynamoDefinitions(client, host.tableName);
  await definitions.savePolicies('acme', { engine: 'cedar', files: { 'tests.cedar': cedar } }, byTest());
  client.destroy();
  await host.advance(KNOWN_EVERYWHERE_AFTER_MS);
}

const ISSUE = { owner: 'octo-org', repo: 'payments', number: '{% trigger.number %}' };
const label = (id: string, name = id) => ({ id, tool: 'github.labels.add', with: { ...ISSUE, labels: [name] } });

async function publishWorkflows(): Promise<void> {
  const url = `${host.url}/_sim/github/repos/octo-org/payments/issues/{% trigger.number %}/labels`;
  const request = { method: 'POST', url, body: { labels: ['by-http'] } };
  const single: Record<string, object> = {
    natural: label('write', 'natural'),
    probe: { id: 'write', tool: 'github.comment.create', with: { ...ISSUE, body: 'looked at' } },
    opaque: { id: 'write', tool: 'http.request', with: request },
    denied: label('write', 'forbidden'),
    unknown: { id: 'write', tool: 'github.issue.burn', with: ISSUE },
  };
  for (const [name, step] of Object.entries(single)) {
    await publish(host, { name, event: `issues.${name}`, steps: [step] });
  }
  await publish(host, { name: 'fails', event: 'issues.fails', steps: [label('one'), label('two', 'overflow')] });
  const steps = [label('one'), label('two'), label('three')];
  await publish(host, { name: 'budget', event: 'issues.budget', caps: { maxWritesPerRun: 2 }, steps });
}

async function start(name: string, number: number): Promise<string> {
  const { body, text } = await host.sendGithub({
    action: name,
    issue: { number, title: `Issue ${number}` },
    repository: { name: 'payments', full_name: 'octo-org/payments' },
  });
  const [runId] = body.runIds ?? [];
  if (!runId) throw new Error(text);
  return runId;
}

const receiptOf = ({ receipts }: ShownRun) => receipts.find(({ stepId }) => stepId === 'write');

/** Calls of an issue's that change something. */
async function writesTo(number: number): Promise<RecordedCall[]> {
  return (await host.calls({ system: 'github', method: 'POST' })).filter(({ path }) =>
    path.includes(`/issues/${number}/`),
  );
}

describe('a write that fails or has an unknown outcome', () => {
  const EFFECTS = ['natural', 'probe', 'opaque'] as const;
  type Effect = (typeof EFFECTS)[number];
  type Ending = { calls: number; status: string; receipt: object };
  const REPEATED: Ending = { calls: 2, status: 'succeeded', receipt: { outcome: 'succeeded', attempt: 2 } };
  const RECOVERED: Ending = { calls: 1, status: 'succeeded', receipt: { outcome: 'succeeded', recovered: true } };
  const ASKED: Ending = { calls: 1, status: 'needs_human', receipt: { outcome: 'unknown', attempt: 1 } };
  const REFUSED: Ending = { calls: 1, status: 'failed_terminal', receipt: { outcome: 'failed', attempt: 1 } };

  /** The write was made, but the response was lost: repeated if harmless, found by its mark, else people are asked. */
  const UNKNOWN: Record<Effect, Ending> = { natural: REPEATED, probe: RECOVERED, opaque: ASKED };
  const STORIES: [what: string, fault: object, endings: Record<Effect, Ending>][] = [
    ['it takes effect after the timeout', { kind: 'delay', delayMs: TOO_LATE_MS }, UNKNOWN],
    ['its response is lost', { kind: 'lost_answer' }, UNKNOWN],
    ['its response is cut', { kind: 'truncated_body' }, UNKNOWN],
    ['200 comes with the body of an error', { kind: 'other_body', body: { message: 'Server Error' } }, UNKNOWN],
    // Nothing was written, but a 500 does not say so: only operations that can probe or repeat continue.
    ['the target fails', { kind: 'status', status: 500 }, { natural: REPEATED, probe: REPEATED, opaque: ASKED }],
    [
      'the target asks to slow down',
      { kind: 'status', status: 429, retryAfterSeconds: RETRY_AFTER_SECONDS },
      { natural: REPEATED, probe: REPEATED, opaque: REPEATED },
    ],
    ['the target refuses', { kind: 'status', status: 422 }, { natural: REFUSED, probe: REFUSED, opaque: REFUSED }],
  ];
  /** An http.request succeeds with any expected status, for any body. */
  const isKnown = (effect: Effect, fault: object) => effect === 'opaque' && 'body' in fault;

  const cases = STORIES.flatMap(([what, fault, endings], story) =>
    EFFECTS.filter((effect) => !isKnown(effect, fault)).map((effect, index) => ({
      name: `${effect}: ${what}`,
      effect,
      fault,
      number: 1000 + 10 * story + index,
      ending: endings[effect],
    })),
  );
  const ended = new Map<number, ShownRun>();

  beforeAll(async () => {
    for (const { number, fault } of cases) {
      await host.simulatedFault({ system: 'github', method: 'POST', path: `/issues/${number}/`, ...fault });
    }
    const runIds = new Map<number, string>();
    for (const { effect, number } of cases) runIds.set(number, await start(effect, number));
    // The clock jumps, so real requests must arrive first. A request that sets out now and is as
    // slow arrives last, which costs nothing to wait for.
    await host.simulatedFault({ system: 'github', method: 'GET', path: '/slow', kind: 'delay', delayMs: TOO_LATE_MS });
    await host.request('GET', '/_sim/github/slow');
    await eventually('every write has arrived', async () => {
      const calls = await host.calls({ system: 'github', method: 'POST' });
      return cases.every(({ number }) => calls.some(({ path }) => path.includes(`/issues/${number}/`))) || undefined;
    });
    const runs = await host.letTimePassUntil([...runIds.values()], isTerminal);
    for (const [number, runId] of runIds) {
      const run = runs.find((each) => each.runId === runId);
      if (run) ended.set(number, run);
    }
  });

  it.each(cases)('$name', async ({ number, ending }) => {
    const run = ended.get(number);
    const calls = await writesTo(number);
    expect({ calls: calls.length, status: run?.status }).toEqual({ calls: ending.calls, status: ending.status });
    expect(run && receiptOf(run)).toMatchObject(ending.receipt);
  });

  it('makes no mark, label or comment twice', async () => {
    const { issues } = await host.ask<{ issues: { number: number; labels: string[]; comments: object[] }[] }>(
      'GET',
      '/_sim/state',
    );
    for (const { number, labels, comments } of issues) {
      if (!cases.some((each) => each.number === number)) continue;
      expect(labels.length + comments.length, `issue ${number}`).toBeLessThanOrEqual(1);
    }
  });

  it('is not retried before the time that the target requests', async () => {
    const slow = cases.filter(({ fault }) => 'retryAfterSeconds' in fault);
    expect(slow).toHaveLength(EFFECTS.length);
    for (const { number } of slow) {
      const [first, second] = (await writesTo(number)).map(({ at }) => Date.parse(at));
      expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(RETRY_AFTER_SECONDS * 1000);
    }
  });
});

describe('a forbidden write is recorded and not sent', () => {
  it.each([
    ['policy denies it', 'denied', 'POLICY_DENIED', 0],
    ['policy fails over it', 'fails', 'POLICY_ERROR', 1],
    ['its tool is unknown', 'unknown', 'WORKFLOW_INVALID', 0],
  ])('%s', async (_what, workflow, code, before) => {
    const number = 2000 + workflow.length;
    const run = await host.waitForRun(await start(workflow, number), isTerminal);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code } });
    const decisions = run.commits.flatMap(({ events }) => events.filter(({ type }) => type === 'policy.decided'));
    if (code.startsWith('POLICY')) expect(decisions.at(-1)).toMatchObject({ verdict: 'deny' });
    expect(await writesTo(number)).toHaveLength(before);
  });

  it('the policies are invalid', async () => {
    await savePolicies('permit (principal');
    const run = await host.waitForRun(await start('natural', 2100), isTerminal);
    await savePolicies(POLICIES);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'POLICY_ERROR' } });
    expect(await writesTo(2100)).toEqual([]);
  });
});

describe('a workflow is refused when it is published, with the line of its mistake', () => {
  const workflow = (second: string) =>
    `name: wrong\nsteps:\n  - { id: a, tool: transform, needs: [] }\n  - ${second}\n`;

  it.each([
    ['an unknown tool', '{ id: b, tool: github.issue.burn }', 'steps.1.tool: unknown tool'],
    ['a cycle', '{ id: b, tool: transform, needs: [c] }\n  - { id: c, tool: transform, needs: [b] }', 'steps.1.needs:'],
    ['a bad expression', '{ id: b, tool: transform, with: { x: "{% ( %}" } }', 'steps.1.with.x:'],
    ['a missing reference', '{ id: b, tool: transform, with: { x: "{% steps.z.output %}" } }', 'steps.1.with.x:'],
  ])('%s', async (_what, second, says) => {
    const headers = { 'x-api-key': ACME_KEY, 'content-type': 'application/yaml' };
    const answer = await host.request('POST', '/api/v1/workflows', { headers, body: workflow(second) });
    expect(answer).toMatchObject({ status: 422, body: { code: 'WORKFLOW_INVALID' } });
    expect(answer.text).toContain(`line 4: ${says}`);
    expect((await host.api('/workflows/wrong')).status).toBe(404);
  });
});

it('a second run with the identical write reuses the receipt of the first, and no call is made', async () => {
  const first = await host.waitForRun(await start('natural', 3000), isTerminal);
  const second = await host.waitForRun(await start('natural', 3000), isTerminal);
  expect(second.status).toBe('succeeded');
  expect(await writesTo(3000)).toHaveLength(1);
  expect(receiptOf(second)).toEqual({ ...receiptOf(first), reusedBy: second.runId });
  const reused = second.commits.flatMap(({ events }) => events.filter(({ type }) => type === 'write.reused'));
  expect(reused).toMatchObject([{ firstRunId: first.runId }]);
});

it('workers that are killed at their commits do not exceed the write budget of a run, and lose no slot', async () => {
  await saveSettings(host, { caps: { maxConcurrency: 2 } });
  for (const [nth, kind] of [[2, 'crash_after'] as const, [6, 'crash_before'] as const, [10, 'crash_after'] as const]) {
    await host.fault({ function: 'WorkerStep', operation: 'TransactWriteItems', nth, kind });
  }
  const numbers = [4001, 4002, 4003, 4004];
  const runIds = await Promise.all(numbers.map((number) => start('budget', number)));
  const runs = await host.letTimePassUntil(runIds, isTerminal);
  const hits = (await host.faults()).map((fault) => fault.hits);
  await host.clearFaults();
  expect(hits).toEqual([1, 1, 1]);
  for (const run of runs) expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'CAP_EXCEEDED' } });
  for (const number of numbers) {
    const labels = (await writesTo(number)).map(({ body }) => (body as { labels: string[] }).labels.join());
    expect([...new Set(labels)], `issue ${number}`).toEqual(['one', 'two']);
  }
  expect(await placesTaken()).toBe(0);
});

async function placesTaken(): Promise<number> {
  const client = new DynamoDBClient(host.clientConfig());
  const Key = marshall(slotCounterKey('acme', 0));
  const { Item } = await client.send(new GetItemCommand({ TableName: host.tableName, Key, ConsistentRead: true }));
  client.destroy();
  return Item ? unmarshall(Item).running : -1;
}
