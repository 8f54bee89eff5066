/** Writes addenda.json: `node test/evidence/vectors/make-addenda.ts`. Only needed for a new version of the format. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assignRun } from '../../../lambdas/run-changes/control/assign-run.ts';
import { resolveRun } from '../../../lambdas/run-changes/control/resolve-run.ts';
import { rollBackEndedRun } from '../../../lambdas/run-changes/control/rollback-ended-run.ts';
import { LABEL, NOTE } from '../../worker/workflows.ts';
import { Workshop } from '../../worker/workshop.ts';

const shop = new Workshop();
globalThis.fetch = shop.outside.fetch;
const file = (runId: string, name: string) => String(shop.evidence.file(runId, name));
const bundleOf = (runId: string) => ({
  document: file(runId, 'bundle.json'),
  envelope: file(runId, 'bundle.dsse.json'),
});

async function addendaOf(runId: string) {
  const records = await shop.runs.addenda('acme', runId, { after: 0, limit: 10 });
  return Promise.all(
    records.map(async ({ documentKey, envelopeKey }) => ({
      document: String(await shop.evidence.get(documentKey)),
      envelope: String(await shop.evidence.get(envelopeKey)),
    })),
  );
}

/** A write of unknown outcome, which a person found at its target. */
const unknown = await shop.begin(NOTE);
shop.outside.next('PATCH servicenow', 'lost_answer');
shop.outside.next('GET servicenow', ...Array(40).fill({ status: 503 }));
await shop.finish(unknown);
await assignRun(shop.worker, unknown, 'olivia', 'olivia');
const resolution = { outcome: 'succeeded', reason: 'the note is there', writes: { note: 'happened' } } as const;
await resolveRun(shop.worker, unknown, resolution, 'olivia');
await shop.finish(unknown);

/** A run that was rolled back after its end, and the run that did so. */
const ended = await shop.begin(LABEL);
await shop.finish(ended);
await rollBackEndedRun(shop.worker, ended, { actor: 'oscar', reason: 'not wanted', rollbackRunId: 'run_f0000000' });
await shop.finish({ tenant: 'acme', runId: 'run_f0000000' });

const vectors = {
  publicKey: String(shop.signer.publicKey.export({ type: 'spki', format: 'pem' })),
  resolved: { ...(await bundleOf(unknown.runId)), addenda: await addendaOf(unknown.runId) },
  rolledBack: { ...(await bundleOf(ended.runId)), addenda: await addendaOf(ended.runId) },
  rollback: { ...(await bundleOf('run_f0000000')), addenda: [] },
  /** One edit each of the second addendum of `resolved`, and what a verifier must say. */
  tampered: [
    { what: 'the finding is edited', in: 'document', from: '"happened"', to: '"did_not"' },
    { what: 'the actor is edited', in: 'document', from: '"actor":"olivia"', to: '"actor":"oliver"' },
    { what: 'the run is edited', in: 'document', from: '"tenant":"acme"', to: '"tenant":"other"' },
    { what: 'the bundle is edited', in: 'document', from: '"bundle":"', to: '"bundle":"0' },
    { what: 'a field is added', in: 'document', from: '{"bundle"', to: '{"a":1,"bundle"' },
    { what: 'white space is added', in: 'document', from: '{', to: '{ ' },
    { what: 'the signature is another', in: 'envelope', from: '"sig":"', to: '"sig":"AAAA' },
    { what: 'the key id is edited', in: 'envelope', from: '"keyid":"test-key/', to: '"keyid":"x' },
  ],
};
writeFileSync(join(import.meta.dirname, 'addenda.json'), `${JSON.stringify(vectors, null, 2)}\n`);
