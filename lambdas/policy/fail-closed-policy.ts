import { Cached } from '../entry/cached.ts';
import { LOGGED } from '../entry/environment.ts';
import type { Log } from '../entry/ports.ts';
import { hashOf } from '../run/canonical-json.ts';
import {
  PoliciesUnavailable,
  type Policy,
  type PolicyDecision,
  type PolicyOptions,
  type PolicyRequest,
  type TenantPolicies,
} from './policy.ts';
import { type PolicyEngines, type PreparedPolicies, prepare } from './policy-engine.ts';

/** A decision takes at most 0.5 ms, with a cold engine a few hundred, and seconds on a busy machine. */
export const POLICY_TIMEOUT_MS = 10_000;
/** A changed policy takes effect within this time, and immediately for an approved write. */
const CHANGES_SEEN_WITHIN_MS = 60_000;
/** A stage has at most 20 tenants; replays temporarily add sets. */
const PREPARED_SETS_MAX = 32;
/** The hash in a decision if the policies could not be read. */
const UNKNOWN_POLICY_HASH = 'unknown';
const MESSAGE_MAX_CHARACTERS = 300;

/** A monotonic clock. */
export interface Stopwatch {
  nowMs(): number;
  /** Starts a timer and returns a function that stops it. */
  after(ms: number, act: () => void): () => void;
}

interface Ports {
  tenantPolicies(tenant: string): Promise<TenantPolicies>;
  engines: PolicyEngines;
  isTool(tool: string): boolean;
  now(): number;
  stopwatch: Stopwatch;
  log: Log;
}

/**
 * Decides with the tenant's policies. Unreadable policies, a broken, slow or missing engine, or an unknown tool result in a denial.
 * If a retry may help, the denial is `retryable`.
 */
export class FailClosedPolicy implements Policy {
  readonly #ports: Ports;
  readonly #cached: Cached<PreparedPolicies>;
  readonly #prepared = new Map<string, Promise<PreparedPolicies>>();

  constructor(ports: Ports) {
    this.#ports = ports;
    this.#cached = new Cached(CHANGES_SEEN_WITHIN_MS, ports.now);
  }

  async decide(request: PolicyRequest, { fresh = false, readBefore }: PolicyOptions = {}): Promise<PolicyDecision> {
    let policyHash = UNKNOWN_POLICY_HASH;
    const reading = { now: false };
    const prepared = async () => {
      const policies = await this.#policiesOf(request.tenant, fresh, reading);
      policyHash = policies.hash;
      if (!this.#ports.isTool(request.action.tool)) throw new Error(`unknown tool "${request.action.tool}"`);
      return policies;
    };
    try {
      const policies = await this.#inTime(prepared);
      // The target has its own time limit.
      const before = policies.usesBefore && !request.before ? await readBefore?.() : undefined;
      const asked = before ? { ...request, before } : request;
      return await this.#inTime(async () => policies.decide(asked));
    } catch (error) {
      const unavailable = error instanceof PoliciesUnavailable || reading.now;
      return { ...this.#denied(request, policyHash, error), ...(unavailable && { retryable: true }) };
    }
  }

  #policiesOf(tenant: string, fresh: boolean, reading: { now: boolean }): Promise<PreparedPolicies> {
    const read = async () => {
      reading.now = true;
      const policies = await this.#ports.tenantPolicies(tenant).finally(() => {
        reading.now = false;
      });
      return this.#prepare(policies);
    };
    return fresh ? read() : this.#cached.get(tenant, read);
  }

  /** Identical policies, even of other tenants, are prepared once. */
  #prepare(policies: TenantPolicies): Promise<PreparedPolicies> {
    const key = hashOf(policies);
    const ready = this.#prepared.get(key);
    if (ready) return ready;
    const [oldest] = this.#prepared.keys();
    if (oldest !== undefined && this.#prepared.size >= PREPARED_SETS_MAX) this.#prepared.delete(oldest);
    const preparing = prepare(this.#ports.engines, policies);
    this.#prepared.set(key, preparing);
    preparing.catch(() => this.#prepared.delete(key));
    return preparing;
  }

  async #inTime<T>(work: () => Promise<T>): Promise<T> {
    const startedAtMs = this.#ports.stopwatch.nowMs();
    const late = Promise.withResolvers<never>();
    const stopTimer = this.#ports.stopwatch.after(POLICY_TIMEOUT_MS, () => late.reject(tooSlow()));
    try {
      const result = await Promise.race([work(), late.promise]);
      // WebAssembly cannot be interrupted, but a late decision is discarded.
      if (this.#ports.stopwatch.nowMs() - startedAtMs > POLICY_TIMEOUT_MS) throw tooSlow();
      return result;
    } finally {
      stopTimer();
    }
  }

  #denied({ tenant, action }: PolicyRequest, policyHash: string, error: unknown) {
    const why = error instanceof Error ? error.message : String(error);
    this.#ports.log.error(LOGGED.policyUndecided, { tenant, tool: action?.tool, error });
    return {
      verdict: 'deny' as const,
      code: 'POLICY_ERROR' as const,
      policyHash,
      policies: [],
      reasons: ['policy could not decide'],
      message: `policy could not decide: ${why}`.slice(0, MESSAGE_MAX_CHARACTERS).toWellFormed(),
    };
  }
}

const tooSlow = () => new Error(`the decision took longer than ${POLICY_TIMEOUT_MS} ms`);
