import { ApiClient, type ResponseFrom } from '../../client/api-client.ts';
import { scopesFor } from '../../client/oidc-scopes.ts';

/** Authorization code with PKCE, in the browser. Tokens stay in the memory of this page. */

export type Issuer = ResponseFrom<'GET /api/v1/sign-in'>['issuers'][number];

export interface Tokens {
  issuer: Issuer;
  tokenEndpoint: string;
  /** What the API accepts. */
  token: string;
  refreshToken?: string;
}

/** What a redirect must remember. It contains no token. */
interface PendingSignIn {
  state: string;
  nonce: string;
  verifier: string;
  issuer: Issuer;
  tokenEndpoint: string;
  returnTo: string;
}

interface Discovery {
  issuer?: unknown;
  authorization_endpoint?: unknown;
  token_endpoint?: unknown;
  scopes_supported?: unknown;
}

/** Why somebody could not be signed in, for people. */
export class SignInRefused extends Error {
  /** As OAuth names it: `login_required`. */
  readonly code: string;
  constructor(message: string, code = '') {
    super(message);
    this.code = code;
  }
}

export const CALLBACK_PATH = '/sign-in';
const PENDING = 'countersign.sign-in';
const OTHER_SIGN_IN = 'The response of the issuer belongs to another sign-in. Sign in again.';
const RANDOM_BYTES = 32;

export async function listIssuers(): Promise<Issuer[]> {
  const { issuers } = await new ApiClient('', {}).call('GET /api/v1/sign-in');
  return issuers;
}

/**
 * Leaves this page for the issuer. `none` asks nothing: the issuer returns at once, with an error if nobody is signed in.
 * `select_account` lets people choose another account.
 */
export async function leaveForIssuer(
  issuer: Issuer,
  { returnTo, prompt }: { returnTo: string; prompt?: 'none' | 'select_account' },
): Promise<void> {
  const { authorization_endpoint, token_endpoint, scopes_supported } = await discover(issuer.issuer);
  const pending: PendingSignIn = {
    ...{ state: random(), nonce: random(), verifier: random() },
    ...{ issuer, tokenEndpoint: token_endpoint, returnTo },
  };
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  const { clientId, audience } = issuer;
  const address = new URL(authorization_endpoint);
  const query = {
    client_id: clientId,
    redirect_uri: `${location.origin}${CALLBACK_PATH}`,
    response_type: 'code',
    scope: scopesFor(scopes_supported),
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: await challengeOf(pending.verifier),
    code_challenge_method: 'S256',
    ...(audience !== clientId && { audience }),
    ...(prompt !== undefined && { prompt }),
  };
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
  location.assign(address);
}

/** The tokens for the code in the address, and the path to return to. */
export async function finishSignIn(address: URL): Promise<{ tokens: Tokens; returnTo: string }> {
  const stored = sessionStorage.getItem(PENDING);
  sessionStorage.removeItem(PENDING);
  const pending: PendingSignIn | undefined = stored === null ? undefined : JSON.parse(stored);
  const { searchParams } = address;
  if (!pending || searchParams.get('state') !== pending.state) {
    throw new SignInRefused('This sign-in was started in another tab or before. Sign in again.', 'other_sign_in');
  }
  // RFC 9207: the response of another issuer must not be taken for one of this issuer.
  if ((searchParams.get('iss') ?? pending.issuer.issuer) !== pending.issuer.issuer)
    throw new SignInRefused(OTHER_SIGN_IN);
  const error = searchParams.get('error');
  if (error !== null) throw new SignInRefused(searchParams.get('error_description') ?? error, error);
  const received = await requestTokens(pending.tokenEndpoint, {
    grant_type: 'authorization_code',
    client_id: pending.issuer.clientId,
    redirect_uri: `${location.origin}${CALLBACK_PATH}`,
    code: searchParams.get('code') ?? '',
    code_verifier: pending.verifier,
  });
  if (received.id_token !== undefined && claimsOf(received.id_token).nonce !== pending.nonce) {
    throw new SignInRefused(OTHER_SIGN_IN);
  }
  return { tokens: tokensFrom(received, pending), returnTo: pending.returnTo };
}

/** New tokens; undefined if the person must sign in again. */
export async function renewTokens(before: Tokens): Promise<Tokens | undefined> {
  const { refreshToken, issuer, tokenEndpoint } = before;
  if (refreshToken === undefined) return undefined;
  const form = { grant_type: 'refresh_token', client_id: issuer.clientId, refresh_token: refreshToken };
  try {
    return tokensFrom(await requestTokens(tokenEndpoint, form), before);
  } catch (error) {
    if (error instanceof SignInRefused && error.code !== 'no_response') return undefined;
    throw error;
  }
}

function tokensFrom(
  received: Received,
  { issuer, tokenEndpoint, refreshToken }: Pick<Tokens, 'issuer' | 'tokenEndpoint' | 'refreshToken'>,
): Tokens {
  // An audience of its own is in access tokens; ID tokens are for the client.
  const token = issuer.audience === issuer.clientId ? received.id_token : received.access_token;
  if (token === undefined) throw new SignInRefused('The issuer returned no token. Ask its administrator to allow it.');
  const next = received.refresh_token ?? refreshToken;
  return { issuer, tokenEndpoint, token, ...(next !== undefined && { refreshToken: next }) };
}

async function discover(
  issuer: string,
): Promise<{ authorization_endpoint: string; token_endpoint: string; scopes_supported: unknown }> {
  const response = await askIssuer(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  const found: Discovery = response.ok ? await response.json() : {};
  const { authorization_endpoint, token_endpoint, scopes_supported } = found;
  if (found.issuer !== issuer || typeof authorization_endpoint !== 'string' || typeof token_endpoint !== 'string') {
    throw new SignInRefused(`${issuer} has no valid discovery document. Check the setting issuers of the stage.`);
  }
  return { authorization_endpoint, token_endpoint, scopes_supported };
}

/** Browsers do not say why a request was not sent or its response may not be read. */
async function askIssuer(url: string, form?: Record<string, string>): Promise<Response> {
  try {
    return await fetch(url, form && { method: 'POST', body: new URLSearchParams(form) });
  } catch {
    const { origin } = new URL(url);
    throw new SignInRefused(
      `This browser cannot reach ${origin}. It must respond, allow requests of ${location.origin} (CORS), and be in the setting issuers of the stage (as tokenEndpoint, if it is not the issuer itself).`,
      'no_response',
    );
  }
}

interface Received {
  access_token?: string;
  id_token?: string;
  refresh_token?: string;
}

async function requestTokens(url: string, form: Record<string, string>): Promise<Received> {
  const response = await askIssuer(url, form);
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  throw new SignInRefused(body.error_description ?? `The issuer responded with ${response.status}.`, body.error);
}

function claimsOf(token: string): Record<string, unknown> {
  const part = token.split('.')[1] ?? '';
  const bytes = Uint8Array.from(atob(part.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes));
}

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

const random = (): string => base64url(crypto.getRandomValues(new Uint8Array(RANDOM_BYTES)));

async function challengeOf(verifier: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));
}
