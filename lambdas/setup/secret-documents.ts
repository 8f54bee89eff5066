import type { SecretPurpose } from '../entry/tenant-secrets.ts';

export type Entries = Readonly<Record<string, unknown>>;

export interface ReadDocument {
  /** The entries by name; undefined if the text is not a JSON object. */
  entries: Entries | undefined;
  /** The version that was read. */
  version: string;
}

/** The secrets of the tenants, each a JSON object that changes as a whole. */
export interface SecretDocuments {
  read(tenant: string, purpose: SecretPurpose): Promise<ReadDocument>;
  /** Stores a version that nobody reads yet. */
  stage(tenant: string, purpose: SecretPurpose, entries: Entries, version: string): Promise<void>;
  /** Makes a staged version current. Returns false, and changes nothing, if `replaces` is no longer current. */
  publish(tenant: string, purpose: SecretPurpose, version: string, replaces: string): Promise<boolean>;
}
