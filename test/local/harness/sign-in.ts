import { createHash, randomBytes } from 'node:crypto';

const REDIRECT_URI = 'http://127.0.0.1:9/callback';

interface Tokens {
  id_token: string;
  refresh_token: string;
}

/** Signs a seeded person in with the local OIDC issuer, as a browser and a client do together. */
export async function signInLocally(
  hostUrl: string,
  subject: string,
  clientId = 'countersign-acme',
  scope = 'openid',
): Promise<Tokens> {
  const verifier = randomBytes(32).toString('base64url');
  const request = {
    client_id: clientId,
    redirect_uri: REDIRECT_URI,
    response_type: 'code',
    state: 'state',
    scope,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  };
  const chosen = await post(`${hostUrl}/_oidc/authorize`, { ...request, subject });
  const code = new URL(chosen.headers.get('location') ?? '').searchParams.get('code') ?? '';
  const form = { grant_type: 'authorization_code', client_id: clientId, redirect_uri: REDIRECT_URI };
  const answer = await post(`${hostUrl}/_oidc/token`, { ...form, code, code_verifier: verifier });
  return (await answer.json()) as Tokens;
}

export const post = (url: string, form: Record<string, string>): Promise<Response> =>
  fetch(url, { method: 'POST', body: new URLSearchParams(form), redirect: 'manual' });
