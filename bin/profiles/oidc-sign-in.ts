import { createHash, randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as z from 'zod';
import { scopesFor } from '../../client/oidc-scopes.ts';
import { EXIT, Failure } from '../commands/failure.ts';
import type { SignIn } from './profiles.ts';

const REQUEST_TIMEOUT_MS = 15_000;
/** People may have to find their second factor. */
const SIGN_IN_TIMEOUT_MS = 5 * 60_000;

const Discovery = z.object({
  issuer: z.string(),
  authorization_endpoint: z.url(),
  token_endpoint: z.url(),
  scopes_supported: z.unknown().optional(),
});
const Tokens = z.object({
  access_token: z.string().optional(),
  id_token: z.string().optional(),
  refresh_token: z.string().optional(),
});
type Tokens = z.infer<typeof Tokens>;

export interface Issuer {
  name: string;
  issuer: string;
  clientId: string;
  audience: string;
}

const refused = (message: string, cause?: unknown): Failure => new Failure(EXIT.refused, message, { cause });

/**
 * Signs a person in: authorization code with PKCE, and a redirect to a port of this machine (RFC 8252). `open` shows the
 * address to the person.
 */
export async function signIn(
  { issuer, clientId, audience }: Issuer,
  open: (url: string) => void,
  now: () => number,
): Promise<SignIn> {
  const discovery = await discover(issuer);
  const [state, nonce, verifier] = [random(), random(), random()];
  const server = createServer();
  try {
    const redirectUri = await listen(server);
    const address = new URL(discovery.authorization_endpoint);
    const query = {
      client_id: clientId,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: scopesFor(discovery.scopes_supported),
      state,
      nonce,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      ...(audience !== clientId && { audience }),
    };
    for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
    const received = codeFrom(server, state, issuer);
    open(address.href);
    const tokens = await requestTokens(discovery.token_endpoint, {
      grant_type: 'authorization_code',
      client_id: clientId,
      redirect_uri: redirectUri,
      code: await received,
      code_verifier: verifier,
    });
    if (tokens.id_token !== undefined && claimsOf(tokens.id_token).nonce !== nonce) {
      throw refused('the response of the issuer belongs to another sign-in; sign in again');
    }
    const sends = audience === clientId ? 'id_token' : 'access_token';
    return signInWith(tokens, { issuer, clientId, tokenEndpoint: discovery.token_endpoint, sends }, now);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

/** New tokens for a sign-in; undefined if the person must sign in again. */
export async function refresh(before: SignIn, now: () => number): Promise<SignIn | undefined> {
  const { clientId, tokenEndpoint, refreshToken } = before;
  if (refreshToken === undefined) return undefined;
  try {
    const form = { grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken };
    return signInWith(await requestTokens(tokenEndpoint, form), before, now);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

function signInWith(tokens: Tokens, before: Omit<SignIn, 'token' | 'expiresAt'>, now: () => number): SignIn {
  const { sends } = before;
  const token = tokens[sends];
  if (token === undefined) throw refused(`the issuer returned no ${sends}; ask its administrator to allow it`);
  const { exp } = claimsOf(token);
  const expiresAt = new Date(typeof exp === 'number' ? exp * 1000 : now()).toISOString();
  const refreshToken = tokens.refresh_token ?? before.refreshToken;
  return { ...before, token, expiresAt, ...(refreshToken !== undefined && { refreshToken }) };
}

async function discover(issuer: string): Promise<z.infer<typeof Discovery>> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const parsed = Discovery.safeParse(await fetchJson(url, {}));
  if (parsed.success && parsed.data.issuer === issuer) return parsed.data;
  throw refused(`${url} is not the discovery document of ${issuer}; check the setting issuers of the stage`);
}

async function requestTokens(url: string, form: Record<string, string>): Promise<Tokens> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' };
  const body = new URLSearchParams(form).toString();
  return Tokens.parse(await fetchJson(url, { method: 'POST', headers, body }));
}

async function fetchJson(url: string, init: RequestInit): Promise<unknown> {
  const failed = (reason: string, cause?: unknown) =>
    refused(`the issuer did not sign you in: ${url} ${reason}`, cause);
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) }).catch((cause) => {
    throw failed('does not respond', cause);
  });
  const text = await response.text();
  let body: Record<string, unknown> = {};
  try {
    body = JSON.parse(text);
  } catch (cause) {
    throw failed(`responded with ${response.status} and no JSON`, cause);
  }
  if (response.ok) return body;
  throw failed(`responded with ${response.status}: ${String(body?.error_description ?? body?.error ?? 'no reason')}`);
}

function listen(server: Server): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`));
  });
}

/** The code that the issuer sends back through the browser. Requests with another state are ignored. */
function codeFrom(server: Server, state: string, issuer: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(refused('nobody signed in within 5 minutes; try again')), SIGN_IN_TIMEOUT_MS);
    server.on('request', (request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
      const isOurs = pathname === '/callback' && searchParams.get('state') === state;
      const isIssuer = (searchParams.get('iss') ?? issuer) === issuer;
      response.writeHead(isOurs ? 200 : 404, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
      response.end(isOurs ? 'Return to your terminal. You can close this page.\n' : 'not found\n');
      if (!isOurs) return;
      clearTimeout(late);
      const code = searchParams.get('code');
      const reason = searchParams.get('error_description') ?? searchParams.get('error') ?? 'it returned no code';
      if (code !== null && isIssuer) resolve(code);
      else reject(refused(`the issuer did not sign you in: ${isIssuer ? reason : 'another issuer responded'}`));
    });
  });
}

/** Claims of a token that came straight from the issuer. The API verifies the token; this reads expiry and nonce. */
function claimsOf(token: string): Record<string, unknown> {
  try {
    return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  } catch {
    return {};
  }
}

const random = (): string => randomBytes(32).toString('base64url');
