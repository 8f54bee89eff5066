import { describe, expect, it } from 'vitest';
import { handleApprovals } from '../../lambdas/api/approvals/approvals.ts';
import { handleDefinitions } from '../../lambdas/api/definitions/definitions.ts';
import { handlePlan } from '../../lambdas/api/definitions/plan.ts';
import { handleEvidence } from '../../lambdas/api/evidence/evidence.ts';
import { handleDeadLetters } from '../../lambdas/api/operations/dead-letters.ts';
import { handlePolicies } from '../../lambdas/api/policies/policies.ts';
import { API_ROUTES } from '../../lambdas/api/routes.ts';
import { handleControl } from '../../lambdas/api/runs/control.ts';
import { handleRuns } from '../../lambdas/api/runs/runs.ts';
import { type HttpEvent, type HttpResponse, Problem } from '../../lambdas/entry/http.ts';
import { ROLES, type Role } from '../../lambdas/people/people.ts';

const OWN: Role[] = ['owner'];
const DEFINE: Role[] = ['owner', 'admin'];
const CONTROL: Role[] = ['owner', 'admin', 'operator'];
const AUDIT: Role[] = ['owner', 'admin', 'auditor'];
const EVERYBODY: Role[] = [...ROLES];

/** Who gets past the door of each route. Approvals ask who somebody is, not which role their key has. */
const MAY: Record<string, Role[]> = {
  'PUT /api/v1/automations/{name}': DEFINE,
  'PUT /api/v1/policies': DEFINE,
  'POST /api/v1/workflows': DEFINE,
  'PUT /api/v1/people/{id}': DEFINE,
  'PUT /api/v1/people/{id}/away': DEFINE,
  'DELETE /api/v1/people/{id}': DEFINE,
  'PUT /api/v1/people/{id}/delegates': OWN,
  // A machine vouches for nobody, and confirms nothing.
  'POST /api/v1/people/{id}/confirm': [],
  'GET /api/v1/changes': AUDIT,
  'GET /api/v1/changes/pending': AUDIT,
  'POST /api/v1/changes/pending/{id}/confirm': [],
  'POST /api/v1/changes/pending/{id}/reject': OWN,
  'POST /api/v1/policies/replay': AUDIT,
  'POST /api/v1/workflows/simulate': CONTROL,
  'GET /api/v1/dead-letters': CONTROL,
  'POST /api/v1/dead-letters/redrive': CONTROL,
  ...Object.fromEntries(API_ROUTES.control.map((route) => [route, CONTROL])),
};

const HANDLERS: Record<keyof typeof API_ROUTES, (api: never, event: HttpEvent) => Promise<HttpResponse>> = {
  runs: handleRuns,
  control: handleControl,
  approvals: handleApprovals,
  evidence: handleEvidence,
  deadLetters: handleDeadLetters,
  workflows: handleDefinitions,
  plan: handlePlan,
  automations: handleDefinitions,
  people: handleDefinitions,
  changes: handleDefinitions,
  policies: handlePolicies,
};

class Reached extends Error {}

/** An API of which anything that is touched says so: whoever gets to it was let in. People are read to see who calls. */
const untouched = {
  get runs(): never {
    throw new Reached();
  },
  definitions: new Proxy(
    {},
    {
      get: (_target, name) => async () => {
        if (name === 'people') return [{ id: 'ana', name: 'Ana', role: 'approver', groups: [], identities: [] }];
        throw new Reached();
      },
    },
  ),
  counts: async () => {
    throw new Reached();
  },
};

/** Refused for the role, or not: whatever else is wrong with the request comes after that. */
async function isLetIn(group: keyof typeof API_ROUTES, routeKey: string, role: Role): Promise<boolean> {
  const event = {
    routeKey,
    rawPath: routeKey,
    headers: {},
    pathParameters: { id: 'ana' },
    requestContext: { authorizer: { lambda: { tenant: 'acme', person: 'machine', role, machine: true } } },
  } as unknown as HttpEvent;
  try {
    await HANDLERS[group](untouched as never, event);
    return true;
  } catch (error) {
    if (error instanceof Problem && error.status === 403) return false;
    if (error instanceof Problem || error instanceof Reached || error instanceof TypeError) return true;
    throw error;
  }
}

const routes = Object.entries(API_ROUTES).flatMap(([group, list]) =>
  list.map((route) => [route, group as keyof typeof API_ROUTES] as const),
);

describe.each(routes)('%s', (route, group) => {
  it.each(ROLES)('as %s', async (role) => {
    expect(await isLetIn(group, route, role)).toBe((MAY[route] ?? EVERYBODY).includes(role));
  });
});
