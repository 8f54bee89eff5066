import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { sealRun } from '../../../lambdas/evidence/bundle/seal-run.ts';
import { trustedKey } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { acceptBrokenRules } from '../../../lambdas/run-changes/control/accept-broken-rules.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { ASSIGN, GovernedWorkshop, needsApproval } from '../../worker/governance/governed-workshop.ts';

const OTHER = ASSIGN().replace('name: assign', 'name: other').replace('network', 'database');

let shop: GovernedWorkshop;
let message: StepMessage;

/** A run that a defective policy engine allows with a quorum of nobody: it breaks rule 8. */
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
  shop.policy.decision = () => needsApproval({ quorum: 0 });
  const { message: begun, approval } = await shop.upToGate(ASSIGN());
  message = begun;
  await shop.say(approval, 'ana');
  await shop.work(message);
});
afterEach(() => vi.unstubAllGlobals());

const seal = () => {
  const { runs, evidence: store, exports, texts, signer, clock, log } = shop;
  return sealRun({ runs, store, exports, texts, signer, clock, log }, { entryId: 'seal', ...message });
};
const accept = (...rules: number[]) =>
  acceptBrokenRules(shop.worker, message, { rules, reason: 'found and fixed' }, 'olivia');

async function verdict() {
  const read = (key: string) => shop.evidence.get(key);
  const records = await shop.runs.addenda('acme', message.runId, { after: 0, limit: 10 });
  const addenda = await Promise.all(
    records.map(async ({ documentKey, envelopeKey }) => ({
      name: documentKey,
      document: await read(documentKey),
      envelope: await read(envelopeKey),
    })),
  );
  const document = shop.evidence.file(message.runId, 'bundle.json');
  const envelope = shop.evidence.file(message.runId, 'bundle.dsse.json');
  return verifyBundle({ document, envelope, addenda, keys: [trustedKey(shop.signer.publicKey)] });
}

it('a run that broke a rule is not signed, and the error names rule and commit', async () => {
  await expect(seal()).rejects.toMatchObject({
    code: 'RULES_BROKEN',
    message: expect.stringMatching(
      /broke rule 8 \(enough-is-required\): commit 2 \(assign\) requires 0 people.*RUNBOOK/,
    ),
  });
  expect(shop.evidence.keys()).toEqual([]);
  expect((await shop.now(message)).sealed).toBe(false);
});

it('after an owner accepted the broken rule, it is sealed as broken, with an addendum that names the owner', async () => {
  await accept(8);
  await shop.finish(message);
  expect(await verdict()).toMatchObject({
    verdict: 'rules_broken',
    intact: true,
    rules: { sealedAsBroken: [8], broken: [{ rule: 8 }] },
    summary: { addenda: 1 },
  });
  const { commits } = await shop.now(message);
  expect(commits.at(-1)?.events).toEqual([
    { type: 'run.broken_rules_accepted', rules: [8], actor: 'olivia', reason: 'found and fixed' },
  ]);
});

it('accepting another rule changes nothing, and the same acceptance again makes no commit', async () => {
  await accept(2);
  await expect(seal()).rejects.toMatchObject({ code: 'RULES_BROKEN' });
  const { seq } = await accept(2);
  expect((await accept(2)).seq).toBe(seq);
  await accept(8);
  await shop.finish(message);
  expect(await verdict()).toMatchObject({ verdict: 'rules_broken', summary: { addenda: 2 } });
});

it('nothing can be accepted for a run that is sealed or has not ended', async () => {
  shop.policy.decision = () => needsApproval();
  const { message: other, approval } = await shop.upToGate(OTHER);
  message = other;
  await expect(accept(8)).rejects.toMatchObject({ code: 'RUN_INVALID_TRANSITION' });
  await shop.say(approval, 'ana');
  await shop.finish(message);
  await expect(accept(8)).rejects.toMatchObject({ code: 'CONFLICT' });
});
