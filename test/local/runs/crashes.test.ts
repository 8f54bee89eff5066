import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FaultRuleInput } from '../../../local/aws/faults.ts';
import { incident } from '../harness/deliveries.ts';
import { isTerminal, type ShownRun } from '../harness/host-client.ts';
import { labelWrites, triageWrites } from '../harness/seen-writes.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

/** More calls than a worker makes for any run here: a loop that gets this far does not end by itself. */
const CALLS_MAX = 40;
const WORKER = 'WorkerStep';
let host: TestHost;

beforeAll(async () => {
  host = await startTestHost();
  await host.trustAutomations();
});
afterAll(() => host.stop());
/** A failed test may leave its fault. */
beforeEach(() => host.clearFaults());

const isSealed = (run: ShownRun) => isTerminal(run) && run.evidence !== null;

/** Injects the fault at the nth call of the worker, for n = 1, 2, … until a run has no nth call; returns the number of calls. */
async function strikeEveryCall(
  fault: Omit<FaultRuleInput, 'nth' | 'function'>,
  start: (n: number) => Promise<string>,
  check: (n: number, run: ShownRun) => Promise<void>,
): Promise<number> {
  for (let nth = 1; nth < CALLS_MAX; nth += 1) {
    await host.fault({ ...fault, function: WORKER, nth });
    const [run] = await host.letTimePassUntil([await start(nth)], isSealed);
    const [rule] = await host.faults();
    await host.clearFaults();
    if (!run) throw new Error('there is no run');
    if (rule?.hits === 0) return nth - 1;
    await check(nth, run);
  }
  throw new Error(`a run takes more than ${CALLS_MAX} calls`);
}

const FAULTS: [string, Omit<FaultRuleInput, 'nth' | 'function'>][] = [
  ['dies before', { kind: 'crash_before' }],
  ['dies after', { kind: 'crash_after' }],
  ['never hears back from', { kind: 'lost_reply', times: 3 }],
];

describe.each(FAULTS)('a worker that %s any one of its AWS calls', (name, fault) => {
  it('does not prevent a triage run from succeeding with one note and one message', async () => {
    const filed = (n: number) => incident(`triage ${name} call ${n}`);
    const calls = await strikeEveryCall(
      fault,
      (n) => host.fileIncident(filed(n)),
      async (n, run) => {
        expect(run.status, `call ${n}`).toBe('succeeded');
        const { assign, note, post } = triageWrites(await host.calls(), filed(n));
        expect({ note, post }, `call ${n}`).toEqual({ note: 1, post: 1 });
        // Setting a field twice equals once, so it is repeated, but only by a second attempt.
        expect(assign, `call ${n}`).toBeLessThanOrEqual(attemptsAt(run, 'assign'));
      },
    );
    expect(calls).toBeGreaterThanOrEqual(6);
  });
});

/** The SDK tries a throttled call three times with growing waits, so the shorter run does. */
const THROTTLED: (typeof FAULTS)[number] = ['is throttled at', { kind: 'throttle', times: 3 }];

describe.each([...FAULTS.slice(0, 2), THROTTLED])('a worker that %s any one of its AWS calls', (name, fault) => {
  it('does not prevent a label run from succeeding; only a second attempt adds the label again', async () => {
    const issue = (n: number) => n + 1000 * name.length;
    const calls = await strikeEveryCall(
      fault,
      (n) => host.openIssue(issue(n)),
      async (n, run) => {
        expect(run.status, `call ${n}`).toBe('succeeded');
        const posts = labelWrites(await host.calls(), issue(n));
        expect(posts).toBeGreaterThanOrEqual(1);
        expect(posts, `call ${n}`).toBeLessThanOrEqual(attemptsAt(run, 'label'));
      },
    );
    expect(calls).toBeGreaterThanOrEqual(4);
  });
});

function attemptsAt(run: ShownRun, stepId: string): number {
  return run.receipts.find((receipt) => receipt.stepId === stepId)?.attempt ?? 0;
}
