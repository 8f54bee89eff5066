import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { trustedKey } from '../../lambdas/evidence/dsse.ts';
import { sealRun } from '../../lambdas/evidence/seal-run.ts';
import { verifyBundle } from '../../lambdas/evidence/verify-bundle.ts';
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
  const { signer, exports, clock, log } = shop;
  const bound = Object.fromEntries(
    (['loadWhole', 'receipts', 'fulfilSeal'] as const).map((name) => [name, shop.runs[name].bind(shop.runs)]),
  ) as Pick<RunStore, 'loadWhole' | 'receipts' | 'fulfilSeal'>;
  const entryId = `acme.${message.runId}.seal_evidence`;
  return sealRun({ runs: { ...bound, ...runs }, store, exports, signer, clock, log }, { entryId, ...message });
}

/** What an auditor says of the bundle that is there. */
async function verdict(store = shop.evidence) {
  const [document, envelope] = [await store.get(DOCUMENT), await store.get(ENVELOPE)];
  return verifyBundle({ document, envelope, keys: [trustedKey(shop.signer.publicKey)] });
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
    expect(await verdict()).toMatchObject({ verdict: 'valid', summary: { sha256: sha256Hex(document), receipts: 1 } });
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
    expect((await elsewhere.get(ENVELOPE)).equals(envelope)).toBe(true);
  });

  it('signs and records the document that is there, not the one it would have written', async () => {
    const message = await endedRun();
    const elsewhere = new MemoryEvidenceStore();
    await seal(message, { fulfilSeal: async () => {} }, elsewhere);
    const there = Buffer.from(String(await elsewhere.get(DOCUMENT)).replace(/"runtime":"[^"]+"/, '"runtime":"0.0.1"'));
    await shop.evidence.putOnce(DOCUMENT, there, 'application/json');
    await seal(message);
    const sha256 = sha256Hex(there);
    expect(await shop.runs.evidence('acme', message.runId)).toMatchObject({ sha256, sizeBytes: there.length });
    const { payload } = JSON.parse((await shop.evidence.get(ENVELOPE)).toString());
    expect(JSON.parse(Buffer.from(payload, 'base64').toString()).subject[0].digest).toEqual({ sha256 });
  });

  it('ends with one complete bundle, whichever of its calls it dies at, before or after', async () => {
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
      expect(shop.evidence.keys()).toEqual([DOCUMENT, ENVELOPE]);
      expect(await verdict()).toMatchObject({ verdict: 'valid' });
      expect((await shop.now(message)).sealed).toBe(true);
    }
    const calls = ['loadWhole', 'receipts', 'evidence.putOnce', 'evidence.putOnce', 'fulfilSeal'];
    expect(deaths).toEqual(calls.flatMap((call) => [`before ${call}`, `after ${call}`]));
  });

  it('side by side with itself writes one bundle', async () => {
    const message = await endedRun();
    await Promise.all([seal(message), seal(message), seal(message)]);
    expect(shop.evidence.keys()).toEqual([DOCUMENT, ENVELOPE]);
    expect(await verdict()).toMatchObject({ verdict: 'valid' });
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

  it('of a run that never was is left alone', async () => {
    await seal({ tenant: 'acme', runId: 'run_ffffffff' });
    expect(shop.evidence.keys()).toEqual([]);
    expect(shop.log.messages('warn')).toHaveLength(1);
  });

  it('with another key later leaves the first envelope in place', async () => {
    const message = await endedRun();
    await seal(message);
    const envelope = await shop.evidence.get(ENVELOPE);
    const { clock, log, runs, exports, evidence: store } = shop;
    const sealer = { runs, store, exports, signer: new SeededSigner('rotated'), clock, log };
    await sealRun(sealer, { entryId: `acme.${message.runId}.seal_evidence`, ...message });
    expect((await shop.evidence.get(ENVELOPE)).equals(envelope)).toBe(true);
  });
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
        draft.record({ type: 'run.enriched', enrichmentHash: sha256Hex(`${count} ${event}`) });
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
    const document = await shop.evidence.get(DOCUMENT);
    expect(JSON.parse(document.toString()).commits).toHaveLength(COMMITS);
    expect(document.length).toBeGreaterThan(1024 * 1024);
    expect(growth).toBeLessThan(HEAP_GROWTH_MAX_BYTES);
    expect(await verdict()).toMatchObject({ verdict: 'valid', summary: { commits: COMMITS } });
  });
});
