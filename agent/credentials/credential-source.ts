/** The fields of a secret, and how it was obtained. */
export interface FetchedSecret {
  fields: Readonly<Record<string, string>>;
  source: 'vault' | 'secrets_manager';
  /** The id of the request in the audit log of the source. */
  auditId: string | null;
  /** How long it is valid without a renewal; 0 for a static secret, which the agent only forgets. */
  ttlSeconds: number;
}

/** A session with the system that has the secrets, for one command. */
export interface CredentialSession {
  /** The time until the first renewal, in ms; undefined if nothing expires. */
  readonly renewAfterMs: number | undefined;
  /** Extends what expires. Returns the time until the next renewal. */
  renew(): Promise<number | undefined>;
  /** Makes everything that was fetched invalid, as far as the source can. False if that is not certain. */
  revoke(): Promise<boolean>;
}

/** Credentials live at most this long without a renewal. */
export const TTL_MAX_SECONDS = 300;

/** The credential cannot be fetched. The message names no value. */
export class CredentialUnavailable extends Error {}
