import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Compensation } from '../../../lambdas/run/events/write-events.ts';
import type { FaultRuleInput } from '../../../local/aws/faults.ts';
import { publish } from '../harness/definitions.ts';
import { type Incident, incident } from '../harness/deliveries.ts';
import { isTerminal, type ShownRun } from '../harness/host-client.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

/** More calls than a worker makes to undo two writes: a loop that exceeds this does not end. */
const CALLS_MAX = 15;
const BEFORE = 'c'.repeat(32);
const AFTER = 'd'.repeat(32);
const THEIRS = 'e'.repeat(32);

type RolledBack = ShownRun & { compensation: Compensation[] };

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost();
  await host.trustAutomations();
  const issue = { owner: 'octo-org', repo: 'payments', number: '{% trigger.number %}' };
  await publish(host, {
    name: 'handover',
    event: 'issues.handover',
    onFailure: 'rollback',
    steps: [
      {
        id: 'assign',
        tool: 'servicenow.incident.update',
        with: { sysId: '{% trigger.payload.sysId %}', fields: { assignment_group: AFTER } },
      },
      { id: 'label', tool: 'github.labels.add', with: { ...issue, labels: ['handed-over'] } },
      { id: 'hold', tool: 'wait.external', with: { event: 'go' } },
      { id: 'comment', tool: 'github.comment.create', with: { ...issue, body: 'handed over' } },
    ],
  });
});
afterAll(() => host.stop());

interface Handover {
  runId: string;
  filed: Incident;
  number: number;
}

/** A run that has made its first two writes and waits before the third. */
async function upToHold(number: number, again = false): Promise<Handover> {
  const filed = incident(`handed over ${number}`, { assignment_group: BEFORE });
  if (!again) await host.createIncident(filed);
  const { body, text } = await host.sendGithub({
    action: 'handover',
    sysId: filed.sysId,
    issue: { number, title: `Handover ${number}` },
    repository: { name: 'payments', full_name: 'octo-org/payments' },
  });
  const [runId] = body.runIds ?? [];
  if (!runId) throw new Error(text);
  await host.waitForRun(runId, ({ status }) => status === 'waiting_external');
  return { runId, filed, number };
}

async function failThird({ runId, number }: Handover): Promise<RolledBack> {
  const path = `/issues/${number}/comments`;
  await host.simulatedFault({ system: 'github', method: 'POST', path, kind: 'status', status: 422 });
  expect((await host.command(`/runs/${runId}/signal`, { event: 'go' })).status).toBe(200);
  return (await host.waitForRun(runId)) as RolledBack;
}

async function askBack(runId: string, key?: string): Promise<number> {
  return (await host.command(`/runs/${runId}/rollback`, { reason: 'wrong customer' }, key)).status;
}

const SERVICENOW = { authorization: `Basic ${Buffer.from('admin:admin').toString('base64')}` };

async function groupOf({ filed }: Handover): Promise<unknown> {
  const path = `/_sim/servicenow/api/now/table/incident/${filed.sysId}?sysparm_exclude_reference_link=true`;
  const { body } = await host.request<{ result: Record<string, string> }>('GET', path, { headers: SERVICENOW });
  return body.result.assignment_group;
}

/** Somebody else changes the incident. */
async function reassign({ filed }: Handover): Promise<void> {
  const body = JSON.stringify({ assignment_group: THEIRS });
  const path = `/_sim/servicenow/api/now/table/incident/${filed.sysId}`;
  await host.request('PATCH', path, { headers: SERVICENOW, body });
}

/** The calls about one handover that change something, in their order. */
async function changes({ filed, number }: Handover): Promise<string[]> {
  const calls = (await host.calls()).filter(
    ({ path }) => path.includes(filed.sysId) || path.includes(`/issues/${number}/`),
  );
  return calls.flatMap(({ method, path, body }) => {
    if (method === 'GET') return [];
    if (path.endsWith('/comments')) return ['comment'];
    if (path.includes('/labels')) return [method === 'DELETE' ? 'take the label away' : 'label'];
    return [`assign ${(body as Record<string, string>).assignment_group?.[0]}`];
  });
}

const outcomes = ({ compensation }: RolledBack) => compensation.map(({ step, outcome }) => `${step} ${outcome}`);
const eventsOf = ({ commits }: ShownRun, type: string) =>
  commits.flatMap(({ events }) => events.filter((event) => event.type === type));

describe('a run whose third write fails', () => {
  it('undoes the first two, newest first, each with its own decision and receipt', async () => {
    const handover = await upToHold(1);
    const run = await failThird(handover);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'TARGET_REFUSED' } });
    expect(outcomes(run)).toEqual(['label reversed', 'assign reversed']);
    expect(await changes(handover)).toEqual(['assign d', 'label', 'comment', 'take the label away', 'assign c']);
    expect(await groupOf(handover)).toBe(BEFORE);
    const decided = eventsOf(run, 'policy.decided').map((event) => ('step' in event ? event.step : ''));
    expect(decided).toEqual(['assign', 'label', 'comment', 'undo_label', 'undo_assign']);
    const receipts = Object.fromEntries(run.receipts.map(({ stepId, outcome }) => [stepId, outcome]));
    expect(receipts).toEqual({
      assign: 'reversed',
      label: 'reversed',
      comment: 'failed',
      undo_label: 'succeeded',
      undo_assign: 'succeeded',
    });
    for (const { grounds } of run.receipts) expect(grounds?.policies).toContain('trust');
  });

  it('does not undo a value that somebody else changed meanwhile, and undoes the rest', async () => {
    const handover = await upToHold(2);
    await reassign(handover);
    const run = await failThird(handover);
    expect(run.status).toBe('failed_terminal');
    expect(outcomes(run)).toEqual(['label reversed', 'assign drifted']);
    expect(await groupOf(handover)).toBe(THEIRS);
    expect(await changes(handover)).toEqual(['assign d', 'label', 'assign e', 'comment', 'take the label away']);
  });
});

describe('an operator', () => {
  it('can roll back a run, which ends it; an auditor cannot', async () => {
    const handover = await upToHold(3);
    expect(await askBack(handover.runId, 'local-auditor-key')).toBe(403);
    expect(await askBack(handover.runId, 'local-operator-key')).toBe(200);
    const run = (await host.waitForRun(handover.runId)) as RolledBack;
    expect(run.status).toBe('canceled');
    expect(outcomes(run)).toEqual(['label reversed', 'assign reversed']);
    expect(eventsOf(run, 'run.stop_requested')).toMatchObject([{ kind: 'rollback', actor: 'oscar' }]);
    expect(await groupOf(handover)).toBe(BEFORE);
    expect(await askBack(handover.runId)).toBe(409);
  });

  it('can have the same writes made again after a rollback', async () => {
    const first = await upToHold(4);
    await askBack(first.runId);
    await host.waitForRun(first.runId);
    await upToHold(4, true);
    const made = ['assign d', 'label'];
    expect(await changes(first)).toEqual([...made, 'take the label away', 'assign c', ...made]);
    expect(await groupOf(first)).toBe(AFTER);
  });

  it('undoes no write that two runs use', async () => {
    const first = await upToHold(5);
    const second = await upToHold(5, true);
    for (const { runId } of [second, first]) {
      await askBack(runId);
      const run = (await host.waitForRun(runId)) as RolledBack;
      expect(outcomes(run)).toEqual(['label irreversible', 'assign irreversible']);
    }
    expect(await changes(first)).toEqual(['assign d', 'label']);
    expect(await groupOf(first)).toBe(AFTER);
  });
});

/** A crash after a call differs from one before the next call only if the call is a commit. */
const DEATHS: [when: string, fault: FaultRuleInput, calls: number][] = [
  ['before any one of its AWS calls', { kind: 'crash_before' }, 6],
  ['after any one of its commits', { kind: 'crash_after', operation: 'TransactWriteItems' }, 3],
];

describe.each(DEATHS)('a worker that dies %s during a rollback', (_when, fault, calls) => {
  it('ends with every write undone once and logged', async () => {
    for (let nth = 1; nth <= CALLS_MAX; nth += 1) {
      const handover = await upToHold(1000 * calls + nth);
      await host.idle();
      await host.fault({ ...fault, function: 'WorkerStep', nth });
      expect(await askBack(handover.runId)).toBe(200);
      const [run] = (await host.letTimePassUntil([handover.runId], isTerminal)) as RolledBack[];
      const [rule] = await host.faults();
      await host.clearFaults();
      await accountedFor(handover, run, `call ${nth}`);
      if (rule?.hits === 0) {
        expect(nth).toBeGreaterThan(calls);
        return;
      }
    }
    throw new Error(`it takes more than ${CALLS_MAX} calls`);
  });
});

/** An undo with an unknown outcome is repeated by a second attempt, which changes nothing. */
async function accountedFor(handover: Handover, run: RolledBack | undefined, struck: string): Promise<void> {
  if (!run) throw new Error('there is no run');
  expect(run.status, struck).toBe('canceled');
  expect(outcomes(run), struck).toEqual(['label reversed', 'assign reversed']);
  expect(eventsOf(run, 'write.compensated'), struck).toHaveLength(2);
  expect(eventsOf(run, 'write.reversed'), struck).toHaveLength(2);
  expect(await groupOf(handover), struck).toBe(BEFORE);
  const made = await changes(handover);
  for (const [step, change] of Object.entries({ undo_label: 'take the label away', undo_assign: 'assign c' })) {
    const attempts = run.receipts.find(({ stepId }) => stepId === step)?.attempt ?? 0;
    const times = made.filter((each) => each === change).length;
    expect(times, `${struck}: ${change}`).toBeGreaterThanOrEqual(1);
    expect(times, `${struck}: ${change}`).toBeLessThanOrEqual(attempts);
  }
}
