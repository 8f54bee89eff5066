import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import { bundleClaim } from '../../../lambdas/evidence/bundle/bundle-claim.ts';
import { signClaim } from '../../../lambdas/evidence/signing/dsse.ts';
import { type HeldBundle, verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { SeededSigner } from '../../fakes/seeded-signer.ts';
import { IS_STORM } from '../../storm.ts';
import { inBatch, sealedBundle, TRUSTED } from '../bundle/sealed-bundle.ts';
import vectors from '../vectors/vectors.json' with { type: 'json' };
import { MUTATIONS } from './mutations.ts';
import { everyEdit, RESEALED_MUTATIONS, resealedAs } from './resealed-mutations.ts';

const SEED = 20_260_102;
const MUTATIONS_TRIED = IS_STORM ? 10_000 : 4_000;
const RESIGNED = 200;
const VALID_TRIED = 60;

/** A run with every kind of entry, one with a single write, the same signed together with others, and another one from which parts are copied. */
let bundles: [HeldBundle, HeldBundle, HeldBundle];
let other: HeldBundle;
beforeAll(async () => {
  const { document, envelope } = vectors.short;
  const short = { document: Buffer.from(document), envelope: Buffer.from(envelope), keys: TRUSTED };
  other = await sealedBundle({ runId: 'run_00000002' });
  bundles = [await sealedBundle(), short, await inBatch(short, [other, other, other])];
});

const isTheSame = (a: HeldBundle, b: HeldBundle) => a.document.equals(b.document) && a.envelope.equals(b.envelope);

/** The short one more often, because it verifies in a third of the time. */
const which = fc.constantFrom<(0 | 1 | 2)[]>(0, 1, 2);
const dice = fc.tuple(fc.nat(), fc.nat(), fc.nat());
const ALL = { ...MUTATIONS, ...RESEALED_MUTATIONS };
const mutations = fc.constantFrom(...Object.entries(MUTATIONS));
// Signing again takes three times as long, and each value that can be edited has its own trial below.
const allMutations = fc.constantFrom(...Object.entries(MUTATIONS), ...Object.entries(ALL));

it(`${MUTATIONS_TRIED} randomly changed bundles are all rejected, and the verifier names the changed entry`, async () => {
  const tried = new Set<string>();
  await fc.assert(
    fc.asyncProperty(which, allMutations, dice, async (index, [name, mutate], numbers) => {
      const bundle = bundles[index];
      const { bundle: mutated, names } = await mutate(bundle, other, numbers);
      fc.pre(!isTheSame(mutated, bundle));
      tried.add(name);
      const verdict = verifyBundle(mutated);
      // Thousands of times `expect` would take longer than what is tested.
      if ('summary' in verdict) throw new Error(`nobody noticed that ${name}`);
      if (names === undefined || verdict.verdict !== 'tampered') return;
      const { entry, problem } = verdict;
      if (!`${entry} `.startsWith(`${names} `)) throw new Error(`${name} in ${names}, but ${entry} ${problem}`);
    }),
    { seed: SEED, numRuns: MUTATIONS_TRIED },
  );
  expect([...tried].sort()).toEqual(Object.keys(ALL).sort());
});

it('the verifier rejects a change of any recorded value, even with a new signature of the stage', async () => {
  const unnoticed: string[] = [];
  let edits = 0;
  for (const bundle of bundles) {
    for (const { path, document } of everyEdit(bundle)) {
      edits += 1;
      const verdict = verifyBundle(await resealedAs(bundle, document));
      if (verdict.verdict !== 'tampered') unnoticed.push(path);
    }
  }
  expect(unnoticed).toEqual([]);
  expect(edits).toBeGreaterThan(300);
});

it('a changed bundle is not valid with a new signature by another key', async () => {
  const mallory = new SeededSigner('mallory');
  await fc.assert(
    fc.asyncProperty(which, mutations, dice, async (index, [, mutate], numbers) => {
      const bundle = bundles[index];
      const { document } = (await mutate(bundle, other, numbers)).bundle;
      const envelope = await resigned(document, mallory);
      fc.pre(envelope !== undefined);
      const verdict = verifyBundle({ ...bundle, document, envelope: envelope ?? bundle.envelope });
      expect(verdict).toMatchObject({ verdict: 'tampered', entry: 'signature' });
    }),
    { seed: SEED, numRuns: RESIGNED },
  );
});

async function resigned(document: Buffer, signer: SeededSigner): Promise<Buffer | undefined> {
  try {
    return await signClaim(bundleClaim(document), signer);
  } catch {
    // A document that cannot be read cannot be signed either.
    return undefined;
  }
}

it('unchanged bundles are always valid', async () => {
  const stories = fc.record({
    tenant: fc.constantFrom('acme', 'globex'),
    runId: fc.stringMatching(/^run_[0-9a-f]{8}$/),
    heartbeats: fc.nat(30),
  });
  await fc.assert(
    fc.asyncProperty(stories, async (story) => {
      expect(verifyBundle(await sealedBundle(story))).toMatchObject({ verdict: 'valid' });
    }),
    { seed: SEED, numRuns: VALID_TRIED },
  );
});
