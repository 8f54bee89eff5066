import * as z from 'zod';

/** The URL of the stage's own API, in issuers of cdk.json. The local host has its OIDC issuer there. */
export const OWN_URL = '{url}';

const isPlainUrl = (text: string): boolean => {
  const { protocol, search, hash, username, password } = URL.canParse(text) ? new URL(text) : new URL('none:');
  return protocol === 'https:' && `${search}${hash}${username}${password}` === '';
};

/** `https://login.example.com/tenant`, spelled exactly as the claim `iss` of its tokens. */
const IssuerUrl = z
  .string()
  .max(200)
  .refine(isPlainUrl, 'the https URL of the issuer, as in the claim `iss` of its tokens, without query or user name');

/**
 * An OIDC issuer whose tokens sign people in. Issuer and audience together determine the tenant, so one token is never
 * valid for two tenants: tenants that share an issuer have different audiences.
 */
export const OidcIssuer = z.strictObject({
  /** What people choose at sign-in: `countersign login --issuer NAME`. */
  name: z.string().regex(/^[a-z][a-z0-9-]{0,39}$/, 'use lower-case letters, digits and dashes'),
  issuer: IssuerUrl,
  /** The claim `aud` of its tokens. */
  audience: z.string().min(1).max(200),
  /** The public client that people sign in with. Default: the audience, for issuers whose ID tokens are sent to the API. */
  clientId: z.string().min(1).max(200).optional(),
});
export type OidcIssuer = z.infer<typeof OidcIssuer>;

/** An issuer in cdk.json. */
export const StageIssuer = OidcIssuer.extend({
  issuer: z.union([IssuerUrl, z.string().max(200).startsWith(`${OWN_URL}/`)]),
  tenant: z.string(),
  /** If it has another origin than the issuer, as Cognito's: the console may send requests only to origins named here. */
  tokenEndpoint: z.string().max(300).refine(isPlainUrl, 'the https URL `token_endpoint` of the issuer').optional(),
});
export type StageIssuer = z.infer<typeof StageIssuer>;

/** Tokens name their issuer and audience, so each pair belongs to one entry only. */
export const issuerKey = ({ issuer, audience }: Pick<OidcIssuer, 'issuer' | 'audience'>): string =>
  `${issuer}\n${audience}`;

export const ISSUERS_MAX = 20;

/** The first entry that repeats the name, or issuer and audience, of an earlier one. */
export function repeatedIssuer<Issuer extends OidcIssuer>(issuers: readonly Issuer[]): Issuer | undefined {
  return issuers.find((each, index) =>
    issuers.slice(0, index).some((earlier) => earlier.name === each.name || issuerKey(earlier) === issuerKey(each)),
  );
}
