import { describe, expect, it } from 'vitest';
import { Problem } from '../../lambdas/entry/http.ts';
import { may, ROLES, type Role } from '../../lambdas/people/rights.ts';
import { type As, eventFor, type KeyedRoute, keyedRoutes } from './every-route.ts';

const OWNER: Role[] = ['owner'];
const ADMIN: Role[] = ['owner', 'admin'];
const OPERATOR: Role[] = ['owner', 'admin', 'operator'];
const AUDITOR: Role[] = ['owner', 'admin', 'auditor'];

/**
 * The roles that each operation is open to; operations that are not listed are open to every role. It repeats what
 * contract and rights say together, so that neither can change by accident. An approval itself checks who may decide it.
 */
const OPEN_TO: Record<string, Role[]> = {
  saveAutomation: ADMIN,
  publishPolicies: ADMIN,
  publishWorkflow: ADMIN,
  savePerson: ADMIN,
  deletePerson: ADMIN,
  // Of somebody else; everybody may set their own absence.
  setAway: ADMIN,
  setDelegates: OWNER,
  confirmPerson: ADMIN,
  listChanges: AUDITOR,
  listPendingChanges: AUDITOR,
  confirmChange: OWNER,
  rejectChange: OWNER,
  replayPolicies: AUDITOR,
  saveConnection: ADMIN,
  deleteConnection: ADMIN,
  testConnection: OPERATOR,
  saveWebhookSecret: ADMIN,
  deletePreviousWebhookSecrets: ADMIN,
  saveSettings: ADMIN,
  simulateWorkflow: OPERATOR,
  startRun: OPERATOR,
  runAutomation: OPERATOR,
  rerunRun: OPERATOR,
  replayRun: OPERATOR,
  countDeadLetters: OPERATOR,
  redriveDeadLetters: OPERATOR,
  cancelRun: OPERATOR,
  pauseRun: OPERATOR,
  resumeRun: OPERATOR,
  retryRun: OPERATOR,
  rollBackRun: OPERATOR,
  signalRun: OPERATOR,
  redriveOutbox: OPERATOR,
  resolveRun: ADMIN,
};
const PEOPLE_ONLY = ['confirmPerson', 'confirmChange', 'assignRun', 'releaseRun', 'resolveRun'];

class Reached extends Error {}
const reached = () => {
  throw new Reached();
};

/** Ports that throw `Reached` on any use: a request that gets to them was allowed. People are read to find the caller. */
const portsFor = ({ person, role }: As) => ({
  get runs(): never {
    return reached();
  },
  definitions: new Proxy(
    {},
    {
      get: (_target, method) => async () => {
        if (method !== 'people') return reached();
        const others = { name: '', tier: 'low', groups: [], identities: [] };
        return [
          { ...others, id: 'ana', role: 'approver' },
          { ...others, id: person, role },
        ];
      },
    },
  ),
  credentials: new Proxy({}, { get: () => async () => reached() }),
  counts: async () => reached(),
  redrive: async () => reached(),
});

/** A body of `away` passes its schema; every other body may be refused after the right was checked. */
const BODIES: Record<string, unknown> = { setAway: { away: null } };

async function isAllowed({ name, route, handle }: KeyedRoute, as: As): Promise<boolean> {
  const event = eventFor(route, as, {
    params: { id: 'ana', name: 'ana', index: '0', version: '1' },
    body: BODIES[name],
  });
  try {
    await handle(portsFor(as) as never, event);
    return true;
  } catch (error) {
    if (error instanceof Problem && error.status === 403) return false;
    if (error instanceof Problem || error instanceof Reached || error instanceof TypeError) return true;
    throw error;
  }
}

it('the table above names operations of the contract only', () => {
  const names = keyedRoutes.map(({ name }) => name);
  expect([...Object.keys(OPEN_TO), ...PEOPLE_ONLY].filter((name) => !names.includes(name))).toEqual([]);
});

describe.each(keyedRoutes)('$key', (each) => {
  const roles = OPEN_TO[each.name] ?? ROLES;
  const { right } = each.route;

  it.each(ROLES)('as a person with the role %s', async (role) => {
    const as = { tenant: 'acme', person: 'caller', role };
    expect(await isAllowed(each, as)).toBe(roles.includes(role));
    if (right === 'public' || right === 'signed') throw new Error(`${each.key} requires no key`);
    // The contract alone says the same, except where the operation checks more.
    if (each.name !== 'setAway') expect(may(role, right)).toBe(roles.includes(role));
  });

  it.each(ROLES)('as a machine with the role %s', async (role) => {
    const as = { tenant: 'acme', person: 'nightly-job', role, machine: true };
    expect(await isAllowed(each, as)).toBe(roles.includes(role) && !PEOPLE_ONLY.includes(each.name));
  });
});

it('a request without a caller reaches no operation', async () => {
  for (const each of keyedRoutes) {
    const refused = each.handle({} as never, eventFor(each.route, undefined as unknown as As));
    await expect(refused).rejects.toMatchObject({ status: 401, code: 'UNAUTHORIZED' });
  }
});
