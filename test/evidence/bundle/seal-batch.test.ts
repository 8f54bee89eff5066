import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { bundlesIn, documentPlace, envelopePlace } from '../../../lambdas/evidence/bundle/bundle-object.ts';
import { type Sealer, sealRuns } from '../../../lambdas/evidence/bundle/seal-run.ts';
import { trustedKey } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { parseWorkflow } from '../../../lambdas/workflow/parse-workflow.ts';
import { everythingDue } from '../../fakes/everything-due.ts';
import { MemoryEvidenceStore } from '../../fakes/memory/memory-evidence-store.ts';
import { LABEL } from '../../worker/workflows.ts';
import { Workshop } from '../../worker/workshop.ts';
import { isGenuine } from '../verify/second-verifier.ts';

const RUNS = 5;
const FAR = '2999-01-01T00:00:00.000Z';

let shop: Workshop;
let messages: StepMessage[];
beforeEach(() => open());
afterEach(() => vi.unstubAllGlobals());

async function open(): Promise<void> {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
  messages = [];
  for (let count = 0; count < RUNS; count += 1) {
    const message = await shop.begin(LABEL);
    await shop.work(message);
    messages.push(message);
  }
}

const requests = (of = messages) =>
  of.map(({ tenant, runId }) => ({ entryId: `${tenant}.${runId}.seal_evidence`, tenant, runId }));

function seal(changes: Partial<Sealer> = {}, of = messages) {
  const { runs, signer, exports, texts, clock, log, evidence: store } = shop;
  return sealRuns({ runs, store, exports, texts, signer, clock, log, ...changes }, requests(of));
}

const publicKey = () => String(shop.signer.publicKey.export({ type: 'spki', format: 'pem' }));

/** Both verifiers accept the recorded bundle of each run, cut out of its object. */
async function expectSealed(of = messages): Promise<void> {
  for (const { tenant, runId } of of) {
    const record = await shop.runs.evidence(tenant, runId);
    if (!record) throw new Error(`${runId} is not sealed`);
    const document = shop.evidence.peek(...documentPlace(record)) ?? Buffer.from('');
    const envelope = shop.evidence.peek(...envelopePlace(record)) ?? Buffer.from('');
    expect(sha256Hex(document)).toBe(record.sha256);
    const keys = [trustedKey(shop.signer.publicKey)];
    expect(verifyBundle({ document, envelope, keys })).toMatchObject({ verdict: 'valid', summary: { runId } });
    expect(isGenuine(String(document), String(envelope), publicKey())).toBe(true);
  }
}

describe('runs that are sealed together', () => {
  it('have one signature, one object with all bundles and one with all SIEM lines, and verify without each other', async () => {
    const sign = vi.spyOn(shop.signer, 'sign');
    expect((await seal()).map(({ status }) => status)).toEqual(Array(RUNS).fill('fulfilled'));
    expect(sign).toHaveBeenCalledTimes(1);
    const [key = '', ...more] = shop.evidence.keys();
    expect(more).toEqual([]);
    expect(bundlesIn(shop.evidence.peek(key) ?? Buffer.from(''))).toHaveLength(RUNS);
    expect((shop.exports.store as MemoryEvidenceStore).keys()).toHaveLength(1);
    await expectSealed();
    expect(shop.runs.inside.logged('acme', '2026-01-02')).toHaveLength(RUNS);
    expect(await everythingDue(shop.runs, FAR)).toEqual([]);
  });

  it('with repeated messages in one batch are sealed once each', async () => {
    const twice = [...messages, ...messages];
    expect((await seal({}, twice)).map(({ status }) => status)).toEqual(twice.map(() => 'fulfilled'));
    expect(bundlesIn(shop.evidence.peek(shop.evidence.keys()[0] ?? '') ?? Buffer.from(''))).toHaveLength(RUNS);
    await expectSealed();
  });

  it('are not affected by one that cannot be sealed, one that is missing and one that is sealed already', async () => {
    const [poisonous, sealed, ...others] = messages as [StepMessage, StepMessage, ...StepMessage[]];
    await seal({}, [sealed]);
    const record = await shop.runs.evidence('acme', sealed.runId);
    const everyRow: Sealer['runs']['everyRow'] = async function* (tenant, runId) {
      for await (const row of shop.runs.everyRow(tenant, runId)) {
        if (runId !== poisonous.runId || row.kind !== 'step') yield row;
      }
    };
    const runs = new Proxy(shop.runs, {
      get: (target, name: keyof typeof shop.runs) => {
        if (name === 'everyRow') return everyRow;
        const value = target[name];
        return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
      },
    });
    const missing = { tenant: 'acme', runId: 'run_ffffffff' };
    const results = await seal({ runs }, [poisonous, sealed, missing, ...others]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', ...Array(RUNS).fill('fulfilled')]);
    expect(results[0]).toMatchObject({ reason: { code: 'CHAIN_BROKEN' } });
    expect((await shop.now(poisonous)).sealed).toBe(false);
    expect(await shop.runs.evidence('acme', sealed.runId)).toEqual(record);
    await expectSealed([sealed, ...others]);
  });

  it('that are large are sealed in parts, each with a signature of its own', async () => {
    const payload = { text: 'x'.repeat(9 * 1024 * 1024) };
    const large: StepMessage[] = [];
    for (let count = 0; count < 3; count += 1) {
      const message = await shop.begin(LABEL, { trigger: { payload } });
      await shop.work(message);
      large.push(message);
    }
    const sign = vi.spyOn(shop.signer, 'sign');
    await seal({ exports: { ...shop.exports, wanted: ['artifacts'] } }, [...messages, ...large]);
    expect(sign).toHaveBeenCalledTimes(2);
    expect(shop.evidence.keys()).toHaveLength(2);
    await expectSealed([...messages, ...large]);
  });

  it('ends with one recorded, valid bundle for each after a crash before or after any call, also in other batches', async () => {
    const deaths = new Set<string>();
    for (let fatal = 0; ; fatal += 1) {
      await open();
      let crossings = 0;
      let crashed = false;
      shop.disturb(async (name, run) => {
        const crossing = (when: string) => {
          if (crashed) throw new Error('died');
          if (crossings++ !== fatal) return;
          crashed = true;
          deaths.add(`${when} ${name}`);
          throw new Error('died');
        };
        crossing('before');
        const result = await run();
        crossing('after');
        return result;
      });
      await seal().catch(() => undefined);
      shop.disturb((_name, run) => run());
      if (!crashed) break;
      // What SQS delivers again may be another selection.
      const [first, second, ...rest] = messages as [StepMessage, StepMessage, ...StepMessage[]];
      await seal({}, [second, ...rest]);
      await seal({}, [first]);
      await expectSealed();
      expect(shop.runs.inside.logged('acme', '2026-01-02')).toHaveLength(RUNS);
      expect(await everythingDue(shop.runs, FAR)).toEqual([]);
    }
    for (const call of ['everyRow', 'receipts', 'evidence.putOnce', 'completeSeal']) {
      expect(deaths).toContain(`before ${call}`);
      expect(deaths).toContain(`after ${call}`);
    }
  });

  it('are sealed again if the process ended after the signature', async () => {
    const store = new MemoryEvidenceStore();
    store.putOnce = () => Promise.reject(new Error('killed'));
    expect((await seal({ store })).map(({ status }) => status)).toEqual(Array(RUNS).fill('rejected'));
    expect((await shop.now(messages[0] as StepMessage)).sealed).toBe(false);
    await seal();
    await expectSealed();
  });

  it('of several tenants share the signature, and each tenant has an object of its own', async () => {
    await shop.definitions.publishWorkflow('globex', parseWorkflow(LABEL, 'test.yaml'), 1);
    const { runId } = await shop.beginPublished('label-new-issue', { tenant: 'globex' });
    const other = { tenant: 'globex', runId };
    await shop.work(other);
    const sign = vi.spyOn(shop.signer, 'sign');
    await seal({}, [...messages, other]);
    expect(sign).toHaveBeenCalledTimes(1);
    expect(shop.evidence.keys().map((key) => key.split('/')[1])).toEqual(['acme', 'globex']);
    await expectSealed([...messages, other]);
    const bundle = (of: StepMessage) => shop.evidence.file(of.runId, 'bundle.dsse.json').toString();
    expect(bundle(messages[0] as StepMessage)).not.toContain(other.runId);
  });
});
