import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { sealRun } from '../../../lambdas/evidence/bundle/seal-run.ts';
import { exportSealedRun } from '../../../lambdas/evidence/export/export-run.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { everythingDue } from '../../fakes/everything-due.ts';
import type { MemoryEvidenceStore } from '../../fakes/memory/memory-evidence-store.ts';
import { LABEL } from '../../worker/workflows.ts';
import { Workshop } from '../../worker/workshop.ts';

const FAR = '2999-01-01T00:00:00.000Z';

let shop: Workshop;
let message: StepMessage;
beforeEach(async () => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
  message = await shop.begin(LABEL);
  await shop.work(message);
});
afterEach(() => vi.unstubAllGlobals());

async function seal(): Promise<void> {
  const { runs, evidence: store, exports, texts, signer, clock, log } = shop;
  await sealRun(
    { runs, store, exports, texts, signer, clock, log },
    { entryId: 'acme.run_00000001.seal_evidence', ...message },
  );
}

const outboxEntries = async () => {
  const due = await everythingDue(shop.runs, FAR);
  return shop.runs.outboxEntries(due.flatMap((item) => (item.kind === 'outbox' ? [item.entryId] : [])));
};
const siemObject = () => (shop.exports.store as MemoryEvidenceStore).keys()[0] ?? '';
const exported = async () => (await shop.exports.store.get(siemObject())).toString().trim().split('\n');

it('a sealed run is exported, and its entry is in the log of the day on which it was sealed', async () => {
  shop.clock.advance(24 * 60 * 60 * 1000);
  await seal();
  const { run, commits } = await shop.now(message);
  const record = await shop.runs.evidence('acme', message.runId);
  expect(await exported()).toHaveLength(commits.length);
  expect(siemObject()).toMatch(/^siem\/acme\/2026\/01\/02\/[0-9a-f]{32}\.jsonl$/);
  expect(shop.runs.inside.logged('acme', '2026-01-02')).toEqual([]);
  expect(shop.runs.inside.logged('acme', '2026-01-03')).toEqual([
    {
      runId: message.runId,
      sha256: record?.sha256,
      head: run.headHash,
      count: run.seq,
      sealedAt: '2026-01-03T03:04:05.000Z',
    },
  ]);
  expect(await outboxEntries()).toEqual([]);
});

it('a failed export does not delay the bundle, and is repeated', async () => {
  const { store } = shop.exports;
  const putOnce = store.putOnce.bind(store);
  store.putOnce = () => Promise.reject(new Error('no such bucket'));
  await seal();
  const record = await shop.runs.evidence('acme', message.runId);
  expect(record?.sha256).toMatch(/^[0-9a-f]{64}$/);
  expect(shop.runs.inside.logged('acme', '2026-01-02')).toHaveLength(1);
  expect(await outboxEntries()).toMatchObject([{ kind: 'export_run' }]);

  store.putOnce = putOnce;
  await exportSealedRun(shop, { entryId: 'acme.run_00000001.export_run', ...message });
  expect(await exported()).not.toHaveLength(0);
  expect(await outboxEntries()).toEqual([]);
  expect(await shop.runs.evidence('acme', message.runId)).toEqual(record);
});
