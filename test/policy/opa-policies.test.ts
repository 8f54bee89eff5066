import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { type Opa, OpaPolicies } from '../../lambdas/policy/opa-policies.ts';
import { InvalidPolicies } from '../../lambdas/policy/policy-engine.ts';
import { compiledRego } from './rego.ts';
import { aRequest } from './requests.ts';

const engine = new OpaPolicies();
const set = await engine.prepare(compiledRego('decision'));

it('a Rego policy receives every value in full, and the time', async () => {
  const inputs: unknown[] = [];
  const evaluate = (input: unknown) => {
    inputs.push(input);
    return [{ result: { verdict: 'allow', policies: [], reasons: [] } }];
  };
  const entrypoints = { 'countersign/decision': 0 };
  const opa = { loadPolicy: async () => ({ entrypoints, evaluate }) } as unknown as Opa;
  const request = aRequest({ fields: { note: 'x'.repeat(60_000), body: { items: ['y'.repeat(5000)] } } });
  await (await new OpaPolicies(() => opa).prepare(compiledRego('decision'))).decide(request);
  const now = { time: request.at, date: '2026-01-07', weekday: 'wednesday', hour: 12 };
  expect(inputs).toEqual([{ ...request, now }]);
});

describe('a Rego policy decides behind the same port', () => {
  it('allows, requires approval and denies with its own reasons', async () => {
    expect(await set.decide(aRequest({ risk: 'low' }))).toEqual({
      verdict: 'allow',
      policyHash: set.hash,
      policies: ['low-risk'],
      reasons: ['the write puts little at risk'],
    });
    expect(await set.decide(aRequest({ risk: 'medium' }))).toEqual({
      verdict: 'needs_approval',
      policyHash: set.hash,
      policies: ['ask'],
      reasons: ['servicenow.incident.update asks people'],
      requirement: { tier: 'medium', quorum: 2, groups: [['sre']] },
    });
    expect(await set.decide(aRequest({ risk: 'high' }))).toEqual({
      verdict: 'deny',
      code: 'POLICY_DENIED',
      policyHash: set.hash,
      policies: ['default'],
      reasons: ['no rule permits it'],
    });
  });

  it('has the hash of its module, regardless of the compression', async () => {
    const wasm = readFileSync(join(import.meta.dirname, 'rego', 'decision.wasm.gz'));
    expect(set.hash).toMatch(/^[0-9a-f]{64}$/);
    expect((await engine.prepare({ engine: 'rego', wasmGzipBase64: wasm.toString('base64url') })).hash).toBe(set.hash);
  });

  it.each([
    ['has more than was agreed', { target: 'odd:answer', risk: 'high' }],
    ['asks people without saying how many', { target: 'no:requirement', risk: 'high' }],
    ['contradicts itself', { target: 'two:answers', risk: 'high' }],
    ['takes more memory than it may', { target: 'too:much', risk: 'high' }],
  ] as const)('a result that %s is an error and does not affect the next decision', async (_, action) => {
    await expect(async () => set.decide(aRequest(action))).rejects.toThrow();
    expect(await set.decide(aRequest())).toMatchObject({ verdict: 'allow' });
  });

  it.each([
    ['not base64 of gzip', 'nonsense', 'must be gzip in base64'],
    [
      'larger than it may be',
      gzipSync(Buffer.alloc(5 * 1024 * 1024)).toString('base64'),
      'must be gzip in base64, at most',
    ],
    ['not WebAssembly', gzipSync('permit').toString('base64'), 'not a WebAssembly module'],
    ['without the entry point', compiledRego('other-name').wasmGzipBase64, 'has no entrypoint countersign/decision'],
  ])('a module that is %s is rejected', async (_, wasmGzipBase64, said) => {
    const refused = engine.prepare({ engine: 'rego', wasmGzipBase64 });
    await expect(refused).rejects.toThrow(InvalidPolicies);
    await expect(refused).rejects.toThrow(said);
  });
});
