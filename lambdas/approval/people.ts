import * as z from 'zod';
import { RISKS } from '../connectors/connector.ts';

export const ROLES = ['owner', 'admin', 'operator', 'approver', 'member', 'auditor'] as const;
export type Role = (typeof ROLES)[number];

/** `control` is of runs, `audit` tries policies on what was decided. */
export type Right = 'own' | 'define' | 'control' | 'decide' | 'audit';

/** What a role may do beside looking. */
const RIGHTS: Record<Role, readonly Right[]> = {
  owner: ['own', 'define', 'control', 'decide', 'audit'],
  admin: ['define', 'control', 'decide', 'audit'],
  operator: ['control'],
  approver: ['decide'],
  member: [],
  auditor: ['audit'],
};

/** GitHub and ServiceNow do not tell logins apart by case, so nor is anybody told apart by it here; Slack's ids are. */
const identityForm = (identity: string): string =>
  /^(github|servicenow):/.test(identity) ? identity.toLowerCase() : identity;

const Identity = z
  .string()
  .regex(/^[a-z]+:./, 'write an identity as system:name, like github:ana-dev')
  .transform(identityForm);

/** Someone a tenant knows, with all the names other systems have for them. */
export const Person = z.strictObject({
  /** `ana`: the one name that counts. */
  id: z.string().regex(/^[a-z][a-z0-9._-]{0,62}$/),
  name: z.string().max(100),
  role: z.enum(ROLES),
  /** The highest tier an approver may approve; owners and admins may approve any. */
  tier: z.enum(RISKS).default('medium'),
  groups: z.array(z.string()).default([]),
  /** `slack:T0ACME/U0ANA`, `github:ana-dev`, `servicenow:ana.m`: each belongs to one person only. */
  identities: z.array(Identity).default([]),
  /** While away, this person's place is taken by another, who keeps their own. */
  away: z.strictObject({ until: z.iso.datetime(), delegate: z.string() }).optional(),
});
export type Person = z.infer<typeof Person>;

/** The person behind an identity; an identity nobody has claimed stands for itself. */
export function personBehind(people: readonly Person[], identity: string): string {
  const wanted = identityForm(identity);
  return people.find(({ id, identities }) => id === wanted || identities.includes(wanted))?.id ?? wanted;
}

export const may = (role: Role, right: Right): boolean => RIGHTS[role].includes(right);

/**
 * What somebody may do with a key: what both the key and they themselves are for. A key that names nobody known is a
 * machine's, which has no role but its key's.
 */
export function effectiveRole(key: Role, person: Pick<Person, 'role'> | undefined): Role {
  if (!person) return key;
  const both = RIGHTS[key].filter((right) => RIGHTS[person.role].includes(right)).length;
  if (both === RIGHTS[key].length) return key;
  return both === RIGHTS[person.role].length ? person.role : 'member';
}

/** Whoever had a hand in what a run writes: what started it, and who wrote its workflow. */
export function makersOf(
  people: readonly Person[],
  { source }: { source: string },
  enrichment: { actor?: string } | undefined,
  { author }: { author?: string },
): string[] {
  const actor = enrichment?.actor === undefined ? undefined : `${source}:${enrichment.actor}`;
  const identities = [actor, author].filter((identity) => identity !== undefined);
  return [...new Set(identities.map((identity) => personBehind(people, identity)))];
}
