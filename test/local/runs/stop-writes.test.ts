import { afterAll, beforeAll, expect, it } from 'vitest';
import { trustedKeys } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { piped } from '../../cli/command-line.ts';
import { IS_STORM } from '../../storm.ts';
import { type Incident, incident, incidentInserted } from '../harness/deliveries.ts';
import { eventually, inParallel } from '../harness/eventually.ts';
import { ACME_KEY, isTerminal, type ShownRun } from '../harness/host-client.ts';
import { labelWrites, triageWrites } from '../harness/seen-writes.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

const INCIDENTS = IS_STORM ? 50 : 20;
const ISSUES = 3 * INCIDENTS;
const RUNS = ISSUES + INCIDENTS;
const CONCURRENCY = 8;
const SWITCHED_AT = Math.floor(0.3 * RUNS);
/** Longer than functions cache settings. */
const KNOWN_EVERYWHERE_AFTER_MS = 61_000;
const TIMEOUT_MS = 10 * 60_000;

type HeldRun = Omit<ShownRun, 'steps'> & {
  flags: Record<string, boolean> | null;
  steps: { id: string; status: string; flag?: string; attempt?: number }[];
};

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost();
  await host.trustAutomations();
});
afterAll(() => host.stop());

/** As an owner does. */
async function turnWrites(on: boolean): Promise<void> {
  const { status, text } = await host.request('PUT', '/api/v1/settings', {
    headers: { 'x-api-key': ACME_KEY },
    body: JSON.stringify({ features: { 'writes.enabled': on } }),
  });
  expect(status, text).toBe(200);
}

const begin = (one: number | Incident): Promise<string> =>
  typeof one === 'number' ? host.openIssue(one) : report(one);

async function report(filed: Incident): Promise<string> {
  const { body, text } = await host.sendServicenow(incidentInserted(filed), { atMs: await host.now() });
  const [runId] = body.runIds ?? [];
  if (!runId) throw new Error(text);
  return runId;
}

const writes = async () => (await host.calls()).filter(({ method }) => method === 'POST' || method === 'PATCH');

it(
  'writes off, and on again, with many runs in progress: nothing is lost, and each write is made once',
  async () => {
    const incidents = Array.from({ length: INCIDENTS }, (_, index) => incident(`while writes are off ${index}`));
    await inParallel(incidents, CONCURRENCY, (each) => host.createIncident(each));
    const ended = await host.openIssue(1_999);
    await host.waitForRun(ended);
    const before = (await writes()).length;
    // Incidents have three writes: many runs are between two of them when the switch is turned.
    const all: (number | Incident)[] = Array.from({ length: ISSUES }, (_, index) => 2_000 + index);
    for (const [index, each] of incidents.entries()) all.splice(index * 4, 0, each);
    let begun = 0;
    let firstBegun = '';
    const { promise: switched, resolve: isSwitched } = Promise.withResolvers<void>();
    const runIds = await inParallel(all, CONCURRENCY, async (each) => {
      begun += 1;
      if (begun === SWITCHED_AT) {
        await eventually('the first run has ended', async () => isTerminal(await host.run(firstBegun)) || undefined);
        await turnWrites(false);
        // No run that begins later can write, however fast the workers are.
        await host.advance(KNOWN_EVERYWHERE_AFTER_MS);
        isSwitched();
      }
      if (begun > SWITCHED_AT) await switched;
      const runId = await begin(each);
      firstBegun ||= runId;
      return runId;
    });
    expect(new Set(runIds).size).toBe(RUNS);
    await host.advance(KNOWN_EVERYWHERE_AFTER_MS);
    await host.idle();
    const sentBefore = (await writes()).length - before;
    expect(sentBefore).toBeGreaterThan(0);
    expect(sentBefore).toBeLessThan(ISSUES + 3 * INCIDENTS);

    // Runs that were delayed start now, and those that wait ask again: nothing is sent, and nothing more is committed.
    const look = () => inParallel(runIds, 1, async (runId) => (await host.run(runId)) as unknown as HeldRun);
    const minutesPass = async () => {
      for (let minute = 0; minute < 2; minute += 1) {
        await host.advance(KNOWN_EVERYWHERE_AFTER_MS);
        await host.idle();
      }
    };
    await minutesPass();
    const waiting = await look();
    await minutesPass();
    const stillWaiting = await look();
    expect((await writes()).length - before).toBe(sentBefore);
    expect(stillWaiting.map(({ head }) => head.seq)).toEqual(waiting.map(({ head }) => head.seq));
    const open = stillWaiting.filter((run) => !isTerminal(run));
    expect(open.length).toBeGreaterThan(RUNS / 2);
    for (const run of open) {
      expect(
        run.steps.flatMap(({ flag }) => flag ?? []),
        run.runId,
      ).toEqual(['writes.enabled']);
      expect(run.status).toBe('failed_retryable');
    }
    // Runs that started while writes were off recorded it.
    expect(open.filter(({ flags }) => flags?.['writes.enabled'] === false).length).toBeGreaterThan(0);

    const status = await piped(['status', '--url', host.url]);
    expect(status.stdout).toContain('writes are switched off: steps that would write wait');
    const [held] = open as [HeldRun];
    const shown = await piped(['runs', 'show', held.runId, '--url', host.url]);
    expect(shown.stdout.replaceAll(/\s+/g, ' ')).toContain('settings set features.writes.enabled=true');

    // An undo is a write, too.
    const undo = await host.command<{ rolledBackBy: string }>(`/runs/${ended}/rollback`, { reason: 'test' });
    expect(undo.status, undo.text).toBe(200);
    const { rolledBackBy } = undo.body;
    const undoing = (await host.waitForRun(rolledBackBy, ({ steps }) => steps.length > 0)) as unknown as HeldRun;
    expect(undoing).toMatchObject({ status: 'rolling_back', steps: [{ id: 'undo_label', flag: 'writes.enabled' }] });
    await host.idle();
    expect((await writes()).length - before).toBe(sentBefore);

    await turnWrites(true);
    const runs = await host.letTimePassUntil([...runIds, rolledBackBy], (run) => isTerminal(run) && !!run.evidence);
    expect(runs.filter((run) => run.status !== 'succeeded').map((run) => [run.runId, run.status, run.error])).toEqual(
      [],
    );
    const calls = await host.calls();
    for (const each of all) {
      if (typeof each === 'number') expect(labelWrites(calls, each), `issue ${each}`).toBe(1);
      else expect(triageWrites(calls, each), each.number).toEqual({ assign: 1, note: 1, post: 1 });
    }
    const keys = trustedKeys(await (await fetch(`${host.url}/.well-known/countersign-keys.json`)).text());
    const verdicts = await inParallel(runs, 2, async ({ runId }) => {
      const [document, envelope] = await Promise.all([bytes(runId, 'bundle.json'), bytes(runId, 'bundle.dsse.json')]);
      return verifyBundle({ document, envelope, keys }).verdict;
    });
    expect(verdicts).toEqual(runs.map(() => 'valid'));

    // Each change is in the history, page by page.
    const first = await host.api<Changes>('/changes?kind=settings&limit=1');
    const second = await host.api<Changes>(`/changes?kind=settings&limit=1&cursor=${first.body.nextCursor}`);
    expect([first, second].map(({ body }) => body.changes[0]?.after)).toMatchObject([
      { features: { 'writes.enabled': true } },
      { features: { 'writes.enabled': false } },
    ]);
  },
  TIMEOUT_MS,
);

interface Changes {
  changes: { after: unknown }[];
  nextCursor: string | null;
}

async function bytes(runId: string, file: string): Promise<Buffer> {
  const response = await fetch(`${host.url}/api/v1/runs/${runId}/evidence/${file}`, {
    headers: { 'x-api-key': ACME_KEY },
  });
  return Buffer.from(await response.arrayBuffer());
}
