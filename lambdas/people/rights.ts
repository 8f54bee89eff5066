export const ROLES = ['owner', 'admin', 'operator', 'approver', 'member', 'auditor'] as const;
export type Role = (typeof ROLES)[number];

/**
 * Every role has these. Two of them are limited further where they are used: `approvals:respond` lets anybody call the
 * decision routes, and each approval checks who may decide it (a delegate can have any role). `people:set-away` lets
 * people mark themselves as away. With `api-keys:own` they create, see and revoke their own keys.
 * `runs:subscribe` lets them be notified themselves; to notify a channel they need `runs:control`.
 */
const EVERY_ROLE = [
  'runs:read',
  'runs:assign',
  'runs:subscribe',
  'evidence:read',
  'approvals:read',
  'approvals:respond',
  'workflows:read',
  'automations:read',
  'policies:read',
  'connections:read',
  'agents:read',
  'profiles:read',
  'settings:read',
  'people:read',
  'people:set-away',
  'api-keys:own',
] as const;
const APPROVER = [...EVERY_ROLE, 'approvals:decide'] as const;
const OPERATOR = [
  ...EVERY_ROLE,
  'runs:start',
  'runs:control',
  'workflows:simulate',
  'outbox:redrive',
  'schedules:control',
  'automations:control',
  'agents:control',
  'dead-letters:read',
  'dead-letters:redrive',
  'connections:test',
  'setup:check',
] as const;
const AUDITOR = [...EVERY_ROLE, 'changes:read', 'api-keys:read', 'policies:replay', 'setup:check'] as const;
const ADMIN = [
  ...new Set([...APPROVER, ...OPERATOR, ...AUDITOR]),
  'workflows:write',
  'automations:write',
  'policies:write',
  'people:write',
  'runs:resolve',
  'connections:write',
  'agents:write',
  'profiles:write',
  'settings:write',
  'api-keys:write',
] as const;
const OWNER = [
  ...ADMIN,
  'people:delegate',
  'changes:decide',
  'settings:issuers',
  'evidence:accept-broken-rules',
] as const;

export type Right = (typeof OWNER)[number];

/** The rights of each role. The routes of the API name the right they require. */
const RIGHTS: Readonly<Record<Role, readonly Right[]>> = {
  owner: OWNER,
  admin: ADMIN,
  operator: OPERATOR,
  approver: APPROVER,
  member: EVERY_ROLE,
  auditor: AUDITOR,
};

/** Who has the first role may do everything that the second one may. */
export const includesRole = (role: Role, other: Role): boolean => RIGHTS[other].every((right) => may(role, right));

/** The role neither changes nor controls anything, and approves only as a delegate. */
export const isReadOnly = (role: Role): boolean => includesRole('auditor', role);

export const rightsOf = (role: Role): readonly Right[] => RIGHTS[role];

export const may = (role: Role, right: Right): boolean => RIGHTS[role].includes(right);

/** The role whose rights the role of an API key and the role of its person share. A machine has only its key's role. */
export function effectiveRole(key: Role, person: { role: Role } | undefined): Role {
  if (!person) return key;
  const shared = RIGHTS[key].filter((right) => may(person.role, right)).length;
  if (shared === RIGHTS[key].length) return key;
  return shared === RIGHTS[person.role].length ? person.role : 'member';
}
