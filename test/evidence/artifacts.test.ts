import { Readable } from 'node:stream';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  ExportDraft,
  type Exports,
  exportRun,
  exportSealedRun,
  exportTogether,
} from '../../lambdas/evidence/export/export-run.ts';
import { canonicalJson, hashOf, sha256Hex } from '../../lambdas/run/canonical-json.ts';
import type { ArtifactReference, RunRow } from '../../lambdas/run/run-store.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryEvidenceStore } from '../fakes/memory-evidence-store.ts';
import { MemoryLog } from '../fakes/memory-log.ts';
import { noise } from '../fakes/noise.ts';
import { rowsOf, type WholeRun } from '../fakes/whole-run.ts';
import { GovernedStory } from './governed-story.ts';

const { run, trigger, steps, commits, approvals, receipts } = new GovernedStory().contents;
const whole: WholeRun = { run, trigger, steps, commits, approvals };

const SIEM = 'siem/acme/2026/01/02/run_00000001.jsonl';
const ENRICHMENT = 'artifacts/acme/run_00000001/enrichment.json';
const VALUES = 'artifacts/acme/run_00000001/values.json';
const COMPLETION = 'artifacts/acme/run_00000001/completion.json';

/** A bucket that rejects some keys until it is repaired. */
class FaultyStore extends MemoryEvidenceStore {
  refused: string[] = [];

  override async putOnce(key: string, content: Buffer, contentType: string): Promise<boolean> {
    if (this.refused.includes(key)) throw new Error(`the bucket rejects ${key}`);
    return super.putOnce(key, content, contentType);
  }
}

let store: FaultyStore;
let log: MemoryLog;
beforeEach(() => {
  store = new FaultyStore();
  log = new MemoryLog();
});
const drafted = (rows: RunRow[] = rowsOf(whole), wanted: Exports['wanted'] = ['siem', 'artifacts']) => {
  const draft = new ExportDraft(wanted);
  for (const row of rows) draft.take(row);
  return draft;
};
const exports = () => ({ store, artifacts: store, wanted: ['siem', 'artifacts'] as const });
const parsed = (key: string) => JSON.parse(String(store.peek(key)));

describe('6.10 the exports of a finished run', () => {
  it('are the SIEM lines and one artifact each of enrichment, completion and values', async () => {
    await exportRun(exports(), run, drafted(), log);
    expect(store.keys()).toEqual([SIEM, ENRICHMENT, COMPLETION, VALUES]);
  });

  it('are only those that the stage has enabled', async () => {
    await exportRun(exports(), run, drafted(rowsOf(whole), ['siem']), log);
    expect(store.keys()).toEqual([SIEM]);
  });

  it('contain exactly the bytes whose hash is in the evidence', async () => {
    await exportRun(exports(), run, drafted(), log);
    expect(sha256Hex(store.peek(ENRICHMENT) ?? '')).toBe(hashOf(run.enrichment));
    const outputs: { id: string; output?: unknown }[] = parsed(COMPLETION).steps;
    const classified = commits.flatMap(({ events }) => events).find((event) => event.type === 'step.succeeded');
    expect(hashOf(outputs.find(({ id }) => id === classified?.step)?.output)).toBe(classified?.outputHash);
  });

  it('are in canonical form, with the steps in their order', async () => {
    await exportRun(exports(), run, drafted(), log);
    expect(String(store.peek(COMPLETION))).toBe(canonicalJson(parsed(COMPLETION)));
    expect(parsed(COMPLETION).steps.map(({ id }: { id: string }) => id)).toEqual(steps.map(({ id }) => id));
  });

  it('say how it ended, with the texts of its errors', async () => {
    await exportRun(exports(), run, drafted(), log);
    expect(parsed(COMPLETION)).toMatchObject({
      runId: 'run_00000001',
      status: 'failed_terminal',
      error: { code: 'TARGET_REFUSED', message: 'Slack says: CANARY-error' },
    });
  });

  it('lack the enrichment of a run that ended before it had one', async () => {
    const { enrichment: _none, ...early } = run;
    await exportRun(exports(), early, drafted(rowsOf({ ...whole, run: early, steps: [] })), log);
    expect(store.keys()).toEqual([SIEM, COMPLETION, VALUES]);
  });

  it('do not depend on each other: the others are written, and the failure is reported', async () => {
    store.refused = [ENRICHMENT];
    const first = await exportRun(exports(), run, drafted(), log);
    expect([first.complete, first.artifacts.map(({ name }) => name)]).toEqual([false, ['completion', 'values']]);
    expect(store.keys()).toEqual([SIEM, COMPLETION, VALUES]);
    expect(log.lines).toMatchObject([{ level: 'warn', details: { key: ENRICHMENT } }]);
    store.refused = [];
    const second = await exportRun(exports(), run, drafted(), log);
    expect(second.complete).toBe(true);
    for (const { key, sha256, sizeBytes } of second.artifacts) {
      const stored = store.peek(key) ?? Buffer.from('');
      expect([sha256, sizeBytes]).toEqual([sha256Hex(stored), stored.length]);
    }
    expect(second.artifacts.map(({ key }) => key)).toEqual([ENRICHMENT, COMPLETION, VALUES]);
    expect(store.keys()).toEqual([SIEM, COMPLETION, VALUES, ENRICHMENT]);
  });
});

describe('6.10 the artifacts of runs that are sealed together', () => {
  const second = { ...run, runId: 'run_00000002' };
  const referred = ({ key, offset = 0, sizeBytes }: ArtifactReference) => store.peek(key, { offset, sizeBytes });
  const together = (...exported: ExportDraft[]) =>
    exportTogether(
      { exports: exports(), clock: new FakeClock(), log },
      exported.map((draft, index) => ({ run: index === 0 ? run : second, exported: draft })),
    );

  it('are lines of one object; each run refers to its own, with their digests', async () => {
    const results = await together(drafted(), drafted(rowsOf({ ...whole, run: second })));
    const [key] = store.keys().filter((each) => each.startsWith('artifacts/'));
    expect(key).toMatch(/^artifacts\/acme\/2026-01-02\/[0-9a-f]{64}\.jsonl$/);
    expect(store.keys()).toHaveLength(2);
    for (const { artifacts } of results) {
      expect(artifacts.map(({ name }) => name)).toEqual(['enrichment', 'completion', 'values']);
      for (const each of artifacts) expect([each.key, sha256Hex(referred(each) ?? '')]).toEqual([key, each.sha256]);
    }
    const values = results.map(({ artifacts }) => JSON.parse(String(artifacts[2] && referred(artifacts[2]))).runId);
    expect(values).toEqual(['run_00000001', 'run_00000002']);
  });

  it('are objects of their own if the run is large', async () => {
    const output = { text: noise('large', 2 * 1024 * 1024) };
    const large = { ...whole, run: second, steps: steps.map((step) => ({ ...step, output }) as typeof step) };
    const [, { artifacts } = { artifacts: [] }] = await together(drafted(), drafted(rowsOf(large)));
    expect(artifacts.map(({ key }) => key)).toEqual(
      ['enrichment', 'completion', 'values'].map((name) => `artifacts/acme/run_00000002/${name}.json`),
    );
    for (const { key, sha256 } of artifacts) expect(sha256Hex(store.peek(key) ?? '')).toBe(sha256);
  });
});

describe('6.10 an export that failed', () => {
  const completed: string[] = [];
  const message = { entryId: 'acme.run_00000001.export_run', tenant: 'acme', runId: 'run_00000001' };
  const exporter = (loaded: WholeRun | undefined) => ({
    runs: {
      everyRow: () => Readable.from(loaded ? rowsOf(loaded) : []),
      receipts: async () => receipts,
      completeOutboxEntry: async (entryId: string) => void completed.push(entryId),
      completeExport: async (entryId: string) => void completed.push(entryId),
    },
    exports: exports(),
    log,
  });
  beforeEach(() => completed.splice(0));

  it('gets an outbox entry; one that succeeded does not', async () => {
    const clock = new FakeClock();
    const both = () => exportTogether({ exports: exports(), clock, log }, [{ run, exported: drafted() }]);
    expect(await both()).toMatchObject([{ outboxEntries: [], artifacts: { length: 3 } }]);
    const stored = store.keys();
    expect(stored).toHaveLength(2);
    for (const refused of stored) {
      store = new FaultyStore();
      store.refused = [refused];
      expect(await both()).toMatchObject([
        { outboxEntries: [{ id: message.entryId, kind: 'export_run', attempts: 0 }] },
      ]);
      expect(store.keys()).toHaveLength(1);
    }
  });

  it('is repeated, and its outbox entry is completed only then', async () => {
    store.refused = [SIEM];
    await expect(exportSealedRun(exporter(whole), message)).rejects.toThrow('not all of run_00000001 is exported');
    expect(completed).toEqual([]);
    store.refused = [];
    await exportSealedRun(exporter(whole), message);
    expect(completed).toEqual([message.entryId]);
    expect(store.keys()).toHaveLength(4);
  });

  it('of a missing run is dropped, and the log says so', async () => {
    await exportSealedRun(exporter(undefined), message);
    expect([completed, store.keys(), log.messages('warn').length]).toEqual([[message.entryId], [], 1]);
  });
});
