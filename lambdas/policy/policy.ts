import type { Risk } from '../connectors/connector.ts';
import type { Effect } from '../run/receipt.ts';
import type { DerivedTarget } from '../workflow/model-flow.ts';
import type { BeforeValues, TriggerFacts } from './policy-facts.ts';

export type Environment = 'prod' | 'staging' | 'dev';

/** One call to a target, as its connector proposes it before anything is sent. */
export interface ProposedAction {
  tool: string;
  /** `servicenow`, the first part of the tool. */
  connector: string;
  instance: string;
  target: string;
  /** The written fields and their values. */
  fields: Record<string, unknown>;
  effect: Effect;
  risk: Risk;
  blastRadius: Risk;
  environment: Environment;
  destructive: boolean;
  reversible: boolean;
  /** True for a write that undoes an earlier one. */
  undo: boolean;
  /** Target fields whose values derive from a model: people must approve these. */
  derived?: DerivedTarget[];
  /** The trigger's actor, the workflow's author, and editors of the payload. They may not approve the write. */
  makers: string[];
}

/** The question to policy: may this automation do this now? */
export interface PolicyRequest {
  tenant: string;
  automation: string;
  workspace: string;
  workflow: { name: string; version: number };
  /** Where the run came from: `github`, `servicenow`. */
  source: string;
  /** Writes this run has made before this one. */
  writesBefore: number;
  /** The time of the decision, in UTC. The requests that version 0.1 recorded have no time and no trigger. */
  at?: string;
  trigger?: TriggerFacts;
  /** The current values of what the write changes; absent if they were not read. */
  before?: BeforeValues;
  action: ProposedAction;
}

/** For policies and for `approval` steps of a workflow. */
export const QUORUM_MAX_PEOPLE = 10;

/** How many people must approve. Each must have this tier and belong to one group of every set. */
export interface ApprovalRequirement {
  tier: Risk;
  quorum: number;
  groups: string[][];
  /** Operators of any tier may decide too, because only the repetition of a write is decided. */
  operators?: true;
}

/** The hash of the policy set, the policies that determined the decision, and their reasons. */
export interface Grounds {
  policyHash: string;
  policies: string[];
  reasons: string[];
}

export const groundsOf = ({ policyHash, policies, reasons }: Grounds): Grounds => ({ policyHash, policies, reasons });

export type PolicyDecision =
  | ({ verdict: 'allow' } & Grounds)
  | ({ verdict: 'needs_approval'; requirement: ApprovalRequirement } & Grounds)
  /** `message` is the error of the engine. It may quote the request, so evidence contains only its digest. */
  | ({
      verdict: 'deny';
      code: 'POLICY_DENIED' | 'POLICY_ERROR';
      message?: string;
      /** The policies could not be read. No policy denied the action, so the caller may retry. */
      retryable?: true;
    } & Grounds);

/** The reasons as one text; empty if policy gave none. */
export function whyOf(decision: Pick<Grounds, 'reasons'> & { message?: string }): string {
  return decision.message ?? decision.reasons.join('; ');
}

export interface PolicyOptions {
  /** Bypasses the cache: for a write whose approval was given some time ago. */
  fresh?: boolean;
  /** Called if the policies use the values before the write and the request does not have them. */
  readBefore?: () => Promise<BeforeValues | undefined>;
}

/** Never throws: every error becomes a denial. */
export interface Policy {
  decide(request: PolicyRequest, options?: PolicyOptions): Promise<PolicyDecision>;
}

/** A tenant's policies, in addition to the shipped ones. */
export type TenantPolicies =
  /** Cedar texts by file name. */
  | { engine: 'cedar'; files: Record<string, string> }
  /** A Rego policy compiled to WASM, gzipped, in base64. It replaces Cedar. */
  | { engine: 'rego'; wasmGzipBase64: string };

/** The policies exist but could not be read; a retry may help. */
export class PoliciesUnavailable extends Error {
  override name = 'PoliciesUnavailable';
  constructor(options?: { cause?: unknown }) {
    super('the policies could not be read', options);
  }
}

export const NO_TENANT_POLICIES: TenantPolicies = { engine: 'cedar', files: {} };
