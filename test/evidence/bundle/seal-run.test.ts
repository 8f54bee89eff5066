import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { documentPlace, envelopePlace } from '../../../lambdas/evidence/bundle/bundle-object.ts';
import { type Sealer, sealRun } from '../../../lambdas/evidence/bundle/seal-run.ts';
import { trustedKey } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { RunDraft } from '../../../lambdas/run/run-draft.ts';
import type { RunRow, RunStore } from '../../../lambdas/run/run-store.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { everythingDue } from '../../fakes/everything-due.ts';
import { MemoryEvidenceStore } from '../../fakes/memory/memory-evidence-store.ts';
import { SeededSigner } from '../../fakes/seeded-signer.ts';
import { accepted } from '../../fakes/story.ts';
import { LABEL } from '../../worker/workflows.ts';
import { Workshop } from '../../worker/workshop.ts';

let shop: Workshop;
beforeEach(() => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const OBJECT = /^evidence\/acme\/bundles\/2026-01-02\/[0-9a-f]{64}\.jsonl$/;

function seal(message: StepMessage, runs: Partial<RunStore> = {}, store = shop.evidence) {
  const { signer, exports, texts, clock, log } = shop;
  const bound: Sealer['runs'] = {
    everyRow: shop.runs.everyRow.bind(shop.runs),
    receipts: shop.runs.receipts.bind(shop.runs),
    completeSeal: shop.runs.completeSeal.bind(shop.runs),
    clearSealDue: shop.runs.clearSealDue.bind(shop.runs),
    completeOutboxEntry: shop.runs.completeOutboxEntry.bind(shop.runs),
  };
  const entryId = `acme.${message.runId}.seal_evidence`;
  return sealRun({ runs: { ...bound, ...runs }, store, exports, texts, signer, clock, log }, { entryId, ...message });
}

/** The verdict of an auditor on the stored bundle. */
function verdict(store = shop.evidence) {
  const [document, envelope] = ['bundle.json', 'bundle.dsse.json'].map((file) => store.file('run_00000001', file));
  if (!document || !envelope) throw new Error('there is no bundle');
  return verifyBundle({ document, envelope, keys: [trustedKey(shop.signer.publicKey)] });
}

/** The rows of a run, some of them changed or left out by somebody. */
const tamperedRows = (change: (row: RunRow) => RunRow | undefined): Partial<RunStore> => ({
  async *everyRow(tenant, runId) {
    for await (const row of shop.runs.everyRow(tenant, runId)) {
      const changed = change(row);
      if (changed) yield changed;
    }
  },
});

async function endedRun(): Promise<StepMessage> {
  const message = await shop.begin(LABEL);
  await shop.work(message);
  return message;
}

describe('sealing', () => {
  it('writes document and envelope, records them, and completes the outbox entry', async () => {
    const message = await endedRun();
    await seal(message);
    const [document, envelope] = ['bundle.json', 'bundle.dsse.json'].map((file) =>
      shop.evidence.file(message.runId, file),
    ) as [Buffer, Buffer];
    const record = await shop.runs.evidence('acme', message.runId);
    expect(record).toEqual({
      documentKey: expect.stringMatching(OBJECT),
      envelopeKey: record?.documentKey,
      within: { document: 0, envelope: document.length + 1, envelopeBytes: envelope.length },
      sha256: sha256Hex(document),
      sizeBytes: document.length,
      sealedAt: '2026-01-02T03:04:05.000Z',
    });
    const places = record && [documentPlace(record), envelopePlace(record)];
    const parts = await Promise.all(places?.map((place) => shop.evidence.get(...place)) ?? []);
    expect(parts.map(String)).toEqual([String(document), String(envelope)]);
    expect(verdict()).toMatchObject({ verdict: 'valid', summary: { sha256: sha256Hex(document), receipts: 1 } });
    const far = '2999-01-01T00:00:00.000Z';
    expect(await everythingDue(shop.runs, far)).toEqual([]);
  });

  it.each(['queued', 'running'])('is refused for a %s run, and nothing is written', async (status) => {
    const message = await shop.begin(LABEL);
    if (status === 'running') {
      const { promise: stopped, resolve } = Promise.withResolvers<void>();
      shop.disturb((name, run) => {
        if (name !== 'POST github') return run();
        resolve();
        return new Promise(() => {});
      });
      void shop.work(message);
      await stopped;
    }
    await expect(seal(message)).rejects.toThrow(/only a finished run can be sealed/);
    expect(shop.evidence.keys()).toEqual([]);
  });

  it('a second time creates the identical object, and the first record remains', async () => {
    const message = await endedRun();
    await seal(message);
    const record = await shop.runs.evidence('acme', message.runId);
    const [key = ''] = shop.evidence.keys();
    shop.clock.advance(3_600_000);
    await seal(message);
    expect(shop.evidence.keys()).toEqual([key]);
    expect(await shop.runs.evidence('acme', message.runId)).toEqual(record);
    const elsewhere = new MemoryEvidenceStore();
    await seal(
      message,
      tamperedRows((row) => (row.kind === 'evidence' ? undefined : row)),
      elsewhere,
    );
    expect(elsewhere.keys()).toEqual([key]);
    expect((await elsewhere.get(key)).equals(await shop.evidence.get(key))).toBe(true);
  });

  it.each<[string, (content: Buffer) => Buffer]>([
    ['nothing that can be read', () => Buffer.from('{}')],
    ['the same with another signature', (content) => Buffer.from(content.toString().replace(/"sig":"./, '"sig":"-'))],
    ['a space more', (content) => Buffer.from(`${content} `)],
  ])('records nothing if somebody has stored %s', async (_what, planted) => {
    const message = await endedRun();
    const elsewhere = new MemoryEvidenceStore();
    await seal(message, { completeSeal: async () => {} }, elsewhere);
    const [key = ''] = elsewhere.keys();
    await shop.evidence.putOnce(key, planted(await elsewhere.get(key)), 'application/x-ndjson');
    await expect(seal(message)).rejects.toMatchObject({
      code: 'CHAIN_BROKEN',
      message: expect.stringContaining(`${key} is not what was sealed`),
    });
    expect((await shop.now(message)).sealed).toBe(false);
  });

  it('ends with one complete bundle after a crash before or after any of its calls', async () => {
    const deaths: string[] = [];
    for (let fatal = 0; ; fatal += 1) {
      shop = new Workshop();
      vi.stubGlobal('fetch', shop.outside.fetch);
      const message = await endedRun();
      let crossings = 0;
      const dieAt = (crossing: string) => {
        if (crossings++ !== fatal) return;
        deaths.push(crossing);
        throw new Error('died');
      };
      shop.disturb(async (name, run) => {
        dieAt(`before ${name}`);
        const result = await run();
        dieAt(`after ${name}`);
        return result;
      });
      const died = await seal(message).then(
        () => false,
        () => true,
      );
      shop.disturb((_name, run) => run());
      if (!died) break;
      await seal(message);
      expect(shop.evidence.keys()).toEqual([expect.stringMatching(OBJECT)]);
      expect(verdict()).toMatchObject({ verdict: 'valid' });
      expect((await shop.now(message)).sealed).toBe(true);
    }
    const calls = ['everyRow', 'receipts', 'evidence.putOnce', 'completeSeal', 'clearSealDue'];
    expect(deaths).toEqual(calls.flatMap((call) => [`before ${call}`, `after ${call}`]));
  });

  it('twice at the same time writes one bundle', async () => {
    const message = await endedRun();
    await Promise.all([seal(message), seal(message), seal(message)]);
    expect(shop.evidence.keys()).toEqual([expect.stringMatching(OBJECT)]);
    expect(verdict()).toMatchObject({ verdict: 'valid' });
  });

  it.each<[string, (row: RunRow) => RunRow | undefined]>([
    ['miss the first commit', (row) => (row.kind === 'commit' && row.commit.seq === 1 ? undefined : row)],
    ['miss a step', (row) => (row.kind === 'step' ? undefined : row)],
    [
      'have a commit that was edited',
      (row) =>
        row.kind === 'commit' && row.commit.seq === 2 ? { ...row, commit: { ...row.commit, events: [] } } : row,
    ],
    [
      'have a step that contradicts its commits',
      (row) => (row.kind === 'step' ? { ...row, step: { ...row.step, id: 'another' } } : row),
    ],
  ])('refuses rows that %s, and writes nothing', async (_what, change) => {
    const message = await endedRun();
    await expect(seal(message, tamperedRows(change))).rejects.toMatchObject({
      code: 'CHAIN_BROKEN',
      message: expect.stringContaining(`the rows of run ${message.runId} contradict each other`),
    });
    expect(shop.evidence.keys()).toEqual([]);
    expect((await shop.now(message)).sealed).toBe(false);
  });

  it('of a run that does not exist does nothing', async () => {
    await seal({ tenant: 'acme', runId: 'run_ffffffff' });
    expect(shop.evidence.keys()).toEqual([]);
    expect(shop.log.messages('warn')).toHaveLength(1);
  });

  it('with another key later leaves the first envelope in place', async () => {
    const message = await endedRun();
    await seal(message);
    const envelope = shop.evidence.file(message.runId, 'bundle.dsse.json');
    const { clock, log, runs, exports, texts, evidence: store } = shop;
    const signer = new SeededSigner('rotated', [shop.signer.publicKey]);
    const sealer = { runs, store, exports, texts, signer, clock, log };
    await sealRun(sealer, { entryId: `acme.${message.runId}.seal_evidence`, ...message });
    expect(shop.evidence.file(message.runId, 'bundle.dsse.json').equals(envelope)).toBe(true);
  });
});

it('the largest run, 1,000 steps of 60 KB each, is sealed and exported within the memory of its function', async () => {
  const HEAP_MAX_MIB = 64;
  /** Of the 512 that the function has; the exports alone are 60, twice. */
  const MEMORY_MAX_MIB = 400;
  const script = join(import.meta.dirname, 'seal-largest-run.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [`--max-old-space-size=${HEAP_MAX_MIB}`, script]);
  const { sizes, peakMib } = JSON.parse(stdout);
  expect(sizes['bundles.jsonl']).toBeGreaterThan(500_000);
  expect(sizes['completion.json']).toBeGreaterThan(1_000 * 60 * 1024);
  expect(sizes.spans).toBeGreaterThan(1_000);
  expect(peakMib).toBeLessThan(MEMORY_MAX_MIB);
});

describe('a run of 1,000 commits', () => {
  const COMMITS = 1_000;
  const EVENTS_EACH = 10;
  /** Half of what the sealing function has, which seals up to five runs at a time. */
  const HEAP_GROWTH_MAX_BYTES = (256 * 1024 * 1024) / 5;

  it('is read to its end and sealed within a function’s memory', async () => {
    const { run, ingest } = accepted({ runId: 'run_00000001' });
    await shop.runs.ingest(ingest);
    let state = { run: run as typeof run | RunDraft['run'], steps: new Map() };
    for (let count = 1; count < COMMITS; count += 1) {
      const draft = new RunDraft(state, '2026-01-02T03:04:06.000Z');
      for (let event = 0; event < EVENTS_EACH; event += 1) {
        draft.record({
          type: 'run.stop_requested',
          kind: 'pause',
          initiator: 'user',
          actor: sha256Hex(`${count} ${event}`),
        });
      }
      if (count === COMMITS - 1) draft.move('canceled', { initiator: 'user', actor: 'olivia' });
      const change = draft.seal();
      await shop.runs.commit(change);
      state = { ...state, run: change.run };
    }
    const before = process.memoryUsage();
    await seal({ tenant: 'acme', runId: 'run_00000001' });
    const after = process.memoryUsage();
    const growth = after.heapUsed - before.heapUsed + after.external - before.external;
    const document = shop.evidence.file('run_00000001', 'bundle.json');
    expect(JSON.parse(document.toString()).commits).toHaveLength(COMMITS);
    expect(document.length).toBeGreaterThan(1024 * 1024);
    expect(growth).toBeLessThan(HEAP_GROWTH_MAX_BYTES);
    expect(verdict()).toMatchObject({ verdict: 'valid', summary: { commits: COMMITS } });
  });
});
