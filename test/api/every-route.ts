import { handleAccess } from '../../lambdas/api/access/access.ts';
import { handleAgents } from '../../lambdas/api/agents/agents.ts';
import { handleApprovals } from '../../lambdas/api/approvals/approvals.ts';
import { handleBulk } from '../../lambdas/api/bulk/bulk.ts';
import { CONTRACT } from '../../lambdas/api/contract/index.ts';
import { type RouteDefinition, type Routes, routeKey } from '../../lambdas/api/contract/route.ts';
import { handleDefinitions } from '../../lambdas/api/definitions/definitions.ts';
import { handlePlan } from '../../lambdas/api/definitions/plan.ts';
import { handleEvidence } from '../../lambdas/api/evidence/evidence.ts';
import { handleMcp } from '../../lambdas/api/mcp/mcp.ts';
import { handleDeadLetters } from '../../lambdas/api/operations/dead-letters.ts';
import { handlePolicies } from '../../lambdas/api/policies/policies.ts';
import { handleControl } from '../../lambdas/api/runs/control.ts';
import { handleRuns } from '../../lambdas/api/runs/runs.ts';
import { handleSetup } from '../../lambdas/api/setup/setup.ts';
import { handleStart } from '../../lambdas/api/start/start.ts';
import type { HttpEvent, HttpResponse } from '../../lambdas/entry/http.ts';
import type { Role } from '../../lambdas/people/rights.ts';

/** The routers of the functions behind API keys, as they are deployed. */
const ROUTERS = {
  runs: handleRuns,
  control: handleControl,
  bulk: handleBulk,
  start: handleStart,
  approvals: handleApprovals,
  evidence: handleEvidence,
  deadLetters: handleDeadLetters,
  definitions: handleDefinitions,
  setup: handleSetup,
  plan: handlePlan,
  policies: handlePolicies,
  access: handleAccess,
  agents: handleAgents,
  mcp: handleMcp,
};

type Router = (ports: never, event: HttpEvent) => Promise<HttpResponse>;

export interface KeyedRoute {
  name: string;
  key: string;
  route: RouteDefinition;
  handle: Router;
}

/** Every route of the contract, by operation name. */
export const allRoutes: { group: string; name: string; route: RouteDefinition }[] = Object.entries<Routes>(
  CONTRACT,
).flatMap(([group, routes]) => Object.entries(routes).map(([name, route]) => ({ group, name, route })));

/** Every route that requires an API key, with the router that handles it. */
export const keyedRoutes: KeyedRoute[] = allRoutes
  .filter(({ route: { right } }) => right !== 'public' && right !== 'signed')
  .map(({ group, name, route }) => ({
    name,
    key: routeKey(route),
    route,
    handle: ROUTERS[group as keyof typeof ROUTERS] as Router,
  }));

export interface As {
  tenant: string;
  person: string;
  role: Role;
  machine?: boolean;
}

export interface Sent {
  params?: Record<string, string>;
  body?: unknown;
}

export const eventFor = (route: RouteDefinition, as: As, { params, body }: Sent = {}): HttpEvent =>
  ({
    routeKey: routeKey(route),
    rawPath: route.path,
    headers: {},
    pathParameters: params,
    body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
    requestContext: { authorizer: { lambda: as } },
  }) as unknown as HttpEvent;
