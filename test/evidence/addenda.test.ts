import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { sealAddendum } from '../../lambdas/evidence/addendum/seal-addendum.ts';
import { bundleClaim } from '../../lambdas/evidence/bundle/bundle-claim.ts';
import { buildDayLog, documentOf, logClaim } from '../../lambdas/evidence/daily-log/daily-log.ts';
import { signClaim } from '../../lambdas/evidence/signing/dsse.ts';
import { auditEvidence } from '../../lambdas/evidence/verify/audit-evidence.ts';
import { trustedKey } from '../../lambdas/evidence/verify/trusted-keys.ts';
import { type HeldBundle, verifyBundle } from '../../lambdas/evidence/verify/verify-bundle.ts';
import type { HeldFiles } from '../../lambdas/evidence/verify/verify-daily-log.ts';
import { sha256Hex } from '../../lambdas/run/canonical-json.ts';
import { dayOf } from '../../lambdas/run/log-entry.ts';
import { assignRun, releaseRun } from '../../lambdas/run-changes/control/assign-run.ts';
import { resolveRun } from '../../lambdas/run-changes/control/resolve-run.ts';
import type { StepMessage } from '../../lambdas/run-changes/step-queue.ts';
import { MemoryEvidenceStore } from '../fakes/memory/memory-evidence-store.ts';
import { SeededSigner } from '../fakes/seeded-signer.ts';
import { LABEL } from '../worker/workflows.ts';
import { Workshop } from '../worker/workshop.ts';
import { patched } from './vectors/patched.ts';
import { areGenuineAddenda, canonical, isGenuine, isGenuineLog } from './verify/second-verifier.ts';

let shop: Workshop;
let message: StepMessage;
let bundle: HeldBundle & { addenda: NonNullable<HeldBundle['addenda']> };

/** A failed run that Ana took, Olivia resolved and Ana released, with its bundle and three addenda. */
beforeEach(async () => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
  message = await shop.begin(LABEL);
  shop.outside.next('POST github', { status: 403 });
  await shop.finish(message);
  await assignRun(shop.worker, message, 'ana', 'ana');
  const resolution = { outcome: 'succeeded', reason: 'I added the label by hand', writes: {} } as const;
  await resolveRun(shop.worker, message, resolution, 'olivia');
  await releaseRun(shop.worker, message, 'ana');
  await shop.finish(message);
  bundle = await held();
});
afterEach(() => vi.unstubAllGlobals());

const path = (file: string) => `evidence/acme/${message.runId}/${file}`;

async function held(): Promise<typeof bundle> {
  const records = await shop.runs.addenda('acme', message.runId, { after: 0, limit: 10 });
  return {
    document: shop.evidence.file(message.runId, 'bundle.json'),
    envelope: shop.evidence.file(message.runId, 'bundle.dsse.json'),
    keys: [trustedKey(shop.signer.publicKey)],
    addenda: await Promise.all(
      records.map(async ({ documentKey, envelopeKey }) => ({
        name: documentKey,
        document: await shop.evidence.get(documentKey),
        envelope: await shop.evidence.get(envelopeKey),
      })),
    ),
  };
}

/** Both verifiers return the same verdict. */
function verdict(changes: Partial<typeof bundle> = {}) {
  const changed = { ...bundle, ...changes };
  const first = verifyBundle(changed);
  const [document, key] = [
    String(changed.document),
    String(shop.signer.publicKey.export({ type: 'spki', format: 'pem' })),
  ];
  const addenda = changed.addenda.map((each) => ({ document: String(each.document), envelope: String(each.envelope) }));
  const second = isGenuine(document, String(changed.envelope), key) && areGenuineAddenda(document, addenda, key);
  expect(second).toBe(first.verdict === 'valid');
  return first;
}

const edited = (at: number, from: string, to: string) =>
  bundle.addenda.map((each, index) =>
    index === at ? { ...each, document: Buffer.from(each.document.toString().replace(from, to)) } : each,
  );

describe('the addenda of a bundle', () => {
  it('are valid with it: one for each commit after the end', async () => {
    const { run } = await shop.now(message);
    expect(verdict()).toMatchObject({ verdict: 'valid', summary: { status: 'failed_terminal', addenda: 3 } });
    expect(run.seq).toBe(JSON.parse(bundle.document.toString()).head.count + 3);
    expect(verdict({ addenda: [...bundle.addenda].reverse() })).toMatchObject({ verdict: 'valid' });
    expect(verdict({ addenda: bundle.addenda.slice(0, 2) })).toMatchObject({ verdict: 'valid' });
  });

  it('say who resolved the run, and contain no text', () => {
    const { commit, bundle: of } = JSON.parse(String(bundle.addenda[1]?.document));
    expect(commit.events).toEqual([
      { type: 'run.resolved', outcome: 'succeeded', actor: 'olivia', reason: expect.any(Object), writes: [] },
    ]);
    expect(verdict()).toMatchObject({ summary: { sha256: of } });
    for (const { document } of bundle.addenda) expect(document.toString()).not.toContain('by hand');
  });

  it('are named if one is missing, edited, duplicated or of another run', async () => {
    const seq = JSON.parse(bundle.document.toString()).head.count as number;
    const [first, second, third] = bundle.addenda;
    if (!first || !second || !third) throw new Error('three addenda are expected');
    const tampered = (entry: string) => ({ verdict: 'tampered', entry });
    expect(verdict({ addenda: [second, third] })).toMatchObject(tampered(`addendum ${seq + 1}`));
    expect(verdict({ addenda: [first, third] })).toMatchObject(tampered(`addendum ${seq + 2}`));
    expect(verdict({ addenda: [first, first] })).toMatchObject(tampered(`addendum ${seq + 1}`));
    expect(verdict({ addenda: edited(1, '"olivia"', '"oliver"') })).toMatchObject(tampered(`addendum ${seq + 2}`));
    expect(verdict({ addenda: edited(1, '"tenant":"acme"', '"tenant":"acne"') })).toMatchObject({
      verdict: 'tampered',
    });
    expect(verdict({ addenda: edited(0, '{', '{ ') })).toMatchObject(tampered(`addendum ${seq + 1}`));
    expect(verdict({ addenda: [{ ...first, envelope: second.envelope }] })).toMatchObject(
      tampered(`addendum ${seq + 1}`),
    );
    expect(verdict({ addenda: [{ ...first, document: Buffer.from('{') }] })).toMatchObject(tampered(first.name));
    const other = verifyBundle({ ...bundle, addenda: [{ ...first, envelope: undefined }] });
    expect(other).toMatchObject({ entry: `addendum ${seq + 1}`, problem: expect.stringContaining('not signed') });
  });

  it('are not valid with the signature of another key', async () => {
    const { runs, exports, texts, clock, log } = shop;
    const store = new MemoryEvidenceStore();
    const seq = JSON.parse(bundle.document.toString()).head.count + 1;
    const signer = new SeededSigner('another');
    const sealer = { runs, store, exports, texts, signer, clock, log };
    await sealAddendum(sealer, { entryId: 'acme.x.seal_addendum', ...message, seq });
    const name = path(`addendum-${String(seq).padStart(8, '0')}.json`);
    const envelope = await store.get(name.replace('.json', '.dsse.json'));
    expect(verdict({ addenda: [{ name, document: await store.get(name), envelope }] })).toMatchObject({
      verdict: 'tampered',
      problem: expect.stringContaining('not signed by a trusted key'),
    });
  });

  it('are in the log of their day', async () => {
    const entries = shop.runs.inside.logged('acme', dayOf(new Date(shop.clock.now()).toISOString()));
    const seq = JSON.parse(bundle.document.toString()).head.count as number;
    expect(entries.map(({ addendum, count }) => [addendum, count])).toEqual([
      [undefined, seq],
      [seq + 1, seq + 1],
      [seq + 2, seq + 2],
      [seq + 3, seq + 3],
    ]);
  });

  it('are compared with the log: a deleted, changed or added one is named', async () => {
    const day = dayOf(new Date(shop.clock.now()).toISOString());
    const entries = [...shop.runs.inside.logged('acme', day)];
    const log = buildDayLog({ tenant: 'acme', day, previous: null, entries });
    const document = documentOf(log);
    const envelope = await signClaim(logClaim(log, sha256Hex(document)), shop.signer);
    const key = String(shop.signer.publicKey.export({ type: 'spki', format: 'pem' }));
    expect(isGenuineLog(String(document), String(envelope), key)).toBe(true);
    const audit = (addenda: typeof bundle.addenda, logged = { document, envelope }) => {
      const { runId } = message;
      const files = { tenant: 'acme', name: runId, document: bundle.document, envelope: bundle.envelope, addenda };
      const checkBundle = () => {
        const found = verifyBundle({ ...bundle, addenda });
        return found.verdict === 'tampered' ? `${found.entry} ${found.problem}` : undefined;
      };
      const terms = { keys: bundle.keys, lists: [], tenants: ['acme'], checkBundle, from: undefined, through: day };
      const [found] = auditEvidence([{ tenant: 'acme', name: day, ...logged }], [files], terms);
      // There are no lists of accepted runs in this story.
      return found && { ...found, findings: found.findings.filter(({ about }) => about !== 'acme') };
    };
    expect(audit(bundle.addenda)).toMatchObject({ confirmed: 4, pending: [], findings: [] });
    const last = JSON.parse(bundle.document.toString()).head.count + 3;
    expect(audit(bundle.addenda.slice(0, 2))).toMatchObject({
      confirmed: 3,
      findings: [
        { about: `${message.runId}/0000000${last}`, problem: expect.stringContaining('has no addendum here') },
      ],
    });
    expect(audit(edited(1, '"olivia"', '"oliver"'))?.findings).toMatchObject([
      { about: message.runId, problem: expect.stringContaining(`addendum ${last - 1} was edited`) },
    ]);
    const without = buildDayLog({ tenant: 'acme', day, previous: null, entries: entries.slice(0, 3) });
    const shorter = documentOf(without);
    const resigned = await signClaim(logClaim(without, sha256Hex(shorter)), shop.signer);
    expect(audit(bundle.addenda, { document: shorter, envelope: resigned })).toMatchObject({
      confirmed: 3,
      pending: [`${message.runId}/0000000${last}`],
    });
  });

  it('name the recorded one of two bundles of a run that was sealed again after a crash, by a later release', async () => {
    const day = dayOf(new Date(shop.clock.now()).toISOString());
    const log = buildDayLog({
      tenant: 'acme',
      day,
      previous: null,
      entries: [...shop.runs.inside.logged('acme', day)],
    });
    const logged = documentOf(log);
    const logs = [
      {
        tenant: 'acme',
        name: day,
        document: logged,
        envelope: await signClaim(logClaim(log, sha256Hex(logged)), shop.signer),
      },
    ];
    const { document, envelope, keys, addenda } = bundle;
    const recorded = { tenant: 'acme', name: message.runId, document, envelope, addenda };
    const versions = { ...JSON.parse(document.toString()).versions, runtime: 'f'.repeat(64) };
    const other = canonical(patched(document.toString(), [{ op: 'replace', path: '/versions', value: versions }]));
    const again = {
      ...recorded,
      document: Buffer.from(other),
      envelope: await signClaim(bundleClaim(Buffer.from(other)), shop.signer),
    };
    expect(verifyBundle({ document: again.document, envelope: again.envelope, keys })).toMatchObject({
      verdict: 'valid',
    });
    const checkBundle = (files: HeldFiles) => {
      const found = verifyBundle({ keys, ...files, envelope: files.envelope as Buffer });
      return found.verdict === 'tampered' ? `was tampered with: ${found.entry} ${found.problem}` : undefined;
    };
    const findings = (held: HeldFiles[], known = logs) =>
      auditEvidence(known, held, { keys, lists: [], tenants: [], checkBundle, from: undefined, through: day })
        .flatMap((audit) => audit.findings)
        .filter(({ about }) => about.startsWith(message.runId))
        .map(({ problem }) => problem);
    for (const held of [
      [recorded, again],
      [again, recorded],
    ]) {
      expect(findings(held)).toEqual([]);
      // On the day itself, before its log is closed.
      expect(findings(held, [])).toEqual([]);
    }
    const last = JSON.parse(document.toString()).head.count;
    const elsewhere = [1, 2, 3].map(
      (each) => `was tampered with: addendum ${last + each} names another bundle, and is valid with none that is here`,
    );
    expect(findings([again], [])).toEqual(elsewhere);
    expect(findings([again])).toEqual([expect.stringContaining('another sha256'), ...elsewhere]);
    const damaged = {
      ...recorded,
      document: Buffer.from(document.toString().replace('"failed_terminal"', '"succeeded"')),
    };
    expect(findings([again, damaged], [])).toEqual([expect.stringMatching(/^was tampered with/), ...elsewhere]);
    // The files of the second bundle are in another folder, with addenda that nobody signed.
    const forged = edited(1, '"olivia"', '"mallory"');
    expect(findings([recorded, { ...again, addenda: forged }])).toEqual([elsewhere[1]]);
    // Files of other runs have the same names.
    const unnamed = addenda.map((each) => ({ ...each, name: 'addendum.json' }));
    const runs = ['run_00000001', 'run_00000002'];
    const about = auditEvidence(
      [],
      runs.map((name) => ({ ...again, name, addenda: unnamed })),
      {
        ...{ keys, lists: [], tenants: [], from: undefined, through: day },
        checkBundle: () => undefined,
      },
    ).flatMap((audit) => audit.findings.map((finding) => finding.about));
    expect(new Set(about.filter((each) => each.startsWith('run_')))).toEqual(new Set(runs));
  });

  it('sealed again are the same, also by the sealer of the bundle', async () => {
    const { runs, evidence: store, exports, texts, signer, clock, log } = shop;
    const sealer = { runs, store, exports, texts, signer, clock, log };
    const seq = JSON.parse(bundle.document.toString()).head.count + 1;
    await sealAddendum(sealer, { entryId: 'acme.x.seal_addendum', ...message, seq });
    expect(await held()).toEqual(bundle);
  });
});

it('a run that was assigned before it was sealed gets its bundle without that commit, and the addendum', async () => {
  const early = await shop.beginPublished('label-new-issue');
  await shop.work(early);
  await assignRun(shop.worker, early, 'ana', 'ana');
  shop.outbox.receiveSeals();
  const { runs, evidence: store, exports, texts, signer, clock, log } = shop;
  const { run } = await shop.now(early);
  const sealer = { runs, store, exports, texts, signer, clock, log };
  await sealAddendum(sealer, { entryId: 'acme.x.seal_addendum', ...early, seq: run.seq });
  message = early;
  bundle = await held();
  expect(verdict()).toMatchObject({ verdict: 'valid', summary: { commits: run.seq - 1, addenda: 1 } });
});
