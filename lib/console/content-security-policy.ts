import { OWN_URL, type StageIssuer } from '../../lambdas/entry/oidc-issuer.ts';

/** The longest value of a custom header in CloudFront, which also has a limit for this one. */
export const POLICY_MAX_CHARACTERS = 1_783;

/** Where the console reads discovery documents and gets tokens. */
export function issuerOrigins(issuers: readonly Pick<StageIssuer, 'issuer' | 'tokenEndpoint'>[]): string[] {
  const urls = issuers.flatMap(({ issuer, tokenEndpoint = issuer }) => [issuer, tokenEndpoint]);
  return urls.filter((url) => !url.startsWith(OWN_URL)).map((url) => new URL(url).origin);
}

/**
 * What pages of the console may load: their own files, and nothing inline. Components set styles through the DOM, which
 * this policy does not concern. Trusted types: no script may turn text into HTML or code.
 */
export function contentSecurityPolicy(connectsTo: readonly string[]): string {
  const origins = [...new Set(connectsTo)].map((origin) => ` ${origin}`).join('');
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    // Icons of components are images in their style sheets.
    "img-src 'self' data:",
    "font-src 'self'",
    `connect-src 'self'${origins}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}
