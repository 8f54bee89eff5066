import { beforeAll, describe, expect, it } from 'vitest';
import { authenticate } from '../../../lambdas/api/authorizer/authenticate.ts';
import { configuredIssuers } from '../../../lambdas/api/authorizer/configured-issuers.ts';
import { IssuerKeys } from '../../../lambdas/api/authorizer/issuer-keys.ts';
import { Problem } from '../../../lambdas/entry/http.ts';
import { Person } from '../../../lambdas/people/people.ts';
import { may, ROLES, type Role } from '../../../lambdas/people/rights.ts';
import { MemoryApiKeys } from '../../fakes/memory/memory-api-keys.ts';
import { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';
import { type As, eventFor, type KeyedRoute, keyedRoutes } from '../every-route.ts';
import { TestIssuer } from './oidc-issuer.ts';

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
  deleteAutomation: ADMIN,
  enableAutomation: OPERATOR,
  disableAutomation: OPERATOR,
  saveSchedule: ADMIN,
  deleteSchedule: ADMIN,
  enableSchedule: OPERATOR,
  disableSchedule: OPERATOR,
  saveConfiguration: ADMIN,
  deleteConfiguration: ADMIN,
  saveSource: ADMIN,
  deleteSource: ADMIN,
  publishPolicies: ADMIN,
  publishWorkflow: ADMIN,
  savePerson: ADMIN,
  deletePerson: ADMIN,
  // Of somebody else; everybody may set their own absence.
  setAway: ADMIN,
  setDelegates: OWNER,
  confirmPerson: ADMIN,
  listChanges: AUDITOR,
  getChange: AUDITOR,
  getChangesFile: AUDITOR,
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
  examineTenant: ['owner', 'admin', 'operator', 'auditor'],
  simulateWorkflow: OPERATOR,
  startRun: OPERATOR,
  startExecution: OPERATOR,
  proposeAction: OPERATOR,
  callMcp: OPERATOR,
  applyPlan: OPERATOR,
  runAutomation: OPERATOR,
  rerunRun: OPERATOR,
  replayRun: OPERATOR,
  listDeadLetters: OPERATOR,
  redriveDeadLetters: OPERATOR,
  actOnRuns: OPERATOR,
  getBulkJob: OPERATOR,
  cancelRun: OPERATOR,
  pauseRun: OPERATOR,
  resumeRun: OPERATOR,
  retryRun: OPERATOR,
  cancelSession: OPERATOR,
  rollBackRun: OPERATOR,
  rollBackExecution: OPERATOR,
  signalRun: OPERATOR,
  redriveOutbox: OPERATOR,
  resolveRun: ADMIN,
  acceptBrokenRules: OWNER,
  drainAgent: OPERATOR,
  resumeAgent: OPERATOR,
  removeAgent: ADMIN,
  listEnrolmentTokens: ADMIN,
  createEnrolmentToken: ADMIN,
  revokeEnrolmentToken: ADMIN,
  saveProfile: ADMIN,
};
const PEOPLE_ONLY = [
  'confirmPerson',
  'confirmChange',
  'assignRun',
  'releaseRun',
  'resolveRun',
  'acceptBrokenRules',
  'decideApproval',
  'approveRun',
  'approveExecutionStep',
  'rejectRun',
  'createEnrolmentToken',
];

class Reached extends Error {}
const reached = () => {
  throw new Reached();
};

/** A read that fails. A handler may start several, and nobody waits for the others after the first has failed. */
const failed = (): Promise<never> => {
  const read = Promise.reject(new Reached());
  read.catch(() => {});
  return read;
};

/** Ports that throw `Reached` on any use: a request that gets to them was allowed. People are read to find the caller. */
const portsFor = ({ person, role }: As) => ({
  get runs(): never {
    return reached();
  },
  definitions: new Proxy(
    {},
    {
      get: (_target, method) => () => {
        if (method !== 'people') return failed();
        const others = { name: '', tier: 'low', groups: [], identities: [] };
        return Promise.resolve([
          { ...others, id: 'ana', role: 'approver' },
          { ...others, id: person, role },
        ]);
      },
    },
  ),
  agents: new Proxy({}, { get: () => failed }),
  changes: new Proxy({}, { get: () => failed }),
  output: new Proxy({}, { get: () => failed }),
  credentials: new Proxy({}, { get: () => failed }),
  keysOf: failed,
  get deadLetters(): never {
    return reached();
  },
  get clock(): never {
    return reached();
  },
});

/** A body of `away` passes its schema; every other body may be refused after the right was checked. */
const BODIES: Record<string, unknown> = { setAway: { away: null } };

async function isAllowed({ name, route, handle }: KeyedRoute, as: As): Promise<boolean> {
  const event = eventFor(route, as, {
    params: { id: 'ana', name: 'ana', index: '0', version: '1', day: '2026-06-01' },
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

it('every route that requires a credential has its router in this test', () => {
  const without = keyedRoutes.filter(({ handle }) => typeof handle !== 'function');
  expect(without.map(({ key }) => key)).toEqual([]);
});

/** Callers as the authorizer establishes them, by role: with an API key, with a token, and as a machine. */
const callers = new Map<Role, { key: As; token: As; machine: As }>();
beforeAll(async () => {
  const issuer = await new TestIssuer('https://login.example.com').addKey('key-1');
  const stage = { name: 'okta', issuer: issuer.url, audience: 'countersign', tenant: 'acme' };
  const keys = new MemoryApiKeys();
  const definitions = new MemoryDefinitions();
  const clock = { now: () => Date.now() };
  const issuers = {
    find: configuredIssuers([stage], 'prod', definitions),
    keys: new IssuerKeys(issuer.fetch, clock.now, () => {}),
  };
  const authenticator = { keys, definitions, clock, issuers };
  for (const role of ROLES) {
    const identities = [`oidc:${issuer.url}#${role}`];
    await definitions.savePerson('acme', Person.parse({ id: `the-${role}`, name: role, role, identities }));
    await keys.save(role, { tenant: 'acme', person: `the-${role}`, role });
    await keys.save(`machine ${role}`, { tenant: 'acme', person: `machine:${role}@the-owner`, role, machine: true });
    callers.set(role, {
      key: await authenticate(authenticator, { 'x-api-key': role }),
      token: await authenticate(authenticator, { authorization: `Bearer ${await issuer.token({ sub: role })}` }),
      machine: await authenticate(authenticator, { 'x-api-key': `machine ${role}` }),
    });
  }
});
const callerAs = (role: Role, by: 'key' | 'token' | 'machine'): As => callers.get(role)?.[by] as As;

describe.each(keyedRoutes)('$key', (each) => {
  const roles = OPEN_TO[each.name] ?? ROLES;
  const { right } = each.route;

  it.each(ROLES)('as a person with the role %s, by API key and by token', async (role) => {
    for (const by of ['key', 'token'] as const) {
      expect(await isAllowed(each, callerAs(role, by))).toBe(roles.includes(role));
    }
    if (right === 'public' || right === 'signed') throw new Error(`${each.key} requires no key`);
    // The contract alone says the same, except where the operation checks more.
    if (each.name !== 'setAway') expect(may(role, right)).toBe(roles.includes(role));
  });

  it.each(ROLES)('as a machine with the role %s', async (role) => {
    expect(await isAllowed(each, callerAs(role, 'machine'))).toBe(
      roles.includes(role) && !PEOPLE_ONLY.includes(each.name),
    );
  });
});

it('a request without a caller reaches no operation', async () => {
  const whole = { tenant: 'acme', person: 'olivia', role: 'owner' };
  for (const context of [
    undefined,
    null,
    {},
    { refused: 'no' },
    { ...whole, refused: 'no' },
    { ...whole, role: 'root' },
  ]) {
    for (const each of keyedRoutes) {
      const refused = each.handle({} as never, eventFor(each.route, context as unknown as As));
      await expect(refused).rejects.toMatchObject({ status: 401, code: 'UNAUTHORIZED' });
    }
  }
});

it('a request whose credential was refused gets the reason', async () => {
  for (const each of keyedRoutes) {
    const refused = each.handle(
      {} as never,
      eventFor(each.route, { refused: 'the token has expired' } as unknown as As),
    );
    await expect(refused).rejects.toMatchObject({ status: 401, message: 'the token has expired' });
  }
});
