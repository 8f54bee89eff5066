import { Readable } from 'node:stream';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  ExportDraft,
  type Exports,
  exportRun,
  exportSealedRun,
  exportTogether,
} from '../../../lambdas/evidence/export/export-run.ts';
import { canonicalJson, hashOf, sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import type { ArtifactReference, RunRow } from '../../../lambdas/run/run-store.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { MemoryEvidenceStore } from '../../fakes/memory/memory-evidence-store.ts';
import { MemoryLog } from '../../fakes/memory/memory-log.ts';
import { noise } from '../../fakes/noise.ts';
import { rowsOf, type WholeRun } from '../../fakes/whole-run.ts';
import { GovernedStory } from '../bundle/governed-story.ts';

const { run, trigger, steps, commits, approvals, receipts } = new GovernedStory().contents;
const whole: WholeRun = { run, trigger, steps, commits, approvals };

const SIEM = 'siem/acme/2026/01/02/run_00000001.jsonl';

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
/** One object, whose name is the hash of its lines. */
const LINES = [...drafted().artifacts(run)].map(({ content }) => `${content}\n`).join('');
const ARTIFACTS = `artifacts/acme/run_00000001/${sha256Hex(LINES)}.jsonl`;
const exports = () => ({ store, artifacts: store, wanted: ['siem', 'artifacts'] as const });
/** What a reference of a run leads to. */
const referred = ({ key, offset = 0, sizeBytes }: ArtifactReference) => store.peek(key, { offset, sizeBytes });
async function exported(name: ArtifactReference['name']): Promise<Buffer> {
  const { artifacts } = await exportRun(exports(), run, drafted(), log);
  const reference = artifacts.find((each) => each.name === name);
  return (reference && referred(reference)) ?? Buffer.from('');
}
const completion = async () => JSON.parse(String(await exported('completion')));

describe('6.10 the exports of a finished run', () => {
  it('are the SIEM lines, and one object with enrichment, completion and values', async () => {
    const { artifacts } = await exportRun(exports(), run, drafted(), log);
    expect(store.keys()).toEqual([SIEM, ARTIFACTS]);
    expect(artifacts.map(({ name }) => name)).toEqual(['enrichment', 'completion', 'values']);
    expect(String(store.peek(ARTIFACTS))).toBe(artifacts.map((each) => `${referred(each)}\n`).join(''));
  });

  it('are found although a crash left an object with other lines', async () => {
    await exportRun(exports(), run, drafted(rowsOf({ ...whole, steps: [] })), log);
    const { artifacts } = await exportRun(exports(), run, drafted(), log);
    for (const each of artifacts) expect(sha256Hex(referred(each) ?? '')).toBe(each.sha256);
  });

  it('are only those that the stage has enabled', async () => {
    await exportRun(exports(), run, drafted(rowsOf(whole), ['siem']), log);
    expect(store.keys()).toEqual([SIEM]);
  });

  it('contain exactly the bytes whose hash is in the evidence', async () => {
    expect(sha256Hex(await exported('enrichment'))).toBe(hashOf(run.enrichment));
    const outputs: { id: string; output?: unknown }[] = (await completion()).steps;
    const classified = commits.flatMap(({ events }) => events).find((event) => event.type === 'step.succeeded');
    expect(hashOf(outputs.find(({ id }) => id === classified?.step)?.output)).toBe(classified?.outputHash);
  });

  it('are in canonical form, with the steps in their order', async () => {
    expect(String(await exported('completion'))).toBe(canonicalJson(await completion()));
    expect((await completion()).steps.map(({ id }: { id: string }) => id)).toEqual(steps.map(({ id }) => id));
  });

  it('say how it ended, with the texts of its errors', async () => {
    expect(await completion()).toMatchObject({
      runId: 'run_00000001',
      status: 'failed_terminal',
      error: { code: 'TARGET_REFUSED', message: 'Slack says: CANARY-error' },
    });
  });

  it('lack the enrichment of a run that ended before it had one', async () => {
    const { enrichment: _none, ...early } = run;
    const draft = drafted(rowsOf({ ...whole, run: early, steps: [] }));
    const { artifacts } = await exportRun(exports(), early, draft, log);
    expect(artifacts.map(({ name }) => name)).toEqual(['completion', 'values']);
  });

  it('do not depend on each other: the others are written, and the failure is reported', async () => {
    store.refused = [ARTIFACTS];
    expect(await exportRun(exports(), run, drafted(), log)).toEqual({ complete: false, artifacts: [] });
    expect(store.keys()).toEqual([SIEM]);
    expect(log.lines).toMatchObject([{ level: 'warn', details: { key: ARTIFACTS } }]);
    store.refused = [];
    const second = await exportRun(exports(), run, drafted(), log);
    expect(second.complete).toBe(true);
    for (const reference of second.artifacts) {
      expect(reference.sha256).toBe(sha256Hex(referred(reference) ?? ''));
    }
    expect(store.keys()).toEqual([SIEM, ARTIFACTS]);
  });

  it('of a large run are objects of their own, of which the others are written if one fails', async () => {
    const output = { text: noise('large', 2 * 1024 * 1024) };
    const large = { ...whole, steps: steps.map((step) => ({ ...step, output }) as typeof step) };
    const keyOf = (name: string) => `artifacts/acme/run_00000001/${name}.json`;
    store.refused = [keyOf('enrichment')];
    const { complete, artifacts } = await exportRun(exports(), run, drafted(rowsOf(large)), log);
    expect([complete, artifacts.map(({ key }) => key)]).toEqual([false, ['completion', 'values'].map(keyOf)]);
    for (const { key, sha256 } of artifacts) expect(sha256).toBe(sha256Hex(store.peek(key) ?? ''));
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
    const done = await exportTogether({ exports: exports(), clock, log }, [{ run, exported: drafted() }]);
    expect(done).toMatchObject([{ outboxEntries: [], artifacts: { length: 3 } }]);
    const [siem = ''] = store.keys();
    store = new FaultyStore();
    store.refused = [siem];
    const again = await exportTogether({ exports: exports(), clock, log }, [{ run, exported: drafted() }]);
    expect(again).toMatchObject([{ outboxEntries: [{ id: message.entryId, kind: 'export_run', attempts: 0 }] }]);
  });

  it('is repeated, and its outbox entry is completed only then', async () => {
    store.refused = [SIEM];
    await expect(exportSealedRun(exporter(whole), message)).rejects.toThrow('not all of run_00000001 is exported');
    expect(completed).toEqual([]);
    store.refused = [];
    await exportSealedRun(exporter(whole), message);
    expect(completed).toEqual([message.entryId]);
    const withReceipts = expect.stringMatching(/^artifacts\/acme\/run_00000001\/[0-9a-f]{64}\.jsonl$/);
    expect(store.keys()).toEqual([withReceipts, SIEM]);
  });

  it('of a missing run is dropped, and the log says so', async () => {
    await exportSealedRun(exporter(undefined), message);
    expect([completed, store.keys(), log.messages('warn').length]).toEqual([[message.entryId], [], 1]);
  });
});
