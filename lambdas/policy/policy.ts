import type { Risk } from '../connectors/connector.ts';
import type { Effect } from '../run/receipt.ts';
import type { DerivedTarget } from '../workflow/model-flow.ts';

export type Environment = 'prod' | 'staging' | 'dev';

/** One call to the outside as its connector proposes it, before anything is sent. */
export interface ProposedAction {
  tool: string;
  /** `servicenow`, the first part of the tool. */
  connector: string;
  instance: string;
  target: string;
  /** What is written, values included. */
  fields: Record<string, unknown>;
  effect: Effect;
  risk: Risk;
  blastRadius: Risk;
  environment: Environment;
  destructive: boolean;
  reversible: boolean;
  /** True for a write that takes an earlier one back. */
  undo: boolean;
  /** What of it derives from a model although it decides where the call reaches: people must agree to that. */
  derived?: DerivedTarget[];
  /** Who had a hand in it: the trigger's actor, the workflow's author, whoever edited the payload. None of them approves it. */
  makers: string[];
}

/** The question put to policy: may this automation do this, now. */
export interface PolicyRequest {
  tenant: string;
  automation: string;
  workspace: string;
  workflow: { name: string; version: number };
  /** Where the run came from: `github`, `servicenow`. */
  source: string;
  /** Writes this run has made before this one. */
  writesBefore: number;
  action: ProposedAction;
}

/** The most people that anything may ask for: policies, and `approval` steps of a workflow. */
export const QUORUM_MAX_PEOPLE = 10;

/** Who must say yes: how many people, each trusted with this tier and in one group of every set. */
export interface ApprovalRequirement {
  tier: Risk;
  quorum: number;
  groups: string[][];
  /** Operators may decide too, whatever their tier: it is only about repeating a write. */
  operators?: true;
}

/** What a decision rests on: the hash of the whole policy set, the policies that determined it, and their reasons. */
export interface Grounds {
  policyHash: string;
  policies: string[];
  reasons: string[];
}

export const groundsOf = ({ policyHash, policies, reasons }: Grounds): Grounds => ({ policyHash, policies, reasons });

export type PolicyDecision =
  | ({ verdict: 'allow' } & Grounds)
  | ({ verdict: 'needs_approval'; requirement: ApprovalRequirement } & Grounds)
  /** `message`: what the engine said when it failed. It may quote the request, so evidence has it as a digest. */
  | ({
      verdict: 'deny';
      code: 'POLICY_DENIED' | 'POLICY_ERROR';
      message?: string;
      /** The policies could not be read just now, so nobody said no: whoever can wait asks again later. */
      retryable?: true;
    } & Grounds);

/** Why, in a sentence; empty if policy gave no reason. */
export function whyOf(decision: Pick<Grounds, 'reasons'> & { message?: string }): string {
  return decision.message ?? decision.reasons.join('; ');
}

/** Decides, and never throws: whatever goes wrong on the way to a decision is a denial. */
export interface Policy {
  /** `fresh` looks past what is kept in memory: for a write that rests on an approval given some time ago. */
  decide(request: PolicyRequest, looking?: { fresh: boolean }): Promise<PolicyDecision>;
}

/** A tenant's own policies, beside those that ship. */
export type TenantPolicies =
  /** Cedar texts by file name. */
  | { engine: 'cedar'; files: Record<string, string> }
  /** A Rego policy compiled to WASM, gzipped and in base64; it decides instead of Cedar. */
  | { engine: 'rego'; wasmGzipBase64: string };

/** They are there, and could not be read just now. */
export class PoliciesUnavailable extends Error {
  override name = 'PoliciesUnavailable';
  constructor(options?: { cause?: unknown }) {
    super('the policies could not be read just now', options);
  }
}

export const NO_TENANT_POLICIES: TenantPolicies = { engine: 'cedar', files: {} };
