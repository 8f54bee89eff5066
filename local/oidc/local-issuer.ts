import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { jwtVerify, SignJWT } from 'jose';
import { TOOL_SCOPE } from '../../lambdas/api/authorizer/caller.ts';
import { type IssuerKey, issuerKey } from './issuer-key.ts';
import { signInPage } from './sign-in-page.ts';

export const ISSUER_PATH = '/_oidc';

const BODY_MAX_BYTES = 16 * 1024;
const CODE_VALID_MS = 60_000;
const TOKEN_VALID_SECONDS = 15 * 60;
const REFRESH_VALID_SECONDS = 30 * 24 * 60 * 60;
/** Refresh tokens have an audience that no API accepts. */
const REFRESH_AUDIENCE = 'refresh';

/** A person whom the issuer can sign in. */
export interface SignInPerson {
  subject: string;
  name: string;
  email: string;
  role: string;
}

interface IssuerOptions {
  dataFolder: string;
  now(): number;
  hostUrl(): string;
  /** The people of each client, by client id. */
  clients: Readonly<Record<string, readonly SignInPerson[]>>;
}

interface Code {
  clientId: string;
  redirectUri: string;
  challenge: string;
  nonce?: string;
  /** The tools that the client asked for: the token is for nothing else then. */
  scope?: string;
  person: SignInPerson;
  expiresAt: number;
}

/** The scopes of the MCP server among those of a request; undefined if there is none. */
function toolScopes(requested: string): string | undefined {
  const scopes = requested.split(' ').filter((each) => each.startsWith(TOOL_SCOPE));
  return scopes.length === 0 ? undefined : scopes.join(' ');
}

/** An error for the client of the issuer, as OAuth names it. */
class OAuthError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * The OIDC issuer of the local host: authorization code with PKCE, for clients on this machine. Its page asks for no
 * password: the developer signs in as any of the seeded people.
 */
export class LocalIssuer {
  readonly #options: IssuerOptions;
  readonly #key: Promise<IssuerKey>;
  readonly #codes = new Map<string, Code>();

  constructor(options: IssuerOptions) {
    this.#options = options;
    this.#key = issuerKey(options.dataFolder);
  }

  get #url(): string {
    return `${this.#options.hostUrl()}${ISSUER_PATH}`;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', this.#url);
    const route = `${request.method} ${pathname.slice(ISSUER_PATH.length)}`;
    try {
      switch (route) {
        case 'GET /.well-known/openid-configuration':
          return sendJson(response, 200, this.#discovery());
        case 'GET /jwks':
          return sendJson(response, 200, { keys: [(await this.#key).publicJwk] });
        case 'GET /authorize':
          return this.#authorize(searchParams, request, response);
        case 'POST /authorize':
          return this.#signIn(await readForm(request), response);
        case 'POST /token':
          return sendJson(response, 200, await this.#tokens(await readForm(request)));
        default:
          return sendJson(response, 404, { error: 'not_found', error_description: `the issuer has no ${route}` });
      }
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      return sendJson(response, 400, { error: error.code, error_description: error.message });
    }
  }

  #discovery() {
    return {
      issuer: this.#url,
      authorization_endpoint: `${this.#url}/authorize`,
      token_endpoint: `${this.#url}/token`,
      jwks_uri: `${this.#url}/jwks`,
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      code_challenge_methods_supported: ['S256'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
      token_endpoint_auth_methods_supported: ['none'],
      scopes_supported: ['openid', 'email', 'profile', 'offline_access'],
    };
  }

  /** `prompt=none` asks nothing: it returns with the person of the last sign-in of this browser, or with an error. */
  #authorize(query: URLSearchParams, request: IncomingMessage, response: ServerResponse): void {
    const { people, clientId } = this.#checked(query);
    const last = lastSubject(request, clientId);
    const isKnown = people.some(({ subject }) => subject === last);
    if (query.get('prompt') !== 'none') {
      signInPage(response, { fields: Object.fromEntries(query), people, action: `${ISSUER_PATH}/authorize` });
    } else if (isKnown) {
      query.set('subject', String(last));
      this.#signIn(query, response);
    } else {
      this.#returnTo(response, query, { error: 'login_required', error_description: 'nobody is signed in here' });
    }
  }

  #signIn(form: URLSearchParams, response: ServerResponse): void {
    const { people, clientId, redirectUri, challenge } = this.#checked(form);
    const subject = form.get('subject');
    const person = people.find((each) => each.subject === subject);
    if (!person) throw new OAuthError('invalid_request', `the client ${clientId} has no person ${subject}`);
    const code = randomBytes(32).toString('base64url');
    const nonce = form.get('nonce') ?? undefined;
    const expiresAt = this.#options.now() + CODE_VALID_MS;
    const scope = toolScopes(form.get('scope') ?? '');
    this.#codes.set(code, { clientId, redirectUri, challenge, nonce, scope, person, expiresAt });
    response.setHeader('set-cookie', `${cookieOf(clientId)}=${subject}; Path=${ISSUER_PATH}; HttpOnly; SameSite=Lax`);
    this.#returnTo(response, form, { code });
  }

  #returnTo(response: ServerResponse, request: URLSearchParams, fields: Record<string, string>): void {
    const back = new URL(request.get('redirect_uri') ?? '');
    const all = { ...fields, state: request.get('state') ?? '', iss: this.#url };
    for (const [name, value] of Object.entries(all)) back.searchParams.set(name, value);
    response.writeHead(303, { location: back.href, 'cache-control': 'no-store' }).end();
  }

  /** Refuses a request before anything is shown or redirected. */
  #checked(request: URLSearchParams) {
    const get = (name: string) => request.get(name) ?? '';
    const clientId = get('client_id');
    const people = Object.hasOwn(this.#options.clients, clientId) ? this.#options.clients[clientId] : undefined;
    const known = Object.keys(this.#options.clients).join(', ');
    if (!people) throw new OAuthError('invalid_client', `there is no client ${clientId}; there are: ${known}`);
    const redirectUri = get('redirect_uri');
    if (!isOnThisMachine(redirectUri)) {
      throw new OAuthError('invalid_request', `redirect_uri ${redirectUri} is not an http URL of this machine`);
    }
    if (get('response_type') !== 'code') throw new OAuthError('unsupported_response_type', 'use response_type code');
    const challenge = get('code_challenge');
    if (get('code_challenge_method') !== 'S256' || !/^[\w-]{43}$/.test(challenge)) {
      throw new OAuthError('invalid_request', 'PKCE is required: code_challenge with code_challenge_method S256');
    }
    return { people, clientId, redirectUri, challenge };
  }

  async #tokens(form: URLSearchParams) {
    const grant = form.get('grant_type');
    if (grant === 'authorization_code') return this.#issue(this.#redeemed(form));
    if (grant === 'refresh_token') return this.#issue(await this.#refreshed(form));
    throw new OAuthError('unsupported_grant_type', 'use authorization_code or refresh_token');
  }

  /** A code is valid once, whether the request succeeds or not. */
  #redeemed(form: URLSearchParams): Pick<Code, 'clientId' | 'person' | 'nonce' | 'scope'> {
    const code = this.#codes.get(form.get('code') ?? '');
    this.#codes.delete(form.get('code') ?? '');
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    const isValid =
      code !== undefined &&
      code.expiresAt > this.#options.now() &&
      code.clientId === form.get('client_id') &&
      code.redirectUri === form.get('redirect_uri') &&
      code.challenge === challenge;
    if (isValid) return code;
    throw new OAuthError('invalid_grant', 'the code is unknown, used, expired, or of another client or verifier');
  }

  async #refreshed(form: URLSearchParams): Promise<Pick<Code, 'clientId' | 'person' | 'scope'>> {
    const clientId = form.get('client_id') ?? '';
    const { publicJwk } = await this.#key;
    const verified = await jwtVerify(form.get('refresh_token') ?? '', publicJwk, {
      issuer: this.#url,
      audience: REFRESH_AUDIENCE,
      currentDate: new Date(this.#options.now()),
    }).catch(() => undefined);
    const people = Object.hasOwn(this.#options.clients, clientId) ? this.#options.clients[clientId] : undefined;
    const person = people?.find(({ subject }) => subject === verified?.payload.sub);
    const scope = typeof verified?.payload.scope === 'string' ? verified.payload.scope : undefined;
    if (person && verified?.payload.client === clientId) return { clientId, person, scope };
    throw new OAuthError('invalid_grant', 'the refresh token is not valid; sign in again');
  }

  async #issue({ clientId, person, nonce, scope }: Pick<Code, 'clientId' | 'person' | 'nonce' | 'scope'>) {
    const { subject, name, email } = person;
    const scoped = scope === undefined ? {} : { scope };
    const claims = { name, email, email_verified: true, ...(nonce !== undefined && { nonce }), ...scoped };
    const token = await this.#sign(subject, clientId, TOKEN_VALID_SECONDS, claims);
    return {
      token_type: 'Bearer',
      access_token: token,
      id_token: token,
      expires_in: TOKEN_VALID_SECONDS,
      refresh_token: await this.#sign(subject, REFRESH_AUDIENCE, REFRESH_VALID_SECONDS, {
        client: clientId,
        ...scoped,
      }),
    };
  }

  async #sign(subject: string, audience: string, validSeconds: number, claims: Record<string, unknown>) {
    const { algorithm: alg, keyId: kid, privateKey } = await this.#key;
    const now = Math.floor(this.#options.now() / 1000);
    const payload = { ...claims, iss: this.#url, sub: subject, aud: audience, iat: now, exp: now + validSeconds };
    return new SignJWT(payload).setProtectedHeader({ alg, kid, typ: 'JWT' }).sign(privateKey);
  }
}

/** Who was signed in last, by client. The page asks no password, so the cookie needs no secret. */
const cookieOf = (clientId: string): string => `local_issuer_${clientId}`;

function lastSubject({ headers }: IncomingMessage, clientId: string): string | undefined {
  const cookies = (headers.cookie ?? '').split(/;\s*/).map((cookie) => cookie.split('='));
  return cookies.find(([name]) => name === cookieOf(clientId))?.[1];
}

function isOnThisMachine(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, hash } = new URL(url);
  return protocol === 'http:' && ['127.0.0.1', 'localhost', '[::1]'].includes(hostname) && hash === '';
}

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  let text = '';
  for await (const chunk of request) {
    text += chunk;
    if (text.length > BODY_MAX_BYTES) throw new OAuthError('invalid_request', 'the body is too large');
  }
  return new URLSearchParams(text);
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response
    .writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    .end(`${JSON.stringify(body)}\n`);
}
