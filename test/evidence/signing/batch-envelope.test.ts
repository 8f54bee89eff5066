import { beforeAll, describe, expect, it } from 'vitest';
import { bundleClaim } from '../../../lambdas/evidence/bundle/bundle-claim.ts';
import { signClaims } from '../../../lambdas/evidence/signing/dsse.ts';
import { type HeldBundle, verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { canonicalJson, sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { SeededSigner } from '../../fakes/seeded-signer.ts';
import { inBatch, SIGNER, sealedBundle } from '../bundle/sealed-bundle.ts';
import { isGenuine } from '../verify/second-verifier.ts';

type Envelope = {
  batch: { index: number; path: string[]; payload: string };
  payload: string;
  signatures: [{ keyid: string; sig: string }];
};

let alone: HeldBundle;
let others: HeldBundle[];
beforeAll(async () => {
  alone = await sealedBundle();
  others = await Promise.all(['2', '3', '4', '5'].map((last) => sealedBundle({ runId: `run_0000000${last}` })));
});

const parsed = ({ envelope }: HeldBundle): Envelope => JSON.parse(envelope.toString());
const decoded = (payload: string) => JSON.parse(Buffer.from(payload, 'base64').toString());
const encoded = (statement: unknown) => Buffer.from(canonicalJson(statement)).toString('base64');
const withEnvelope = (bundle: HeldBundle, envelope: unknown): HeldBundle => ({
  ...bundle,
  envelope: Buffer.from(canonicalJson(envelope)),
});
const PUBLIC_KEY = String(SIGNER.publicKey.export({ type: 'spki', format: 'pem' }));
/** Both verifiers agree. */
function verdict(bundle: HeldBundle) {
  const first = verifyBundle(bundle);
  expect(isGenuine(String(bundle.document), String(bundle.envelope), PUBLIC_KEY)).toBe(first.verdict === 'valid');
  return first;
}

describe('a bundle that was signed together with others', () => {
  it.each([0, 1, 2, 3, 4])('verifies on its own at place %i', async (at) => {
    const bundle = await inBatch(alone, others, { at });
    expect(parsed(bundle).batch.index).toBe(at);
    expect(verdict(bundle)).toMatchObject({ verdict: 'valid', summary: { runId: 'run_00000001' } });
  });

  it('has an envelope of the earlier form if it was signed alone', async () => {
    const [envelope] = await signClaims([bundleClaim(alone.document)], SIGNER);
    expect(envelope?.equals(alone.envelope)).toBe(true);
  });

  it('says nothing about the others', async () => {
    const text = JSON.stringify(decoded(parsed(await inBatch(alone, others)).batch.payload));
    for (const { document } of others) expect(text).not.toContain(sha256Hex(document));
  });

  it.each<[string, (envelope: Envelope, other: Envelope) => unknown]>([
    ['another index', (own) => ({ ...own, batch: { ...own.batch, index: 0 } })],
    ['an index beyond the batch', (own) => ({ ...own, batch: { ...own.batch, index: 5 } })],
    ['a sibling less', (own) => ({ ...own, batch: { ...own.batch, path: own.batch.path.slice(1) } })],
    ['a sibling more', (own) => ({ ...own, batch: { ...own.batch, path: [...own.batch.path, sha256Hex('x')] } })],
    ['another sibling', (own) => ({ ...own, batch: { ...own.batch, path: own.batch.path.with(0, sha256Hex('x')) } })],
    ['a field more', (own) => ({ ...own, batch: { ...own.batch, note: '' } })],
    ['no batch', ({ batch: _batch, ...own }) => own],
    ['the batch as its statement', ({ batch, ...own }) => ({ ...own, payload: batch.payload })],
    ['the statement as its batch', (own) => ({ ...own, batch: { ...own.batch, payload: own.payload } })],
    ['the statement of another run', (own, other) => ({ ...own, payload: other.payload })],
    [
      'a batch of another size',
      (own) => {
        const statement = decoded(own.batch.payload);
        statement.predicate.size = 6;
        return { ...own, batch: { ...own.batch, payload: encoded(statement) } };
      },
    ],
    [
      'a batch that names another key',
      (own) => {
        const statement = decoded(own.batch.payload);
        statement.predicate.keyId = 'other';
        return { ...own, batch: { ...own.batch, payload: encoded(statement) } };
      },
    ],
  ])('is rejected with %s', async (_what, change) => {
    const bundle = await inBatch(alone, others);
    const [other] = others as [HeldBundle];
    const changed = change(parsed(bundle), parsed(await inBatch(other, [alone, ...others.slice(1)])));
    expect(verdict(withEnvelope(bundle, changed)).verdict).not.toMatch(/valid|rules_broken|unproven/);
  });

  it('is rejected with a batch that another key signed', async () => {
    const bundle = await inBatch(alone, others, { signer: new SeededSigner('mallory') });
    expect(verdict(bundle)).toMatchObject({ verdict: 'tampered', entry: 'signature' });
  });

  it('is rejected with the envelope of another run of its batch', async () => {
    const [other] = others as [HeldBundle];
    const { envelope } = await inBatch(other, [alone, ...others.slice(1)]);
    expect(verdict({ ...alone, envelope })).toMatchObject({ verdict: 'tampered', entry: 'run' });
  });
});
