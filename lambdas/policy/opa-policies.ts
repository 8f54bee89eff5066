import { gunzipSync } from 'node:zlib';
import * as z from 'zod';
import { RISKS } from '../connectors/connector.ts';
import { hashOf, sha256Hex } from '../run/canonical-json.ts';
import { GroupSets } from './approval-requirement.ts';
import { loadOpa, type Opa } from './opa-runtime.ts';
import { type PolicyDecision, type PolicyRequest, QUORUM_MAX_PEOPLE, type TenantPolicies } from './policy.ts';
import { InvalidPolicies, type PolicyEngine, type PreparedPolicies } from './policy-engine.ts';

type CompiledRego = Extract<TenantPolicies, { engine: 'rego' }>;

/** Rule `decision` of package `countersign`, as `opa build -t wasm -e countersign/decision` names it. */
const ENTRYPOINT = 'countersign/decision';

/** A module of OPA's compiler has about 130 KB and grows with the policy. */
const WASM_MAX_BYTES = 4 * 1024 * 1024;
const MEMORY_PAGE_BYTES = 64 * 1024;
const MEMORY_INITIAL_PAGES = (2 * 1024 * 1024) / MEMORY_PAGE_BYTES;
/** A policy that needs more aborts, which is a no. */
const MEMORY_MAX_PAGES = (16 * 1024 * 1024) / MEMORY_PAGE_BYTES;

const grounds = { policies: z.array(z.string()), reasons: z.array(z.string()) };

/** All that a Rego policy may answer; anything else is a no. */
const Answer = z.discriminatedUnion('verdict', [
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
const ResultSet = z.tuple([z.strictObject({ result: Answer })]);

/** Open Policy Agent: a Rego policy, compiled to WebAssembly, decides instead of Cedar. Its input is the PolicyRequest. */
export class OpaPolicies implements PolicyEngine<'rego'> {
  readonly #load: () => Opa;

  constructor(load = loadOpa) {
    this.#load = load;
  }

  async prepare({ wasmGzipBase64 }: CompiledRego): Promise<PreparedPolicies> {
    const opa = this.#load();
    const wasm = unzip(wasmGzipBase64);
    const { entrypoints } = await start(opa, wasm).catch((error: unknown) => {
      throw new InvalidPolicies([`the policy is not a WebAssembly module of OPA's compiler: ${messageOf(error)}`]);
    });
    if (!Object.hasOwn(entrypoints, ENTRYPOINT)) {
      throw new InvalidPolicies([`the policy has no ${ENTRYPOINT}; build it with: opa build -t wasm -e ${ENTRYPOINT}`]);
    }
    return new OpaSet(opa, wasm);
  }
}

class OpaSet implements PreparedPolicies {
  readonly hash: string;
  readonly warnings = [];
  readonly ids = [];
  readonly mentions = [];
  readonly #opa: Opa;
  readonly #wasm: Buffer<ArrayBuffer>;

  constructor(opa: Opa, wasm: Buffer<ArrayBuffer>) {
    this.#opa = opa;
    this.#wasm = wasm;
    this.hash = hashOf({ engine: 'rego', wasm: sha256Hex(wasm) });
  }

  async decide(request: PolicyRequest): Promise<PolicyDecision> {
    // A new instance for each decision (the engine keeps the compiled code): nothing is left over from an earlier one.
    const policy = await start(this.#opa, this.#wasm);
    const answer = ResultSet.safeParse(policy.evaluate(request, ENTRYPOINT));
    if (!answer.success) throw new Error(`the policy's answer is not a decision: ${z.prettifyError(answer.error)}`);
    const [{ result }] = answer.data;
    if (result.verdict === 'deny') return { ...result, code: 'POLICY_DENIED', policyHash: this.hash };
    return { ...result, policyHash: this.hash };
  }
}

const start = async (opa: Opa, wasm: Buffer<ArrayBuffer>) =>
  opa.loadPolicy(wasm, { initial: MEMORY_INITIAL_PAGES, maximum: MEMORY_MAX_PAGES });

function unzip(wasmGzipBase64: string): Buffer<ArrayBuffer> {
  try {
    return gunzipSync(Buffer.from(wasmGzipBase64, 'base64'), { maxOutputLength: WASM_MAX_BYTES });
  } catch (cause) {
    throw new InvalidPolicies([
      `the policy is not gzip in base64 of at most ${WASM_MAX_BYTES} bytes: ${messageOf(cause)}`,
    ]);
  }
}

/** OPA throws texts. */
const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
