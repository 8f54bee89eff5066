import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DynamoAcceptedRuns } from '../../../lambdas/evidence/accepted-runs/dynamo-accepted-runs.ts';
import type { AcceptedRows } from '../../../lambdas/evidence/accepted-runs/write-accepted-list.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { DynamoRunStore } from '../../../lambdas/run/dynamo/dynamo-run-store.ts';
import { RunDraft } from '../../../lambdas/run/run-draft.ts';
import type { RunStore } from '../../../lambdas/run/run-store.ts';
import { newRun } from '../../../lambdas/run-changes/new-run.ts';
import { openRunTable } from '../../contracts/run-store/run-table.ts';
import { allOf } from '../../fakes/all-of.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { MemoryAcceptedRuns } from '../../fakes/memory/memory-accepted-runs.ts';
import { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';

interface Opened {
  rows: AcceptedRows;
  store: RunStore;
  close(): Promise<void>;
}

const PAUSE = { random: () => 0, sleep: async () => {} };

const opened: [string, () => Promise<Opened>][] = [
  [
    'in memory',
    async () => {
      const store = new MemoryRunStore();
      return { store, rows: new MemoryAcceptedRuns(store), close: async () => {} };
    },
  ],
  [
    'in DynamoDB',
    async () => {
      const { client, table, close } = await openRunTable();
      const store = new DynamoRunStore(client, table, PAUSE, new FakeClock());
      return { store, rows: new DynamoAcceptedRuns(client, table, PAUSE), close };
    },
  ],
];

function created(runId: string, at: string, tenant = 'acme') {
  const trigger = { source: 'github' as const, event: 'issues.opened', fields: {}, payload: {}, receivedAt: at };
  const automation = { name: 'label', workspace: 'default', workflow: { name: 'label', version: 1 } };
  return { trigger, ...newRun({ runId, tenant, automation, key: runId, trigger, payloadHash: sha256Hex('') }) };
}

describe.each(opened)('the rows of accepted runs %s', (_where, open) => {
  let rows: AcceptedRows;
  let store: RunStore;
  let close: () => Promise<void>;
  beforeAll(async () => {
    ({ rows, store, close } = await open());
    const [first, second] = [
      created('run_a', '2026-03-01T10:00:00.000Z'),
      created('run_b', '2026-03-01T10:00:00.000Z'),
    ];
    const ingest = (runs: ReturnType<typeof created>[]) =>
      store.ingest({ records: [], trigger: (runs[0] as ReturnType<typeof created>).trigger, runs, at: '' });
    // One webhook starts two runs.
    await ingest([first, second]);
    await ingest([created('run_c', '2026-03-01T11:00:00.000Z')]);
    await ingest([created('run_g', '2026-03-01T10:30:00.000Z', 'globex')]);
    // A change of one run creates another, as the rollback of an ended run does.
    const draft = new RunDraft({ run: first.run, steps: new Map() }, '2026-03-01T10:59:59.999Z');
    draft.record({ type: 'run.assigned', assignee: 'ben', actor: 'ben' });
    draft.create(created('run_d', '2026-03-01T10:59:59.999Z'));
    expect(await store.commit(draft.seal())).toEqual({ outcome: 'committed' });
    const sealedAt = '2026-03-01T12:00:00.000Z';
    const record = { documentKey: 'd', envelopeKey: 'e', sha256: sha256Hex(''), sizeBytes: 1, sealedAt };
    const logged = { runId: 'run_b', sha256: sha256Hex(''), head: sha256Hex(''), count: 1, sealedAt };
    await store.completeSeal('acme.run_b.seal_evidence', 'acme', 'run_b', record, { logged, outboxEntries: [] });
  });
  afterAll(() => close());

  it('have every run from the transaction that accepts it, in its time, for its own tenant', async () => {
    const found = await allOf(rows.accepted('acme', '2026-03-01T10:00:00.000Z', '2026-03-01T11:00:00.000Z'));
    expect(found.toSorted((a, b) => (a.runId < b.runId ? -1 : 1))).toEqual([
      { runId: 'run_a', acceptedAt: '2026-03-01T10:00:00.000Z' },
      { runId: 'run_b', acceptedAt: '2026-03-01T10:00:00.000Z' },
      { runId: 'run_d', acceptedAt: '2026-03-01T10:59:59.999Z' },
    ]);
  });

  it('show which runs are sealed, and the end of the chain of each', async () => {
    expect(await rows.sealed('acme', ['run_a', 'run_b', 'run_b', 'run_x'])).toEqual(new Set(['run_b']));
    expect(await rows.runs('acme', ['run_x'])).toEqual([]);
    const [run] = await rows.runs('acme', ['run_a']);
    expect(run).toMatchObject({ runId: 'run_a', seq: 2 });
    const hashes = await rows.commitHashes('acme', [
      { runId: 'run_a', count: 2 },
      { runId: 'run_b', count: 9 },
    ]);
    expect([...hashes]).toEqual([['run_a', run?.headHash]]);
  });

  it('remember how far the lists are written', async () => {
    expect(await rows.state('acme')).toBeUndefined();
    const state = { writing: { from: '2026-03-01T10:00:00.000Z', until: '2026-03-01T11:00:00.000Z' } };
    expect(await rows.saveState('acme', undefined, state)).toBe(true);
    expect(await rows.state('acme')).toEqual(state);
    const later = { ...state, last: { until: state.writing.until, sha256: sha256Hex('') } };
    // The second time, as if the response of the first was lost.
    for (const _time of [1, 2]) expect(await rows.saveState('acme', state, later)).toBe(true);
    for (const read of [undefined, state]) expect(await rows.saveState('acme', read, state)).toBe(false);
    expect(await rows.state('acme')).toEqual(later);
    expect(await rows.state('globex')).toBeUndefined();
    expect(await rows.lastClosed('acme')).toBeUndefined();
  });
});
