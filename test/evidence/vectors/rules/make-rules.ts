/**
 * Writes format-2 (an earlier version wrote format-1): `node test/evidence/vectors/rules/make-rules.ts`. Only needed for new rules or a new format. Then run
 * `npm run format`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleClaim } from '../../../../lambdas/evidence/bundle/bundle-claim.ts';
import { signClaim } from '../../../../lambdas/evidence/signing/dsse.ts';
import { RULES } from '../../../../lambdas/evidence/verify/rules/check-rules.ts';
import { canonicalJson } from '../../../../lambdas/run/canonical-json.ts';
import { SIGNER } from '../../bundle/sealed-bundle.ts';
import { forged } from './forged.ts';
import { FORGERIES } from './forgeries.ts';
import { approvedRun, editedRun, phasedRun, rolledBackRun } from './honest-runs.ts';

const bases = {
  approved: await approvedRun(),
  edited: await editedRun(),
  phased: await phasedRun(),
  rolledBack: await rolledBackRun(),
};

const folder = join(import.meta.dirname, 'format-2');
const publicKey = String(SIGNER.publicKey.export({ type: 'spki', format: 'pem' }));
mkdirSync(folder, { recursive: true });
for (const { number, name } of RULES) {
  const vectors = [];
  for (const { breaks, what, of, forgery } of FORGERIES.filter(({ rule }) => rule === number)) {
    const document = Buffer.from(canonicalJson(JSON.parse(JSON.stringify(forged(bases[of], forgery)))));
    const envelope = await signClaim(bundleClaim(document), SIGNER);
    vectors.push({ what, breaks, document: String(document), envelope: String(envelope) });
  }
  const file = join(folder, `rule-${String(number).padStart(2, '0')}.json`);
  writeFileSync(file, `${JSON.stringify({ rule: number, name, publicKey, vectors }, null, 2)}\n`);
}
