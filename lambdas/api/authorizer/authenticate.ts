import type { Definitions } from '../../pipeline/definitions.ts';
import { type ApiKeys, callerWithKey } from './api-keys.ts';
import { type Caller, NO_CREDENTIAL } from './caller.ts';
import { personOfToken } from './person-of-token.ts';
import { Unauthenticated } from './unauthenticated.ts';
import { type TokenIssuers, verifyToken } from './verify-token.ts';

export interface Authenticator {
  keys: Pick<ApiKeys, 'find' | 'recordUse'>;
  definitions: Pick<Definitions, 'person' | 'personWithIdentity'>;
  issuers: TokenIssuers;
  clock: { now(): number };
}

type Headers = Readonly<Record<string, string | undefined>>;

/** Who calls, by API key or by token. Throws `Unauthenticated` with the reason. Nothing about people or keys is cached. */
export async function authenticate(authenticator: Authenticator, headers: Headers = {}): Promise<Caller> {
  const { 'x-api-key': apiKey = '', authorization = '' } = headers;
  if (apiKey !== '' && authorization !== '') {
    throw new Unauthenticated('send one credential, either Authorization or x-api-key');
  }
  if (apiKey !== '') return callerWithKey(authenticator, apiKey);
  const [, token] = /^Bearer +(\S+)$/i.exec(authorization) ?? [];
  if (token === undefined) throw new Unauthenticated(NO_CREDENTIAL);
  return callerWithToken(authenticator, token);
}

/** People who sign in have all rights of their role, unless the scopes of their token are for tools only. */
async function callerWithToken({ issuers, definitions }: Authenticator, token: string): Promise<Caller> {
  const verified = await verifyToken(issuers, token);
  const { id, role } = await personOfToken(definitions, verified);
  const { issuer, expiresAt, tools } = verified;
  const credential = { kind: 'oidc' as const, name: issuer.name, expiresAt };
  return { tenant: issuer.tenant, person: id, role, credential, ...(tools && { tools }) };
}
