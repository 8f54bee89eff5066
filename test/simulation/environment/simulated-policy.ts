import { findOperation } from '../../../lambdas/connectors/registry.ts';
import { FailClosedPolicy, POLICY_TIMEOUT_MS } from '../../../lambdas/policy/fail-closed-policy.ts';
import {
  type ApprovalRequirement,
  PoliciesUnavailable,
  type PolicyDecision,
  type PolicyOptions,
  type PolicyRequest,
  type ProposedAction,
} from '../../../lambdas/policy/policy.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import type { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';
import { type Fault, InjectedFault } from '../faults.ts';
import type { VirtualTime } from './virtual-time.ts';

const ONE: ApprovalRequirement = { tier: 'medium', quorum: 1, groups: [] };
const TWO_OF_OPS: ApprovalRequirement = { tier: 'medium', quorum: 2, groups: [['ops']] };

type Ruling = 'allow' | 'deny' | ApprovalRequirement;

/** Policies of a tenant. `same_rules` decides as `usual` does, but has another hash. */
const RULES = {
  usual: ({ risk }: ProposedAction): Ruling => (risk === 'high' ? ONE : 'allow'),
  same_rules: ({ risk }: ProposedAction): Ruling => (risk === 'high' ? ONE : 'allow'),
  stricter: ({ risk }: ProposedAction): Ruling => (risk === 'high' ? TWO_OF_OPS : risk === 'medium' ? ONE : 'allow'),
  milder: (): Ruling => 'allow',
  denying: ({ risk }: ProposedAction): Ruling => (risk === 'low' ? 'allow' : 'deny'),
  no_undo: ({ risk, undo }: ProposedAction): Ruling => (undo ? 'deny' : risk === 'high' ? ONE : 'allow'),
} satisfies Record<string, (action: ProposedAction) => Ruling>;
export type Rules = keyof typeof RULES;
export const ALL_RULES = Object.keys(RULES) as Rules[];

const FILE = 'rules';

/** The deployed policy code on each machine, with an engine that may fail. Records what the engine decided. */
export class SimulatedPolicy {
  readonly #time: VirtualTime;
  readonly #definitions: MemoryDefinitions;
  readonly #machines = new Map<number, FailClosedPolicy>();
  /** The fault of the engine for this request. */
  readonly #faultOf = new WeakMap<PolicyRequest, Fault>();
  readonly #decided = new Set<string>();
  readonly #decidedFresh = new Set<string>();
  #published = 0;
  #slow = false;
  /** The policies cannot be read during this call. The code reads them before its first await. */
  #unreadable = false;

  constructor(time: VirtualTime, definitions: MemoryDefinitions) {
    this.#time = time;
    this.#definitions = definitions;
  }

  publish(tenant: string, rules: Rules): void {
    this.#published += 1;
    this.#definitions.savePolicies(tenant, { engine: 'cedar', files: { [FILE]: `${rules} ${this.#published}` } });
  }

  async decide(
    machine: number,
    fault: Fault | undefined,
    request: PolicyRequest,
    options: PolicyOptions = {},
  ): Promise<PolicyDecision> {
    if (fault) this.#faultOf.set(request, fault);
    this.#slow = fault === 'policy_slow';
    this.#unreadable = fault === 'policies_unreadable';
    const deciding = this.#policyOf(machine).decide(request, this.#unreadable ? { fresh: true } : options);
    this.#unreadable = false;
    const decision = await deciding;
    if (options.fresh) this.#decidedFresh.add(decisionText(request, decision));
    return decision;
  }

  /** Whether the engine made this decision on this request, with freshly read policies if `fresh`. */
  hasDecided(request: PolicyRequest, decision: PolicyDecision, fresh: boolean): boolean {
    const text = decisionText(request, decision);
    return this.#decided.has(text) && (!fresh || this.#decidedFresh.has(text));
  }

  #policyOf(machine: number): FailClosedPolicy {
    const known = this.#machines.get(machine);
    if (known) return known;
    const engine = {
      prepare: async ({ files }: { files: Record<string, string> }) => this.#prepared(files[FILE] ?? ''),
    };
    const policy = new FailClosedPolicy({
      tenantPolicies: async (tenant) => {
        if (this.#unreadable) throw new PoliciesUnavailable();
        return this.#definitions.policies(tenant);
      },
      engines: { cedar: engine, rego: { prepare: () => Promise.reject(new Error('there is no such engine here')) } },
      isTool: (tool) => findOperation(tool) !== undefined,
      now: () => this.#time.now(),
      stopwatch: {
        nowMs: () => this.#time.now(),
        // A timer only for slow decisions: timers for all of them would be most of the scheduled calls.
        after: (ms, act) => this.#unlessCanceled(ms, act),
      },
      log: { info: () => {}, warn: () => {}, error: () => {} },
    });
    this.#machines.set(machine, policy);
    return policy;
  }

  #unlessCanceled(ms: number, act: () => void): () => void {
    let canceled = false;
    if (this.#slow) this.#time.after(ms, () => !canceled && act());
    return () => {
      canceled = true;
    };
  }

  #prepared(text: string) {
    const rules = RULES[text.split(' ')[0] as Rules];
    const hash = sha256Hex(text).slice(0, 12);
    return {
      hash,
      warnings: [],
      ids: [],
      mentions: [],
      decide: async (request: PolicyRequest): Promise<PolicyDecision> => {
        const fault = this.#faultOf.get(request);
        if (fault === 'policy_error') throw new InjectedFault(fault, { kind: 'policy', name: 'policy' });
        if (fault === 'policy_slow') await this.#lateDecision();
        const decision = decisionOf(rules(request.action), { policyHash: hash, policies: [text], reasons: [] });
        if (fault !== 'policy_slow') this.#decided.add(decisionText(request, decision));
        return decision;
      },
    };
  }

  #lateDecision(): Promise<void> {
    return new Promise((resolve) => this.#time.after(2 * POLICY_TIMEOUT_MS, resolve));
  }
}

function decisionOf(ruling: Ruling, grounds: { policyHash: string; policies: string[]; reasons: string[] }) {
  if (ruling === 'allow') return { verdict: 'allow' as const, ...grounds };
  if (ruling === 'deny') return { verdict: 'deny' as const, code: 'POLICY_DENIED' as const, ...grounds };
  return { verdict: 'needs_approval' as const, requirement: ruling, ...grounds };
}

/** Requests are stored as documents, so their text is compared. */
const decisionText = (request: PolicyRequest, { verdict, policyHash }: PolicyDecision) =>
  `${verdict} ${policyHash} ${JSON.stringify(request)}`;
