import type { Log } from '../entry/ports.ts';
import type { EvidenceStore } from '../evidence/evidence-store.ts';
import { type NamedTexts, textKey } from '../evidence/named-texts.ts';
import type { TenantPolicies } from '../policy/policy.ts';
import { InvalidPolicies } from '../policy/policy-engine.ts';
import { policyTexts } from '../policy/policy-texts.ts';
import type { ShippedPolicies } from '../policy/shipped-policies.ts';
import { canonicalJson, sha256Hex } from '../run/canonical-json.ts';
import type { Run } from '../run/run.ts';
import type { Definitions } from './definitions.ts';

/** Hashes that a warm function knows; beyond this it forgets all. */
const KNOWN_MAX = 10_000;

interface Ports {
  store: Pick<EvidenceStore, 'putOnce'>;
  definitions: Pick<Definitions, 'policies' | 'workflow'>;
  shipped: () => ShippedPolicies;
  log: Log;
}

/** Policy sets and workflow versions, each stored once under its SHA-256, as long as the evidence that names it. */
export class TextArchive {
  readonly #ports: Ports;
  readonly #known = new Set<string>();

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * A workflow version never changes, so that of a run is stored when the run is sealed. Policies change: each set is stored when
   * it is published, and the current one also here, because an upgrade changes the shipped policies.
   */
  async keepTextsOf({ tenant, workflow }: Pick<Run, 'tenant' | 'workflow'>, named: NamedTexts): Promise<void> {
    const { definitions } = this.#ports;
    if (named.policies.some((hash) => !this.#isKnown(tenant, hash))) {
      await this.keepPolicies(tenant, [await definitions.policies(tenant)]);
      // One that is not current was stored when it was current.
      for (const hash of named.policies) this.#know(tenant, hash);
    }
    if (named.workflow === undefined || this.#isKnown(tenant, named.workflow)) return;
    const published = await definitions.workflow(tenant, workflow.name, workflow.version);
    if (published) await this.#keep(tenant, Buffer.from(canonicalJson(published)));
    this.#know(tenant, named.workflow);
  }

  async keepPolicies(tenant: string, sets: readonly TenantPolicies[]): Promise<void> {
    for (const policies of sets) {
      for (const text of this.#textsOf(tenant, policies)) await this.#keep(tenant, text);
    }
  }

  /** Invalid policies decide nothing, so no evidence names them. */
  #textsOf(tenant: string, policies: TenantPolicies): Buffer[] {
    try {
      return policyTexts(policies, this.#ports.shipped);
    } catch (error) {
      if (!(error instanceof InvalidPolicies)) throw error;
      this.#ports.log.warn('the policies of a tenant are invalid, so their text is not stored', { tenant, error });
      return [];
    }
  }

  async #keep(tenant: string, text: Buffer): Promise<void> {
    const hash = sha256Hex(text);
    if (this.#isKnown(tenant, hash)) return;
    await this.#ports.store.putOnce(textKey(tenant, hash), text, 'application/octet-stream');
    this.#know(tenant, hash);
  }

  #isKnown(tenant: string, hash: string): boolean {
    return this.#known.has(textKey(tenant, hash));
  }

  #know(tenant: string, hash: string): void {
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.add(textKey(tenant, hash));
  }
}
