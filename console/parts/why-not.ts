import { may, type Right, ROLES, type Role } from '../../lambdas/people/rights.ts';
import { useMe } from '../data/me.ts';

const PLURALS: Record<Role, string> = {
  owner: 'owners',
  admin: 'admins',
  operator: 'operators',
  approver: 'approvers',
  member: 'members',
  auditor: 'auditors',
};

/** Why the signed-in person may not do something; undefined if they may. The API decides; this only explains. */
export function useWhyNot(right: Right | undefined): string | undefined {
  const { data: me } = useMe();
  if (right === undefined || me?.rights.includes(right)) return undefined;
  if (!me) return 'Your rights are not loaded yet.';
  return `Only ${listed(ROLES.filter((role) => may(role, right)).map((role) => PLURALS[role]))} can do this. Your role is ${me.role}.`;
}

export const listed = (words: readonly string[]): string =>
  words.length < 2 ? (words[0] ?? 'nobody') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
