import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { allCommands } from '../../bin/commands/commands.ts';
import type { Caller } from '../../lambdas/api/authorizer/caller.ts';
import { readStatus } from '../../lambdas/api/operations/status.ts';
import { STATUS_TEXTS } from '../../lambdas/api/operations/status-texts.ts';
import { newOutboxEntry } from '../../lambdas/outbox/outbox.ts';
import { later } from '../../lambdas/run/lease.ts';
import type { Run } from '../../lambdas/run/run.ts';
import { ChangeDraft } from '../contracts/run-store/change-draft.ts';
import { BY } from '../contracts/run-store/run-store-bench.ts';
import { STORY_BEGINS_AT as AT, FakeClock } from '../fakes/fake-clock.ts';
import { MemoryRunStore } from '../fakes/memory/memory-run-store.ts';
import { accepted } from '../fakes/story.ts';

const MINUTE_MS = 60_000;
const OPERATOR = { tenant: 'acme', person: 'oscar', role: 'operator' } as Caller;
let runs: MemoryRunStore;
let clock: FakeClock;
let letters: { queue: 'steps'; messages: number; complete: boolean; oldestAt?: string }[];

beforeEach(() => {
  runs = new MemoryRunStore();
  clock = new FakeClock(later(AT, 60 * MINUTE_MS));
  letters = [];
});

const status = (caller = OPERATOR) => readStatus({ runs, clock, deadLetters: { counts: async () => letters } }, caller);
const kinds = async () => (await status()).problems.map(({ kind, count }) => [kind, count]);

let begunRuns = 0;
async function begin(at = AT, tenant = 'acme'): Promise<Run> {
  begunRuns += 1;
  const runId = `run_${begunRuns}`;
  const { run, ingest } = accepted({ tenant, runId, at, key: runId, title: `Run ${begunRuns}` });
  await runs.ingest(ingest);
  return run;
}
const started = (run: Run) =>
  new ChangeDraft(run, later(AT, MINUTE_MS)).move('enriching', BY).move('ready', BY).move('running', BY);

describe('the status of a tenant', () => {
  it('is healthy if nothing is wrong, although other tenants have problems', async () => {
    await runs.recordSweep('acme', { at: later(AT, 59 * MINUTE_MS), due: 1, oldestDueAt: later(AT, 58 * MINUTE_MS) });
    await runs.commit(
      started(await begin())
        .move('succeeded', BY)
        .seal(),
    );
    await runs.commit(
      started(await begin(AT, 'globex'))
        .move('needs_human', BY)
        .seal(),
    );
    expect(await status()).toMatchObject({
      healthy: true,
      problems: [],
      counts: { byStatus: [{ status: 'succeeded', count: 1 }] },
      lastSweepAt: later(AT, 59 * MINUTE_MS),
    });
  });

  it('names what is wrong, since when, how many runs are affected, the oldest of them and what to do', async () => {
    const error = { code: 'OUTCOME_UNKNOWN', message: 'lost' } as const;
    const oldest = await begin();
    for (const run of [await begin(later(AT, MINUTE_MS)), oldest]) {
      await runs.commit(started(run).move('needs_human', BY, error).seal());
    }
    const { healthy, problems } = await status();
    expect(healthy).toBe(false);
    expect(problems).toEqual([
      {
        kind: 'needs_human',
        severity: 'act',
        what: '2 runs need a human',
        count: 2,
        since: AT,
        oldestRun: {
          runId: oldest.runId,
          title: oldest.enrichment?.title,
          errorCode: expect.toBeOneOf([null, expect.any(String)]),
        },
        command: 'npx countersign runs list --needs-resolution',
        runbook: 'A run needs a human',
      },
    ]);
  });

  it('knows overdue approvals, missing connections, failures, pauses, queued and retrying runs', async () => {
    await runs.commit(
      started(await begin())
        .note({ approvalOverdueSince: AT })
        .seal(),
    );
    const missing = { code: 'CONNECTION_MISSING', message: 'no' } as const;
    await runs.commit(
      started(await begin())
        .move('failed_terminal', BY, missing)
        .seal(),
    );
    await runs.commit(
      started(await begin())
        .move('timed_out', BY)
        .seal(),
    );
    await runs.commit(
      started(await begin())
        .move('paused', BY)
        .seal(),
    );
    await runs.commit(
      started(await begin())
        .move('failed_retryable', BY)
        .seal(),
    );
    await begin();
    expect(await kinds()).toEqual([
      ['approvals_overdue', 1],
      ['connection_missing', 1],
      ['failed', 1],
      ['timed_out', 1],
      ['paused', 1],
      ['waiting_for_slot', 1],
      ['retrying', 1],
    ]);
    clock.advance(24 * 60 * MINUTE_MS);
    expect((await kinds()).map(([kind]) => kind)).not.toContain('failed');
  });

  it('knows a sweeper that stopped, rows that stay due, stuck outbox entries and runs that are not sealed', async () => {
    await runs.recordSweep('acme', { at: later(AT, 50 * MINUTE_MS), due: 7, oldestDueAt: AT });
    const run = await begin();
    const entry = (kind: 'seal_evidence' | 'export_run', attempts: number) => ({
      ...newOutboxEntry({ kind, tenant: 'acme', runId: run.runId }, AT),
      attempts,
    });
    const ends = new ChangeDraft(run, later(AT, MINUTE_MS)).move('canceled', BY);
    await runs.commit(ends.enqueue(entry('seal_evidence', 1)).enqueue(entry('export_run', 5)).seal());
    expect(await kinds()).toEqual([
      ['sweeper_silent', 1],
      ['due_rows', 7],
      ['outbox_stuck', 1],
      ['not_sealed', 1],
    ]);
  });

  it('counts dead letters for those who may see them, and says so to the others', async () => {
    letters = [{ queue: 'steps', messages: 3, complete: false, oldestAt: AT }];
    expect((await status()).problems).toMatchObject([
      { kind: 'dead_letters', what: 'more than 3 messages are in dead-letter queues', since: AT },
    ]);
    expect(await status({ ...OPERATOR, role: 'member' })).toMatchObject({ problems: [], notChecked: ['dead letters'] });
  });
});

it('each problem names a heading of the RUNBOOK and a command with its options', async () => {
  const commands = await allCommands();
  const runbook = readFileSync('RUNBOOK.md', 'utf8');
  for (const { command, runbook: heading } of Object.values(STATUS_TEXTS)) {
    expect(runbook).toContain(`\n## ${heading}\n`);
    const [, , ...words] = command.split(' ');
    const text = words.join(' ');
    const known = commands.find(({ name }) => text === name || text.startsWith(`${name} `));
    const options = words.filter((word) => word.startsWith('--')).map((word) => word.slice(2));
    expect(options.filter((option) => !known?.options[option])).toEqual([]);
  }
});
