import { sign } from 'node:crypto';
import * as z from 'zod';
import { CountersignError } from '../run/errors.ts';
import type { Access } from './connector.ts';
import { type Exchange, exchange } from './http-exchange.ts';
import { type Granted, keptTokenOf } from './kept-token.ts';

const API_VERSION = '2022-11-28';
const PAGE_SIZE = 100;
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
      system: 'GitHub',
      url: `${access.baseUrl}${path}`,
      headers: { authorization: `Bearer ${token}`, 'x-github-api-version': API_VERSION },
    });
  if ('token' in credential) return as(credential.token);
  return keptTokenOf(access).call((nowMs) => grantToken(access, credential, nowMs), as);
}

/** Reads on until a page is not full. */
export async function* githubPages<Page>(
  access: Access,
  path: string,
  answer: z.ZodType<Page>,
  sizeOf: (page: Page) => number,
): AsyncGenerator<Page> {
  for (let number = 1; ; number += 1) {
    const query = `${path.includes('?') ? '&' : '?'}per_page=${PAGE_SIZE}&page=${number}`;
    const { answer: page } = await github(access, { method: 'GET', path: `${path}${query}`, answer });
    yield page;
    if (sizeOf(page) < PAGE_SIZE) return;
  }
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
    system: 'GitHub',
    method: 'POST',
    url: `${baseUrl}/app/installations/${encodeURIComponent(installationId)}/access_tokens`,
    headers: {
      authorization: `Bearer ${appClaim(String(appId), privateKeyPem, nowMs)}`,
      'x-github-api-version': API_VERSION,
    },
    onlyAsks: true,
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
