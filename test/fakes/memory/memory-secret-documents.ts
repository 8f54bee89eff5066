import type { SecretPurpose } from '../../../lambdas/entry/tenant-secrets.ts';
import type { Entries, ReadDocument, SecretDocuments } from '../../../lambdas/setup/secret-documents.ts';

interface Version {
  version: string;
  /** Undefined: the text is not a JSON object. */
  entries: Entries | undefined;
}

export class MemorySecretDocuments implements SecretDocuments {
  readonly #current = new Map<string, Version>();
  readonly #staged = new Map<string, Version>();

  /** Replaces a whole secret, as an operator with AWS credentials can. */
  set(
    tenant: string,
    purpose: SecretPurpose,
    entries: Entries | undefined,
    version = `set-${this.#current.size}`,
  ): void {
    this.#current.set(`${tenant}/${purpose}`, { version, entries: structuredClone(entries) });
  }

  async read(tenant: string, purpose: SecretPurpose): Promise<ReadDocument> {
    return structuredClone(this.#current.get(`${tenant}/${purpose}`) ?? { version: 'generated', entries: {} });
  }

  async stage(tenant: string, purpose: SecretPurpose, entries: Entries, version: string): Promise<void> {
    this.#staged.set(`${tenant}/${purpose}`, structuredClone({ version, entries }));
  }

  async publish(tenant: string, purpose: SecretPurpose, version: string, replaces: string): Promise<boolean> {
    const { version: current } = await this.read(tenant, purpose);
    const staged = this.#staged.get(`${tenant}/${purpose}`);
    if (current !== replaces || staged?.version !== version) return false;
    this.#current.set(`${tenant}/${purpose}`, staged);
    return true;
  }
}
