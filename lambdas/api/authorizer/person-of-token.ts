import type { Person } from '../../people/people.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { Unauthenticated } from './unauthenticated.ts';
import type { VerifiedToken } from './verify-token.ts';

/**
 * The person of a token: the one with its issuer and subject as identity, or else the one with its email address, if the
 * issuer has verified it. Nothing is cached: a deleted person, or one who lost the identity, is refused at once.
 */
export async function personOfToken(
  definitions: Pick<Definitions, 'personWithIdentity'>,
  token: VerifiedToken,
): Promise<Person> {
  const { issuer, subject, email, isEmailVerified } = token;
  const identities = [
    `oidc:${issuer.issuer}#${subject}`,
    ...(email !== undefined && isEmailVerified ? [`email:${email}`] : []),
  ] as const;
  const person = await definitions.personWithIdentity(issuer.tenant, identities);
  if (person) return person;
  const unverified =
    email !== undefined && !isEmailVerified
      ? '. The issuer has not verified your email address, so it does not count'
      : '';
  throw new Unauthenticated(
    `no person of this tenant has the identity ${identities.join(' or ')}; ask an owner or admin to add it to you${unverified}`,
  );
}
