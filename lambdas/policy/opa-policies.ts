import { createRequire } from 'node:module';
import * as z from 'zod';
import { RISKS } from '../connectors/connector.ts';
import { hashOf } from '../run/canonical-json.ts';
import { GroupSets } from './approval-requirement.ts';
import { type PolicyDecision, type PolicyRequest, QUORUM_MAX_PEOPLE, type TenantPolicies } from './policy.ts';
import { InvalidPolicies, type PolicyEngine, type PreparedPolicies } from './policy-engine.ts';
import { nowOf } from './policy-facts.ts';
import { regoSetText, unzipModule } from './policy-texts.ts';

export type Opa = typeof import('@open-policy-agent/opa-wasm');

type CompiledRego = Extract<TenantPolicies, { engine: 'rego' }>;

/** Rule `decision` of package `countersign`, as `opa build -t wasm -e countersign/decision` names it. */
const ENTRYPOINT = 'countersign/decision';

const MEMORY_PAGE_BYTES = 64 * 1024;
const MEMORY_INITIAL_PAGES = (2 * 1024 * 1024) / MEMORY_PAGE_BYTES;
/** A policy that needs more memory aborts, which denies. */
const MEMORY_MAX_PAGES = (16 * 1024 * 1024) / MEMORY_PAGE_BYTES;

/** The allowed results of a Rego policy. Any other result denies. Lazy, because few tenants have such policies. */
const ResultSet = z.lazy(() => {
  const grounds = { policies: z.array(z.string()), reasons: z.array(z.string()) };
  const Decision = z.discriminatedUnion('verdict', [
    z.strictObject({ verdict: z.literal('allow'), ...grounds }),
    z.strictObject({
      verdict: z.literal('needs_approval'),
      requirement: z.strictObject({
        tier: z.enum(RISKS),
        quorum: z.int().min(1).max(QUORUM_MAX_PEOPLE),
        groups: GroupSets.default([]),
      }),
      ...grounds,
    }),
    z.strictObject({ verdict: z.literal('deny'), ...grounds }),
  ]);
  return z.tuple([z.strictObject({ result: Decision })]);
});

/** Open Policy Agent: a Rego policy compiled to WebAssembly decides instead of Cedar. Its input is the PolicyRequest, and `now`. */
export class OpaPolicies implements PolicyEngine<'rego'> {
  readonly #load: () => Opa;

  constructor(load = loadOpa) {
    this.#load = load;
  }

  async prepare({ wasmGzipBase64 }: CompiledRego): Promise<PreparedPolicies> {
    return this.prepareModule(unzipModule(wasmGzipBase64));
  }

  async prepareModule(wasm: Buffer<ArrayBuffer>): Promise<PreparedPolicies> {
    const opa = this.#load();
    const { entrypoints } = await start(opa, wasm).catch((error: unknown) => {
      throw new InvalidPolicies([`the policy is not a WebAssembly module compiled by OPA: ${messageOf(error)}`]);
    });
    if (!Object.hasOwn(entrypoints, ENTRYPOINT)) {
      throw new InvalidPolicies([
        `the policy has no entrypoint ${ENTRYPOINT}; build it with: opa build -t wasm -e ${ENTRYPOINT}`,
      ]);
    }
    return new OpaSet(opa, wasm);
  }
}

class OpaSet implements PreparedPolicies {
  readonly hash: string;
  readonly warnings = [];
  readonly ids = [];
  readonly mentions = [];
  readonly usesBefore: boolean;
  readonly #opa: Opa;
  readonly #wasm: Buffer<ArrayBuffer>;

  constructor(opa: Opa, wasm: Buffer<ArrayBuffer>) {
    this.#opa = opa;
    this.#wasm = wasm;
    // OPA's compiler stores the names of attributes as text.
    this.usesBefore = wasm.includes('before');
    this.hash = hashOf(regoSetText(wasm));
  }

  async decide(request: PolicyRequest): Promise<PolicyDecision> {
    // A new instance for each decision, so that no state is left over. The compiled code is reused.
    const policy = await start(this.#opa, this.#wasm);
    const parsed = ResultSet.safeParse(policy.evaluate({ ...request, now: nowOf(request) }, ENTRYPOINT));
    if (!parsed.success) throw new Error(`the policy returned no valid decision: ${z.prettifyError(parsed.error)}`);
    const [{ result }] = parsed.data;
    if (result.verdict === 'deny') return { ...result, code: 'POLICY_DENIED', policyHash: this.hash };
    return { ...result, policyHash: this.hash };
  }
}

const start = async (opa: Opa, wasm: Buffer<ArrayBuffer>) =>
  opa.loadPolicy(wasm, { initial: MEMORY_INITIAL_PAGES, maximum: MEMORY_MAX_PAGES });

/** Loaded only for tenants that use it. */
const loadOpa = () => createRequire(import.meta.url)('@open-policy-agent/opa-wasm') as Opa;

/** OPA throws strings. */
const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
