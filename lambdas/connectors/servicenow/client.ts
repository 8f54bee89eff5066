import * as z from 'zod';
import { type Access, credentialOf } from '../connector.ts';
import { type Exchange, exchange, urlAt } from '../exchange.ts';
import { type Granted, tokenCacheOf } from '../token-cache.ts';

const SYSTEM = 'ServiceNow';

const ClientCredential = z.lazy(() => z.object({ clientId: z.string(), clientSecret: z.string() }));
const Credential = z.lazy(() => z.union([z.object({ username: z.string(), password: z.string() }), ClientCredential]));
const CREDENTIAL_NEEDS = 'the servicenow credential needs "username" and "password", or "clientId" and "clientSecret"';
const AccessToken = z.lazy(() => z.object({ access_token: z.string(), expires_in: z.number() }));

/** The credential in its form; throws CONNECTION_MISSING if it has another. */
export const servicenowCredential = (access: Pick<Access, 'credential'>) =>
  credentialOf(access, Credential, CREDENTIAL_NEEDS);

type Call<Body> = Pick<Exchange<Body>, 'method' | 'body' | 'responseSchema' | 'timeoutMs'> & { path: string };

/** Makes one call to the Table API, as a user or as an OAuth client. `path` starts with the table. */
export async function servicenow<Body>(access: Access, { path, ...call }: Call<Body>) {
  const credential = servicenowCredential(access);
  const as = (authorization: string) =>
    exchange({
      ...call,
      system: SYSTEM,
      url: urlAt(access.baseUrl, `/api/now/table/${path}`),
      headers: { authorization },
    });
  if ('username' in credential) {
    return as(`Basic ${Buffer.from(`${credential.username}:${credential.password}`).toString('base64')}`);
  }
  const grant = (nowMs: number) => grantToken(access, credential, nowMs);
  return tokenCacheOf(access).call(grant, (token) => as(`Bearer ${token}`));
}

async function grantToken(
  { baseUrl }: Access,
  { clientId, clientSecret }: z.infer<typeof ClientCredential>,
  nowMs: number,
): Promise<Granted> {
  const { body } = await exchange({
    system: SYSTEM,
    method: 'POST',
    url: urlAt(baseUrl, '/oauth_token.do'),
    headers: {},
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: clientSecret,
    }),
    readOnly: true,
    responseSchema: AccessToken,
  });
  return { token: body.access_token, expiresAtMs: nowMs + body.expires_in * 1000 };
}
