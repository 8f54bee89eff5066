import * as z from 'zod';
import { RISKS, type Risk } from '../connectors/connector.ts';

export const ROLES = ['owner', 'admin', 'operator', 'approver', 'member', 'auditor'] as const;
export type Role = (typeof ROLES)[number];

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
  identities: z.array(z.string()).default([]),
  /** While away, this person's place is taken by another, who keeps their own. */
  away: z.strictObject({ until: z.iso.datetime(), delegate: z.string() }).optional(),
});
export type Person = z.infer<typeof Person>;

export const tierRank = (tier: Risk): number => RISKS.indexOf(tier);

/** The person behind an identity; an identity nobody has claimed stands for itself. */
export function personBehind(people: readonly Person[], identity: string): string {
  return people.find(({ id, identities }) => id === identity || identities.includes(identity))?.id ?? identity;
}
