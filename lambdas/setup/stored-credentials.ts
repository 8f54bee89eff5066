import type * as z from 'zod';
import { MESSAGING } from '../connectors/connections.ts';
import { withAddress, withoutAddress } from '../connectors/credential-address.ts';
import { credentialProblem, kindOf, SYSTEMS } from '../connectors/credential-form.ts';
import { didYouMean } from '../entry/did-you-mean.ts';
import type { SecretPurpose } from '../entry/tenant-secrets.ts';
import { checkSecrets, isSigningSource, NAMED_SOURCES, SecretDocument, signingKey } from '../intake/signing-secrets.ts';
import { CountersignError } from '../run/errors.ts';
import { type CredentialPorts, changeEntry } from './change-entry.ts';
import type {
  CredentialState,
  Credentials,
  DescribedCredentials,
  DropPreviousSecrets,
  SigningState,
  StoreCredentials,
  StoreSigningSecret,
  TestFinding,
} from './credentials.ts';
import type { Entries } from './secret-documents.ts';

/** The secret with the credential of a connection. */
const purposeOf = (connection: string): SecretPurpose => (MESSAGING.includes(connection) ? 'messaging' : 'connections');

export interface StoredCredentialsPorts extends CredentialPorts {
  tenants: readonly string[];
  testConnection(tenant: string, connection: string): Promise<TestFinding[]>;
}

/** Reads, checks and changes the credentials in the tenants' secrets. */
export class StoredCredentials implements Credentials {
  readonly #ports: StoredCredentialsPorts;

  constructor(ports: StoredCredentialsPorts) {
    this.#ports = ports;
  }

  async describe({ tenant }: { tenant: string }): Promise<DescribedCredentials> {
    this.#assertTenant(tenant);
    const purposes: SecretPurpose[] = ['connections', 'messaging', 'plan-connections', 'webhook-signing'];
    const read = await Promise.all(purposes.map((purpose) => this.#ports.documents.read(tenant, purpose)));
    const entries = Object.fromEntries(purposes.map((purpose, at) => [purpose, read[at]?.entries]));
    const state = (purpose: SecretPurpose, connection: string) =>
      credentialState(connection, entries[purpose], purpose);
    return {
      connections: [...SYSTEMS, ...agentsIn(entries.connections)].map((connection) => ({
        connection,
        credential: state(purposeOf(connection), connection),
        planCredential: state('plan-connections', connection),
      })),
      signing: signingSources(entries['webhook-signing']).map((source) =>
        signingState(source, entries['webhook-signing']),
      ),
      unreadable: purposes.filter((purpose) => entries[purpose] === undefined),
    };
  }

  async store(request: z.input<typeof StoreCredentials>): Promise<{ changed: boolean }> {
    const { tenant, actor = 'operator', connection, baseUrl } = request;
    this.#assertTenant(tenant);
    const wanted: [SecretPurpose, Record<string, unknown> | null | undefined][] = [
      [purposeOf(connection), request.credential],
      ['plan-connections', request.planCredential],
    ];
    for (const [, credential] of wanted) {
      const problem = credential ? credentialProblem(connection, credential) : undefined;
      if (problem !== undefined) throw new CountersignError('INPUT_INVALID', problem);
    }
    let changed = false;
    for (const [purpose, credential] of wanted) {
      if (credential === undefined) continue;
      const next = () => (credential === null ? undefined : withAddress(connection, credential, baseUrl));
      changed = (await changeEntry(this.#ports, { tenant, purpose, entry: connection, actor, next })) || changed;
    }
    return { changed };
  }

  async storeSigningSecret(request: z.input<typeof StoreSigningSecret>): Promise<SigningState> {
    const { source, secret, keepPrevious = true } = request;
    if (!isSigningSource(source)) throw unknownSource(source);
    const { problem } = signingKey(source, secret);
    if (problem !== undefined) throw new CountersignError('INPUT_INVALID', `the secret cannot be used: ${problem}`);
    return this.#changeSigning(request, (current) => {
      const [newest] = current.filter((each) => each !== secret);
      return keepPrevious && newest !== undefined ? [secret, newest] : [secret];
    });
  }

  async dropPreviousSecrets(request: z.input<typeof DropPreviousSecrets>): Promise<SigningState> {
    if (!isSigningSource(request.source)) throw unknownSource(request.source);
    return this.#changeSigning(request, (current) => current.slice(0, 1));
  }

  async test({ tenant, connection }: { tenant: string; connection: string }) {
    this.#assertTenant(tenant);
    return { findings: await this.#ports.testConnection(tenant, connection) };
  }

  async #changeSigning(
    { tenant, source, actor = 'operator' }: { tenant: string; source: string; actor?: string },
    change: (current: readonly string[]) => string[],
  ): Promise<SigningState> {
    this.#assertTenant(tenant);
    const next = (current: unknown) => change([current ?? []].flat().map(String));
    const purpose = 'webhook-signing' as const;
    await changeEntry(this.#ports, { tenant, purpose, entry: source, actor, next });
    return signingState(source, (await this.#ports.documents.read(tenant, purpose)).entries);
  }

  #assertTenant(tenant: string): void {
    if (this.#ports.tenants.includes(tenant)) return;
    const { tenants } = this.#ports;
    throw new CountersignError(
      'NOT_FOUND',
      `this stage has no tenant ${tenant}${didYouMean(tenant, tenants) || `; it has: ${tenants.join(', ')}`}`,
    );
  }
}

function credentialState(connection: string, entries: Entries | undefined, purpose: SecretPurpose): CredentialState {
  if (entries === undefined) return { state: 'malformed', problem: `the secret ${purpose} is not a JSON object` };
  const stored = entries[connection];
  if (stored === undefined) return { state: 'missing' };
  const problem = credentialProblem(connection, withoutAddress(stored).credential);
  return problem === undefined ? { state: 'set' } : { state: 'malformed', problem };
}

/** The agents of sessions that have a credential. */
const agentsIn = (entries: Entries = {}): string[] =>
  Object.keys(entries).filter((connection) => kindOf(connection) === 'a2a');

/** The systems that every tenant can connect, and the tenant's own sources that have a secret. */
const signingSources = (entries: Entries = {}): string[] => [
  ...new Set([...NAMED_SOURCES, ...Object.keys(entries).filter(isSigningSource)]),
];

function signingState(source: string, entries: Entries | undefined): SigningState {
  const stored = entries?.[source];
  const document = SecretDocument.safeParse(stored === undefined ? {} : { [source]: stored });
  if (entries === undefined || !document.success) {
    return { source, usable: 0, generated: false, problems: ['it is not a list of texts'] };
  }
  const { usable, problems } = checkSecrets(document.data);
  return {
    source,
    usable: usable[source]?.length ?? 0,
    generated: typeof stored === 'string',
    problems: problems.map(({ position, problem }) => `secret ${position}: ${problem}`),
  };
}

const unknownSource = (source: string) =>
  new CountersignError(
    'NOT_FOUND',
    `${source} does not sign webhooks${didYouMean(source, NAMED_SOURCES) || `; these do: ${NAMED_SOURCES.join(', ')}, generic/NAME`}`,
  );
