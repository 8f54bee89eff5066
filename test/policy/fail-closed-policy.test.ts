import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { RISKS } from '../../lambdas/connectors/connector.ts';
import { CedarPolicies } from '../../lambdas/policy/cedar-policies.ts';
import { CedarRuntime, loadCedar } from '../../lambdas/policy/cedar-runtime.ts';
import { FailClosedPolicy, POLICY_TIMEOUT_MS, type Stopwatch } from '../../lambdas/policy/fail-closed-policy.ts';
import { OpaPolicies } from '../../lambdas/policy/opa-policies.ts';
import {
  NO_TENANT_POLICIES,
  PoliciesUnavailable,
  type PolicyRequest,
  type TenantPolicies,
} from '../../lambdas/policy/policy.ts';
import type { PolicyEngines, PreparedPolicies } from '../../lambdas/policy/policy-engine.ts';
import { readShippedPolicies } from '../../lambdas/policy/shipped-policies.ts';
import { anyCharacter } from '../fakes/any-character.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';
import { compiledRego } from './rego.ts';
import { aRequest } from './requests.ts';

const SEED = 20_260_102;
const shipped = readShippedPolicies();
const engines: PolicyEngines = {
  cedar: new CedarPolicies(new CedarRuntime(loadCedar, () => shipped.schema), () => shipped),
  rego: new OpaPolicies(),
};

/** A stopwatch whose time the test sets, and whose timers the test fires. */
class FakeStopwatch implements Stopwatch {
  ms = 0;
  readonly alarms = new Set<() => void>();

  nowMs(): number {
    return this.ms;
  }

  after(_ms: number, act: () => void): () => void {
    this.alarms.add(act);
    return () => this.alarms.delete(act);
  }
}

let clock: FakeClock;
let stopwatch: FakeStopwatch;
let log: MemoryLog;
let reads: string[];
let defined: TenantPolicies | (() => Promise<TenantPolicies>);

beforeEach(() => {
  clock = new FakeClock();
  stopwatch = new FakeStopwatch();
  log = new MemoryLog();
  reads = [];
  defined = NO_TENANT_POLICIES;
});

function policyWith(changed: { engines?: PolicyEngines; isTool?: (tool: string) => boolean } = {}) {
  return new FailClosedPolicy({
    tenantPolicies: async (tenant) => {
      reads.push(tenant);
      return typeof defined === 'function' ? defined() : defined;
    },
    engines,
    isTool: () => true,
    now: () => clock.now(),
    stopwatch,
    log,
    ...changed,
  });
}

const ofCedar = (prepare: () => Promise<PreparedPolicies>): PolicyEngines => ({ ...engines, cedar: { prepare } });
const freeze = (id: string): TenantPolicies => ({
  engine: 'cedar',
  files: { 'freeze.cedar': `@id("${id}") forbid (principal, action, resource);` },
});

describe('policy decides', () => {
  it("with the tenant's policies and the shipped ones", async () => {
    const policy = policyWith();
    expect(await policy.decide(aRequest())).toMatchObject({ verdict: 'allow', policies: ['low-risk-writes'] });
    defined = freeze('freeze');
    expect(await policy.decide(aRequest({}, { tenant: 'globex' }))).toMatchObject({
      verdict: 'deny',
      code: 'POLICY_DENIED',
      policies: ['freeze'],
    });
    expect(log.lines).toEqual([]);
  });

  it('with the engine the tenant chose', async () => {
    defined = compiledRego('decision');
    expect(await policyWith().decide(aRequest())).toMatchObject({ verdict: 'allow', policies: ['low-risk'] });
  });

  it('with cached policies, and with fresh ones on request', async () => {
    const policy = policyWith();
    await policy.decide(aRequest());
    defined = freeze('freeze');
    expect((await policy.decide(aRequest())).verdict).toBe('allow');
    expect((await policy.decide(aRequest(), { fresh: true })).verdict).toBe('deny');
    expect(reads).toHaveLength(2);
    clock.advance(60_000);
    expect((await policy.decide(aRequest())).verdict).toBe('deny');
    expect(reads).toHaveLength(3);
  });

  it('with sets that are prepared once', async () => {
    let prepared = 0;
    const policy = policyWith({
      engines: ofCedar(async () => {
        prepared += 1;
        return engines.cedar.prepare({ engine: 'cedar', files: {} });
      }),
    });
    for (const fresh of [true, false, true]) await policy.decide(aRequest(), { fresh });
    expect({ prepared, reads: reads.length }).toEqual({ prepared: 1, reads: 3 });
  });
});

describe('every error denies (fault 34)', () => {
  const cases: [string, () => FailClosedPolicy, string][] = [
    [
      'policies that cannot be read',
      () => {
        defined = async () => {
          throw new Error('the table is throttled');
        };
        return policyWith();
      },
      'the table is throttled',
    ],
    [
      'policies that are invalid',
      () => {
        defined = { engine: 'cedar', files: { 'mine.cedar': '\npermit (principal' } };
        return policyWith();
      },
      'mine.cedar:2',
    ],
    [
      'an unknown engine',
      () => {
        defined = { engine: 'crystal-ball' } as unknown as TenantPolicies;
        return policyWith();
      },
      'crystal-ball',
    ],
    [
      'a missing engine',
      () => {
        const missing = new CedarRuntime(
          () => {
            throw new Error('cedar_wasm_bg.wasm: no such file');
          },
          () => shipped.schema,
        );
        return policyWith({ engines: { ...engines, cedar: new CedarPolicies(missing, () => shipped) } });
      },
      'no such file',
    ],
    [
      'missing policies that should have shipped',
      () => {
        const absent = () => {
          throw new Error('default.cedar: no such file');
        };
        return policyWith({
          engines: { ...engines, cedar: new CedarPolicies(new CedarRuntime(loadCedar, absent), absent) },
        });
      },
      'no such file',
    ],
    [
      'an engine that throws',
      () =>
        policyWith({
          engines: ofCedar(async () => ({
            hash: 'h',
            warnings: [],
            ids: [],
            mentions: [],
            decide: () => {
              throw 'a text, as WebAssembly may throw';
            },
          })),
        }),
      'a text, as WebAssembly may throw',
    ],
    [
      'an engine that is slow',
      () =>
        policyWith({
          engines: ofCedar(async () => ({
            hash: 'h',
            warnings: [],
            ids: [],
            mentions: [],
            decide: () => {
              stopwatch.ms += POLICY_TIMEOUT_MS + 1;
              return { verdict: 'allow', policyHash: 'h', policies: [], reasons: [] };
            },
          })),
        }),
      `longer than ${POLICY_TIMEOUT_MS} ms`,
    ],
    ['an unknown tool', () => policyWith({ isTool: () => false }), 'unknown tool "servicenow.incident.update"'],
  ];

  it.each(cases)('%s', async (_, setUp, said) => {
    const policy = setUp();
    for (const fresh of [false, true]) {
      expect(await policy.decide(aRequest(), { fresh })).toEqual({
        verdict: 'deny',
        code: 'POLICY_ERROR',
        policyHash: expect.any(String),
        policies: [],
        // Evidence has reasons in full, but only the digest of a message: the text of an engine may quote the request.
        reasons: ['policy could not decide'],
        message: expect.stringContaining(said),
      });
    }
    expect(log.lines.map(({ level }) => level)).toEqual(['error', 'error']);
    expect(stopwatch.alarms.size).toBe(0);
  });

  it.each([
    [
      'policies that never arrive',
      () => {
        defined = () => new Promise(() => {});
        return policyWith();
      },
    ],
    [
      'an engine that never answers',
      () =>
        policyWith({
          engines: ofCedar(async () => ({
            hash: 'h',
            warnings: [],
            ids: [],
            mentions: [],
            decide: () => new Promise(() => {}),
          })),
        }),
    ],
  ])('%s, after the timeout', async (_, setUp) => {
    const deciding = setUp().decide(aRequest());
    for (const ring of stopwatch.alarms) ring();
    expect(await deciding).toMatchObject({ verdict: 'deny', code: 'POLICY_ERROR' });
  });

  it('only a denial that a retry may resolve is retryable', async () => {
    const retryable = async (policy: FailClosedPolicy, ring = false) => {
      const deciding = policy.decide(aRequest());
      if (ring) for (const alarm of stopwatch.alarms) alarm();
      const decision = await deciding;
      return decision.verdict === 'deny' && decision.retryable === true;
    };
    defined = () => Promise.reject(new PoliciesUnavailable());
    expect(await retryable(policyWith())).toBe(true);
    defined = () => new Promise(() => {});
    expect(await retryable(policyWith(), true)).toBe(true);
    defined = { engine: 'cedar', files: { 'mine.cedar': '\npermit (principal' } };
    expect(await retryable(policyWith())).toBe(false);
    defined = freeze('freeze');
    expect(await retryable(policyWith())).toBe(false);
    defined = NO_TENANT_POLICIES;
    const hanging = ofCedar(() => new Promise(() => {}));
    expect(await retryable(policyWith({ engines: hanging }), true)).toBe(false);
  });

  it('a temporary error does not persist', async () => {
    defined = async () => {
      throw new Error('the table is throttled');
    };
    const policy = policyWith();
    await policy.decide(aRequest());
    defined = NO_TENANT_POLICIES;
    expect((await policy.decide(aRequest())).verdict).toBe('allow');
  });

  it('a denial names the policy set that failed', async () => {
    const { policyHash } = await policyWith().decide(aRequest());
    expect(await policyWith().decide(aRequest({ risk: 'extreme' as never }))).toMatchObject({
      verdict: 'deny',
      code: 'POLICY_ERROR',
      policyHash,
    });
  });
});

describe('incomplete requests', () => {
  const anything = fc.anything({ maxDepth: 2 });
  /** Mostly values of a connector, sometimes random ones. */
  const mostly = (expected: fc.Arbitrary<unknown>) =>
    fc.oneof({ weight: 15, arbitrary: expected }, { weight: 1, arbitrary: anything });
  const action = fc.record({
    effect: mostly(fc.constantFrom('read', 'natural', 'probe', 'opaque')),
    risk: mostly(fc.constantFrom(...RISKS)),
    blastRadius: mostly(fc.constantFrom(...RISKS)),
    environment: mostly(fc.constantFrom('prod', 'staging', 'dev')),
    target: mostly(fc.string({ unit: anyCharacter })),
    fields: mostly(fc.dictionary(fc.string(), anything)),
    makers: mostly(fc.array(fc.string({ unit: 'grapheme' }))),
    undo: mostly(fc.boolean()),
    destructive: mostly(fc.boolean()),
    reversible: mostly(fc.boolean()),
  });
  const run = fc.record({ writesBefore: mostly(fc.nat()), source: mostly(fc.string()) });
  const isOneOf = (values: readonly string[], value: unknown) => values.includes(value as string);

  it.each([
    ['cedar', NO_TENANT_POLICIES],
    ['rego', compiledRego('decision')],
  ] as const)(
    '%s: random requests never throw, and what is not understood is never allowed',
    async (engine, policies) => {
      defined = policies;
      const policy = policyWith();
      const verdicts = new Set<string>();
      await fc.assert(
        fc.asyncProperty(action, run, async (changedAction, changedRun) => {
          const request = aRequest(changedAction as never, changedRun as never);
          const decision = await policy.decide(request as PolicyRequest);
          verdicts.add(decision.verdict);
          const understood =
            isOneOf(RISKS, changedAction.risk) &&
            (engine === 'rego' ||
              (isOneOf(RISKS, changedAction.blastRadius) &&
                isOneOf(['prod', 'staging', 'dev'], changedAction.environment) &&
                isOneOf(['read', 'natural', 'probe', 'opaque'], changedAction.effect)));
          if (!understood) expect(decision.verdict).toBe('deny');
        }),
        { seed: SEED, numRuns: 200 },
      );
      expect([...verdicts].sort()).toEqual(['allow', 'deny', 'needs_approval']);
    },
  );
});
