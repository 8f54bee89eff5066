import type { AgentConfig } from '../config.ts';
import type { CommandReport } from '../result-spool.ts';
import type { System } from '../system.ts';
import { type CredentialSession, CredentialUnavailable, type FetchedSecret } from './credential-source.ts';
import { secretTexts } from './secret-fields.ts';
import { SecretsManagerSession } from './secrets-manager.ts';
import { VaultSession } from './vault.ts';

type UsedCredential = CommandReport['credentials_used'][number];

/** The credentials of one command, from the fetch to the revocation. They are in memory only. */
export class HeldCredentials {
  readonly #config: AgentConfig;
  readonly #system: System;
  readonly #firstDescriptor: number;
  readonly #used: UsedCredential[] = [];
  #vault: VaultSession | undefined;
  #secretsManager: SecretsManagerSession | undefined;
  readonly #ended = new AbortController();
  /** Variables of the process of the command. */
  environment: Record<string, string> = {};
  /** What the process of the command reads from file descriptors. */
  inputs: Buffer[] = [];
  /** All values, to be hidden in the output. */
  secrets: string[] = [];

  constructor(config: AgentConfig, system: System, firstDescriptor: number) {
    this.#config = config;
    this.#system = system;
    this.#firstDescriptor = firstDescriptor;
  }

  /** Fetches each credential. If one is not available, it throws, and the caller releases the others. */
  async fetch(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      const started = this.#system.monotonic();
      const { fields, source, auditId, ttlSeconds } = await this.#fetchOne(id);
      const fetch_ms = Math.round(this.#system.monotonic() - started);
      this.#used.push({ id, source, audit_id: auditId, ttl_seconds: ttlSeconds, revoked: false, fetch_ms });
      this.#handOver(id, fields);
    }
    if (this.#vault) void this.#renewUntilEnd(this.#vault);
  }

  /** Revokes everything, forgets all values, and returns what was used, for the evidence. */
  async release(): Promise<UsedCredential[]> {
    this.#ended.abort();
    const revoked = {
      vault: await this.#vault?.revoke().catch(() => false),
      secrets_manager: await this.#secretsManager?.revoke(),
    };
    for (const used of this.#used) used.revoked = revoked[used.source] ?? false;
    // Bytes are overwritten. Texts cannot be in JavaScript: they are left to the garbage collector.
    for (const input of this.inputs) input.fill(0);
    this.environment = {};
    this.inputs = [];
    this.secrets = [];
    return this.#used;
  }

  async #fetchOne(id: string): Promise<FetchedSecret> {
    const place = this.#config.credentials[id];
    if (place?.vault && this.#config.vault) {
      this.#vault ??= new VaultSession(this.#config.vault);
      return this.#vault.fetch(place.vault);
    }
    if (place?.secretsManager) {
      this.#secretsManager ??= new SecretsManagerSession();
      return this.#secretsManager.fetch(place.secretsManager);
    }
    throw new CredentialUnavailable(`agent.yaml has no credential ${id}`);
  }

  #handOver(id: string, fields: Readonly<Record<string, string>>): void {
    const { env = {}, fd = {} } = this.#config.credentials[id] ?? {};
    this.secrets.push(...Object.values(fields).flatMap(secretTexts));
    const missing = Object.keys({ ...env, ...fd }).filter((field) => fields[field] === undefined);
    if (missing.length > 0) {
      const known = Object.keys(fields).join(', ') || 'none';
      throw new CredentialUnavailable(`credential ${id} has no field ${missing.join(', ')}; it has: ${known}`);
    }
    const cut = Object.keys(env).filter((field) => fields[field]?.includes('\0'));
    // The error that Node.js would throw shows the value.
    if (cut.length > 0) {
      throw new CredentialUnavailable(
        `credential ${id} has a NUL character in ${cut.join(', ')}, which no variable can have; hand it over with fd`,
      );
    }
    for (const [field, variable] of Object.entries(env)) this.environment[variable] = fields[field] ?? '';
    for (const [field, variable] of Object.entries(fd)) {
      this.environment[variable] = String(this.#firstDescriptor + this.inputs.length);
      this.inputs.push(Buffer.from(fields[field] ?? ''));
    }
  }

  /** While the command runs, what expires is renewed for at most 5 minutes at a time. */
  async #renewUntilEnd(session: CredentialSession): Promise<void> {
    for (let after = session.renewAfterMs; after !== undefined; ) {
      await this.#system.sleep(after, this.#ended.signal);
      if (this.#ended.signal.aborted) return;
      // If it fails, the credential expires by itself, and the command sees an error of its target.
      after = await session.renew().catch(() => undefined);
    }
  }
}
