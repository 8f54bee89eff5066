import { sign } from 'node:crypto';
import * as z from 'zod';
import { CountersignError } from '../../run/errors.ts';
import { type Access, credentialOf } from '../connector.ts';
import { type Exchange, exchange, urlAt } from '../exchange.ts';
import { FORBIDDEN, type Head, rateLimited, TargetRefused } from '../target-errors.ts';
import { type Granted, tokenCacheOf } from '../token-cache.ts';

const API_VERSION = '2022-11-28';
const SYSTEM = 'GitHub';
const PAGE_SIZE = 100;
/** All pages are read within the time of one step. */
const PAGES_MAX = 10;
/** GitHub accepts a JWT of at most ten minutes that was not issued in the future; the skew allows for different clocks. */
const CLAIM_SECONDS = 540;
const CLOCK_SKEW_SECONDS = 60;

const AppCredential = z.lazy(() =>
  z.object({
    appId: z.union([z.string(), z.int()]),
    installationId: z.union([z.string(), z.int()]),
    privateKeyPem: z.string(),
  }),
);
const Credential = z.lazy(() => z.union([z.object({ token: z.string() }), AppCredential]));
const CREDENTIAL_NEEDS = 'the github credential needs "token", or "appId", "installationId" and "privateKeyPem"';
const InstallationToken = z.lazy(() => z.object({ token: z.string(), expires_at: z.iso.datetime({ offset: true }) }));

const RepositoryPart = z.lazy(() => z.string().regex(/^(?!\.{1,2}$)[A-Za-z0-9_.-]+$/, 'an owner or repository name'));

/** The first input fields of every GitHub operation. */
export const Repository = {
  owner: RepositoryPart.describe('the owner of the repository'),
  repo: RepositoryPart.describe('the name of the repository, without its owner'),
};

/** The credential in its form; throws CONNECTION_MISSING if it has another. */
export function githubCredential(access: Pick<Access, 'credential'>): z.infer<typeof Credential> {
  const credential = credentialOf(access, Credential, CREDENTIAL_NEEDS);
  if ('privateKeyPem' in credential) appJwt(String(credential.appId), credential.privateKeyPem, 0);
  return credential;
}

type Call<Body> = Pick<Exchange<Body>, 'method' | 'body' | 'responseSchema'> & { path: string };

/** Makes one call with a personal access token, or as an installation of a GitHub App. */
export async function github<Body>(access: Access, { path, ...call }: Call<Body>) {
  const credential = credentialOf(access, Credential, CREDENTIAL_NEEDS);
  const as = (token: string) =>
    exchange({
      ...call,
      system: SYSTEM,
      url: urlAt(access.baseUrl, path),
      headers: { authorization: `Bearer ${token}`, 'x-github-api-version': API_VERSION },
      errorFor: secondaryLimit,
    });
  if ('token' in credential) return as(credential.token);
  return tokenCacheOf(access).call((nowMs) => grantToken(access, credential, nowMs), as);
}

/** Follows the `next` links: a page may have fewer items than requested, so its length does not show whether it is the last. */
export async function* githubPages<Page>(
  access: Access,
  path: string,
  responseSchema: z.ZodType<Page>,
): AsyncGenerator<Page> {
  let next: string | undefined = `${path}${path.includes('?') ? '&' : '?'}per_page=${PAGE_SIZE}`;
  for (let pages = 0; next !== undefined; pages += 1) {
    if (pages === PAGES_MAX) throw new TargetRefused(TOO_MANY_PAGES, { retryable: false });
    const page: { body: Page } & Head = await github(access, { method: 'GET', path: next, responseSchema });
    yield page.body;
    next = nextPath(access, page.header('link') ?? '');
  }
}

const TOO_MANY_PAGES = `GitHub has more than ${PAGES_MAX * PAGE_SIZE} entries, and only these were read; check on GitHub`;

/** A link to another address is not followed, because the credential is for the connection's address only. */
function nextPath({ baseUrl }: Access, links: string): string | undefined {
  const next = /<([^>]*)>\s*;[^,]*\brel="?next"?/.exec(links)?.[1];
  if (next === undefined) return undefined;
  const base = new URL(urlAt(baseUrl, '/')).href;
  const url = new URL(next, base).href;
  if (url.startsWith(base)) return url.slice(base.length - 1);
  throw new TargetRefused('the next page is at another address: correct the address of the GitHub connection', {
    retryable: false,
  });
}

/** A secondary rate limit without Retry-After: GitHub documents a wait of at least a minute. */
function secondaryLimit(head: Head, body: string): TargetRefused | undefined {
  const saysHowLong = head.header('retry-after') || head.header('x-ratelimit-remaining') === '0';
  const isLimit = head.status === FORBIDDEN && /secondary.rate.limit|abuse detection/i.test(body);
  return isLimit && !saysHowLong ? rateLimited(SYSTEM, head.status) : undefined;
}

async function grantToken(
  { baseUrl }: Access,
  { appId, installationId, privateKeyPem }: z.infer<typeof AppCredential>,
  nowMs: number,
): Promise<Granted> {
  const { body } = await exchange({
    system: SYSTEM,
    method: 'POST',
    url: urlAt(baseUrl, `/app/installations/${encodeURIComponent(installationId)}/access_tokens`),
    headers: {
      authorization: `Bearer ${appJwt(String(appId), privateKeyPem, nowMs)}`,
      'x-github-api-version': API_VERSION,
    },
    readOnly: true,
    errorFor: secondaryLimit,
    responseSchema: InstallationToken,
  });
  return { token: body.token, expiresAtMs: Date.parse(body.expires_at) };
}

/** The JSON Web Token (RS256) with which the app authenticates. */
function appJwt(appId: string, privateKeyPem: string, nowMs: number): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const issuedAt = Math.floor(nowMs / 1000) - CLOCK_SKEW_SECONDS;
  const claim = { iat: issuedAt, exp: issuedAt + CLAIM_SECONDS, iss: appId };
  const signed = `${part({ alg: 'RS256', typ: 'JWT' })}.${part(claim)}`;
  try {
    return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), privateKeyPem).toString('base64url')}`;
  } catch {
    throw new CountersignError(
      'CONNECTION_MISSING',
      'privateKeyPem of the github credential is not an RSA private key',
    );
  }
}
