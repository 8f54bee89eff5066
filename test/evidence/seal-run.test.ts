import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { sealRun } from '../../lambdas/evidence/seal-run.ts';
import { sha256Hex } from '../../lambdas/run/canonical-json.ts';
import type { Commit } from '../../lambdas/run/commit.ts';
import { RunDraft } from '../../lambdas/run/run-draft.ts';
import type { RunStore } from '../../lambdas/run/run-store.ts';
import type { StepMessage } from '../../lambdas/worker/step-queue.ts';
import { MemoryEvidenceStore } from '../fakes/memory-evidence-store.ts';
import { SeededSigner } from '../fakes/seeded-signer.ts';
import { accepted } from '../fakes/story.ts';
import { LABEL } from '../worker/workflows.ts';
import { Workshop } from '../worker/workshop.ts';

let shop: Workshop;
beforeEach(() => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const DOCUMENT = 'evidence/acme/run_00000001/bundle.json';
const ENVELOPE = 'evidence/acme/run_00000001/bundle.dsse.json';

function seal(message: StepMessage, runs: Partial<RunStore> = {}, store = shop.evidence): Promise<void> {
  const { signer, clock, log } = shop;
  const bound = Object.fromEntries(
    (['loadWhole', 'receipts', 'fulfilSeal'] as const).map((name) => [name, shop.runs[name].bind(shop.runs)]),
  ) as Pick<RunStore, 'loadWhole' | 'receipts' | 'fulfilSeal'>;
  const entryId = `acme.${message.runId}.seal_evidence`;
  return sealRun({ runs: { ...bound, ...runs }, store, signer, clock, log }, { entryId, ...message });
}

async function withCommits([tenant, runId]: [string, string], change: (commits: Commit[]) => Commit[]) {
  const whole = await shop.runs.loadWhole(tenant, runId);
  return whole && { ...whole, commits: change(whole.commits) };
}

async function endedRun(): Promise<StepMessage> {
  const message = await shop.begin(LABEL);
  await shop.work(message);
  return message;
}

describe('sealing', () => {
  it('writes document and envelope, records them, and clears the promise', async () => {
    const message = await endedRun();
    await seal(message);
    const document = await shop.evidence.get(DOCUMENT);
    expect(await shop.runs.evidence('acme', message.runId)).toEqual({
      documentKey: DOCUMENT,
      envelopeKey: ENVELOPE,
      sha256: sha256Hex(document),
      sizeBytes: document.length,
      sealedAt: '2026-01-02T03:04:05.000Z',
    });
    const envelope = JSON.parse((await shop.evidence.get(ENVELOPE)).toString());
    expect(Buffer.from(envelope.payload, 'base64').toString()).toContain(sha256Hex(document));
    const far = '2999-01-01T00:00:00.000Z';
    const due = await Promise.all([0, 1, 2, 3].map((shard) => shop.runs.due(shard, far, 10)));
    expect(due.flat()).toEqual([]);
  });

  it.each(['queued', 'running'])('never happens early: a %s run is refused, and nothing is written', async (status) => {
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
    await expect(seal(message)).rejects.toThrow(/never sealed early/);
    expect(shop.evidence.keys()).toEqual([]);
  });

  it('again gives the identical document, and keeps the first record', async () => {
    const message = await endedRun();
    await seal(message);
    const [document, envelope] = [await shop.evidence.get(DOCUMENT), await shop.evidence.get(ENVELOPE)];
    const record = await shop.runs.evidence('acme', message.runId);
    shop.clock.advance(3_600_000);
    await seal(message);
    expect((await shop.evidence.get(DOCUMENT)).equals(document)).toBe(true);
    expect((await shop.evidence.get(ENVELOPE)).equals(envelope)).toBe(true);
    expect(await shop.runs.evidence('acme', message.runId)).toEqual(record);
    const elsewhere = new MemoryEvidenceStore();
    await seal(message, {}, elsewhere);
    expect((await elsewhere.get(DOCUMENT)).equals(document)).toBe(true);
  });

  it('signs and records the document that is there, not the one it would have written', async () => {
    const message = await endedRun();
    const there = Buffer.from('written first');
    await shop.evidence.putOnce(DOCUMENT, there, 'application/json');
    await seal(message);
    expect(await shop.runs.evidence('acme', message.runId)).toMatchObject({ sha256: sha256Hex(there), sizeBytes: 13 });
  });

  it.each(['evidence.putOnce', 'fulfilSeal'])('goes on where it stopped when it dies after %s', async (name) => {
    const message = await endedRun();
    shop.disturb(async (passing, run) => {
      const result = await run();
      if (passing === name) throw new Error('died');
      return result;
    });
    await expect(seal(message)).rejects.toThrow('died');
    shop.disturb((_name, run) => run());
    await seal(message);
    expect((await shop.now(message)).sealed).toBe(true);
    expect(shop.evidence.keys()).toEqual([DOCUMENT, ENVELOPE]);
  });

  it.each<[string, Partial<RunStore>]>([
    ['misses its last commit', { loadWhole: (...asked) => withCommits(asked, (commits) => commits.slice(0, -1)) }],
    [
      'was edited',
      {
        loadWhole: (...asked) =>
          withCommits(asked, (commits) => commits.map((each) => (each.seq === 2 ? { ...each, events: [] } : each))),
      },
    ],
  ])('refuses a chain that %s, and writes nothing', async (_what, tampered) => {
    const message = await endedRun();
    await expect(seal(message, tampered)).rejects.toMatchObject({ code: 'CHAIN_BROKEN' });
    expect(shop.evidence.keys()).toEqual([]);
    expect((await shop.now(message)).sealed).toBe(false);
  });

  it('reads a chain longer than a page to its end', async () => {
    const { run, ingest } = accepted({ runId: 'run_00000001' });
    await shop.runs.ingest(ingest);
    let state = { run: run as typeof run | RunDraft['run'], steps: new Map() };
    for (let count = 0; count < 1_000; count += 1) {
      const draft = new RunDraft(state, '2026-01-02T03:04:06.000Z').record({
        type: 'run.enriched',
        enrichmentHash: String(count),
      });
      if (count === 999) draft.move('canceled', { initiator: 'user', actor: 'olivia' });
      const change = draft.seal();
      await shop.runs.commit(change);
      state = { ...state, run: change.run };
    }
    await seal({ tenant: 'acme', runId: 'run_00000001' });
    expect(JSON.parse((await shop.evidence.get(DOCUMENT)).toString()).commits).toHaveLength(1_001);
  });

  it('of a run that never was is left alone', async () => {
    await seal({ tenant: 'acme', runId: 'run_ffffffff' });
    expect(shop.evidence.keys()).toEqual([]);
    expect(shop.log.messages('warn')).toHaveLength(1);
  });

  it('with another key later leaves the first envelope in place', async () => {
    const message = await endedRun();
    await seal(message);
    const envelope = await shop.evidence.get(ENVELOPE);
    const { clock, log, runs, evidence: store } = shop;
    const sealer = { runs, store, signer: new SeededSigner('rotated'), clock, log };
    await sealRun(sealer, { entryId: `acme.${message.runId}.seal_evidence`, ...message });
    expect((await shop.evidence.get(ENVELOPE)).equals(envelope)).toBe(true);
  });
});
