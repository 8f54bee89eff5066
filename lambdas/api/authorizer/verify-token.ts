import { JwtExpiredError, JwtNotBeforeError } from 'aws-jwt-verify/error';
import { decomposeUnverifiedJwt } from 'aws-jwt-verify/jwt';
import { verifyJwtSync } from 'aws-jwt-verify/jwt-verifier';
import type { StageIssuer } from '../../entry/oidc-issuer.ts';
import { TOOL_SCOPE } from './caller.ts';
import type { IssuerKeys, PublicKey } from './issuer-keys.ts';
import { Unauthenticated } from './unauthenticated.ts';

/** API Gateway accepts at most 10 KB of headers. */
const TOKEN_MAX_CHARACTERS = 8_192;
const AUDIENCES_MAX = 10;
const SUBJECT_MAX_CHARACTERS = 255;
/** Clocks of issuers differ by a few seconds. */
const CLOCK_SKEW_SECONDS = 30;
const RSA_MIN_BITS = 2_048;

/** Only signatures with public keys. The kind of the key must fit the algorithm that the token names. */
const ALGORITHMS: Record<string, { kty: PublicKey['kty']; crv?: string }> = {
  RS256: { kty: 'RSA' },
  RS384: { kty: 'RSA' },
  RS512: { kty: 'RSA' },
  ES256: { kty: 'EC', crv: 'P-256' },
  ES384: { kty: 'EC', crv: 'P-384' },
  ES512: { kty: 'EC', crv: 'P-521' },
  EdDSA: { kty: 'OKP', crv: 'Ed25519' },
};

export interface TokenIssuers {
  /** The issuer with this audience that the stage or a tenant names. */
  find(issuer: string, audience: string): Promise<StageIssuer | undefined>;
  keys: Pick<IssuerKeys, 'find'>;
}

/** What a verified token says. */
export interface VerifiedToken {
  issuer: StageIssuer;
  subject: string;
  email?: string;
  isEmailVerified: boolean;
  expiresAt: string;
  /** Of the scopes `tool:NAME`; absent if it has none. */
  tools?: string[];
}

/** Verifies a token of an issuer that the stage or a tenant names. Its issuer and audience determine the tenant. */
export async function verifyToken(issuers: TokenIssuers, token: string): Promise<VerifiedToken> {
  const { header, payload } = unverified(token);
  const { alg = '', kid } = header;
  const wanted = Object.hasOwn(ALGORITHMS, alg) ? ALGORITHMS[alg] : undefined;
  if (!wanted) {
    const allowed = Object.keys(ALGORITHMS).join(', ');
    throw new Unauthenticated(`the token is signed with ${shown(alg)}; allowed are ${allowed}`);
  }
  if (kid === undefined || 'crit' in header) {
    throw new Unauthenticated('the token has no key id, or requires an extension; use a token of your OIDC issuer');
  }
  const issuer = await issuerOf(issuers, payload.iss, payload.aud);
  const key = await issuers.keys.find(issuer.issuer, kid);
  if (!fits(key, alg, wanted)) throw new Unauthenticated(`the key of the token cannot be used with ${alg}`);
  assertSigned(token, key, issuer);
  const { sub = '', exp, email, email_verified: verified } = payload;
  if (exp === undefined) throw new Unauthenticated('the token never expires; use one with an expiry (claim exp)');
  if (sub === '' || sub.length > SUBJECT_MAX_CHARACTERS) {
    throw new Unauthenticated('the token has no valid subject (claim sub)');
  }
  return {
    issuer,
    subject: sub,
    ...(typeof email === 'string' && { email }),
    isEmailVerified: verified === true || verified === 'true',
    expiresAt: new Date(exp * 1000).toISOString(),
    ...toolsOf(payload),
  };
}

/** Issuers name the claim `scope` (a text) or `scp` (a text or a list). */
function toolsOf({ scope, scp }: { scope?: unknown; scp?: unknown }): { tools?: string[] } {
  const scopes = [scope, scp].flat().flatMap((each) => (typeof each === 'string' ? each.split(' ') : []));
  const tools = scopes.filter((each) => each.startsWith(TOOL_SCOPE)).map((each) => each.slice(TOOL_SCOPE.length));
  return tools.length === 0 ? {} : { tools };
}

function unverified(token: string) {
  if (token.length > TOKEN_MAX_CHARACTERS) {
    throw new Unauthenticated(`the token has ${token.length} characters; at most ${TOKEN_MAX_CHARACTERS} are accepted`);
  }
  try {
    return decomposeUnverifiedJwt(token);
  } catch {
    throw new Unauthenticated('the token is malformed; send a JWT of your OIDC issuer');
  }
}

/** The only configured issuer that the token names. A token with the audiences of two tenants is refused. */
async function issuerOf(
  issuers: TokenIssuers,
  issuer: string | undefined,
  audience: string | string[] | undefined,
): Promise<StageIssuer> {
  const audiences = [...new Set([audience ?? []].flat())];
  if (issuer === undefined || audiences.length === 0 || audiences.length > AUDIENCES_MAX) {
    throw new Unauthenticated('the token has no issuer (claim iss), or no audience (claim aud) or too many');
  }
  const found: StageIssuer[] = [];
  for (const each of audiences) found.push(...[(await issuers.find(issuer, each)) ?? []].flat());
  const [only, ...others] = found;
  if (!only) {
    throw new Unauthenticated(
      `this stage accepts no tokens of the issuer ${shown(issuer)} for ${shown(audiences.join(', '))}; see the setting issuers`,
    );
  }
  if (others.length > 0) throw new Unauthenticated('the token is for several audiences of this stage; request one');
  return only;
}

const fits = (key: PublicKey, alg: string, { kty, crv }: { kty: string; crv?: string }): boolean =>
  key.kty === kty &&
  (crv === undefined || key.crv === crv) &&
  (key.alg === undefined || key.alg === alg) &&
  (kty !== 'RSA' || Buffer.from(key.n ?? '', 'base64url').length * 8 >= RSA_MIN_BITS);

function assertSigned(token: string, key: PublicKey, { issuer, audience }: StageIssuer): void {
  try {
    verifyJwtSync(token, key, { issuer, audience, graceSeconds: CLOCK_SKEW_SECONDS });
  } catch (error) {
    if (error instanceof JwtExpiredError) throw new Unauthenticated('the token has expired; sign in again');
    if (error instanceof JwtNotBeforeError) throw new Unauthenticated('the token is not valid yet; check the clocks');
    throw new Unauthenticated('the token is not valid: its signature or a claim is wrong; sign in again');
  }
}

/** Part of a token in a message. */
const SHOWN_MAX_CHARACTERS = 200;
const shown = (text: string): string => `"${text.slice(0, SHOWN_MAX_CHARACTERS)}"`;
