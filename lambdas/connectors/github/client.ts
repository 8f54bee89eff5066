import { sign } from 'node:crypto';
import * as z from 'zod';
import { CountersignError } from '../../run/errors.ts';
import type { Access } from '../connector.ts';
import { type Exchange, exchange, FORBIDDEN, type Head, slowedDown, TargetRefused, urlAt } from '../exchange.ts';
import { type Granted, tokenCacheOf } from '../token-cache.ts';

const API_VERSION = '2022-11-28';
const SYSTEM = 'GitHub';
const PAGE_SIZE = 100;
/** Each page takes part of a step's time. */
const PAGES_MAX = 10;
/** GitHub takes a signed claim of at most ten minutes, and none from the future: clocks differ. */
const CLAIM_SECONDS = 540;
const CLOCK_SKEW_SECONDS = 60;

const AppCredential = z.object({
  appId: z.union([z.string(), z.int()]),
  installationId: z.union([z.string(), z.int()]),
  privateKeyPem: z.string(),
});
const Credential = z.union([z.object({ token: z.string() }), AppCredential]);
const InstallationToken = z.object({ token: z.string(), expires_at: z.iso.datetime({ offset: true }) });

const RepositoryPart = z.string().regex(/^(?!\.{1,2}$)[A-Za-z0-9_.-]+$/, 'an owner or repository name');

/** Where every operation on GitHub begins. */
export const Repository = { owner: RepositoryPart, repo: RepositoryPart };

type Call<Answer> = Pick<Exchange<Answer>, 'method' | 'body' | 'answer'> & { path: string };

/** One call as whoever the credential is: the owner of a token, or an installation of an app. */
export async function github<Answer>(access: Access, { path, ...call }: Call<Answer>) {
  const credential = credentialOf(access);
  const as = (token: string) =>
    exchange({
      ...call,
      system: SYSTEM,
      url: urlAt(access.baseUrl, path),
      headers: { authorization: `Bearer ${token}`, 'x-github-api-version': API_VERSION },
      refusal: secondaryLimit,
    });
  if ('token' in credential) return as(credential.token);
  return tokenCacheOf(access).call((nowMs) => grantToken(access, credential, nowMs), as);
}

/** Follows GitHub's links from page to page: it alone knows where the next one is, and may give less than it was asked for. */
export async function* githubPages<Page>(access: Access, path: string, answer: z.ZodType<Page>): AsyncGenerator<Page> {
  let next: string | undefined = `${path}${path.includes('?') ? '&' : '?'}per_page=${PAGE_SIZE}`;
  for (let pages = 0; next !== undefined; pages += 1) {
    if (pages === PAGES_MAX) throw new TargetRefused(TOO_MANY_PAGES, { retryable: false });
    const page: { answer: Page } & Head = await github(access, { method: 'GET', path: next, answer });
    yield page.answer;
    next = nextPath(access, page.header('link') ?? '');
  }
}

const TOO_MANY_PAGES = `GitHub lists more than ${PAGES_MAX * PAGE_SIZE}; not all of them were read. Look there`;

/** The credential is for the connection's address: a link that leads elsewhere is not followed. */
function nextPath({ baseUrl }: Access, links: string): string | undefined {
  const next = /<([^>]*)>\s*;[^,]*\brel="?next"?/.exec(links)?.[1];
  if (next === undefined) return undefined;
  const base = new URL(urlAt(baseUrl, '/')).href;
  const url = new URL(next, base).href;
  if (url.startsWith(base)) return url.slice(base.length - 1);
  throw new TargetRefused('GitHub continues its list at another address: correct the address of the connection', {
    retryable: false,
  });
}

/** A secondary rate limit that does not say for how long: GitHub asks to wait at least a minute. */
function secondaryLimit(head: Head, body: string): TargetRefused | undefined {
  const saysHowLong = head.header('retry-after') || head.header('x-ratelimit-remaining') === '0';
  const isLimit = head.status === FORBIDDEN && /secondary.rate.limit|abuse detection/i.test(body);
  return isLimit && !saysHowLong ? slowedDown(SYSTEM, head.status) : undefined;
}

function credentialOf({ credential }: Access): z.infer<typeof Credential> {
  const parsed = Credential.safeParse(credential);
  if (parsed.success) return parsed.data;
  const needs = 'the github credential needs "token", or "appId", "installationId" and "privateKeyPem"';
  throw new CountersignError('CONNECTION_MISSING', needs);
}

async function grantToken(
  { baseUrl }: Access,
  { appId, installationId, privateKeyPem }: z.infer<typeof AppCredential>,
  nowMs: number,
): Promise<Granted> {
  const { answer } = await exchange({
    system: SYSTEM,
    method: 'POST',
    url: urlAt(baseUrl, `/app/installations/${encodeURIComponent(installationId)}/access_tokens`),
    headers: {
      authorization: `Bearer ${appClaim(String(appId), privateKeyPem, nowMs)}`,
      'x-github-api-version': API_VERSION,
    },
    onlyAsks: true,
    refusal: secondaryLimit,
    answer: InstallationToken,
  });
  return { token: answer.token, expiresAtMs: Date.parse(answer.expires_at) };
}

/** A JSON Web Token (RS256) in which the app says who it is. */
function appClaim(appId: string, privateKeyPem: string, nowMs: number): string {
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
