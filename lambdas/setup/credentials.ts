import * as z from 'zod';
import { nameProblem } from '../connectors/credential-form.ts';

const Tenant = z.string();
/** Who asked for the change. The operator of the stage calls the function directly, without a person. */
const Actor = z.string().max(200).default('operator');
const Connection = z.string().refine((name) => nameProblem(name) === undefined, 'no connection can have this name');

export const StoreCredentials = z.strictObject({
  tenant: Tenant,
  actor: Actor,
  connection: Connection,
  /** The address that the credentials are for. They are not sent to any other. */
  baseUrl: z.url(),
  /** Absent: stays as it is. Null: is removed. */
  credential: z.record(z.string(), z.unknown()).nullable().optional(),
  /** The credential of plans, which must not be able to write. */
  planCredential: z.record(z.string(), z.unknown()).nullable().optional(),
});
export const StoreSigningSecret = z.strictObject({
  tenant: Tenant,
  actor: Actor,
  source: z.string().max(63),
  secret: z.string().max(2_000),
  /** The secret before this one stays valid, so that the sender can change over. */
  keepPrevious: z.boolean().default(true),
});
export const DropPreviousSecrets = z.strictObject({ tenant: Tenant, actor: Actor, source: z.string().max(63) });
const TestConnection = z.strictObject({ tenant: Tenant, connection: Connection });
const DescribeCredentials = z.strictObject({ tenant: Tenant });

/** Whether an entry exists and can be used; never its value. */
export interface CredentialState {
  state: 'set' | 'missing' | 'malformed';
  problem?: string;
}

export interface SigningState {
  source: string;
  /** How many secrets are valid: two during a rotation. */
  usable: number;
  /** CloudFormation generated the secret, and nobody has replaced it. */
  generated: boolean;
  problems: string[];
}

export interface DescribedCredentials {
  connections: { connection: string; credential: CredentialState; planCredential: CredentialState }[];
  signing: SigningState[];
  /** Secrets that are not a JSON object, by their purpose. */
  unreadable: string[];
}

export interface TestFinding {
  level: 'ok' | 'warning' | 'error';
  /** Which credential was used. */
  credential: 'credential' | 'planCredential';
  text: string;
}

/** The credentials of the tenants. Nothing here returns a credential. */
export interface Credentials {
  describe(request: z.input<typeof DescribeCredentials>): Promise<DescribedCredentials>;
  /** Returns whether something changed. */
  store(request: z.input<typeof StoreCredentials>): Promise<{ changed: boolean }>;
  storeSigningSecret(request: z.input<typeof StoreSigningSecret>): Promise<SigningState>;
  dropPreviousSecrets(request: z.input<typeof DropPreviousSecrets>): Promise<SigningState>;
  test(request: z.input<typeof TestConnection>): Promise<{ findings: TestFinding[] }>;
}

/** The event of the function: the name of one method and its request. */
export const CredentialsCall = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('describe'), request: DescribeCredentials }),
  z.strictObject({ action: z.literal('store'), request: StoreCredentials }),
  z.strictObject({ action: z.literal('storeSigningSecret'), request: StoreSigningSecret }),
  z.strictObject({ action: z.literal('dropPreviousSecrets'), request: DropPreviousSecrets }),
  z.strictObject({ action: z.literal('test'), request: TestConnection }),
]);
