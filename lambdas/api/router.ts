import * as z from 'zod';
import { type HttpEvent, type HttpResponse, InvalidResponse, json, PRIVATE, Problem } from '../entry/http.ts';
import { refusalOf } from '../run/errors.ts';
import { type Caller, callerOf, requirePerson, requireRight } from './authorizer/caller.ts';
import {
  type BodyOf,
  type ParamsOf,
  type QueryOf,
  type ResponseOf,
  type RouteDefinition,
  type Routes,
  routeKey,
} from './contract/route.ts';
import { parseRequest } from './request.ts';
import { assertResponseFits } from './response-size.ts';
import { RUN_PATH, type RunFinder, resolveRunId } from './runs/resolve-run-id.ts';

export interface Request<Route extends RouteDefinition> {
  /** Of a public route there is none. */
  caller: Route['right'] extends 'public' | 'signed' ? undefined : Caller;
  params: ParamsOf<Route>;
  query: QueryOf<Route>;
  body: BodyOf<Route>;
  headers: HttpEvent['headers'];
}

/** A handler for each route of the contract: the types allow none to be missing, and none that the contract lacks. */
export type Handlers<Ports, Definitions extends Routes> = {
  readonly [Name in keyof Definitions]: (
    ports: Ports,
    request: Request<Definitions[Name]>,
  ) => Promise<ResponseOf<Definitions[Name]>>;
};

type AnyHandler = (
  ports: unknown,
  request: unknown,
) => Promise<{ status: number; body: unknown; headers?: Record<string, string> }>;

/**
 * Handles requests by their route, in this order: API key, right, parameters, query and body as the contract describes
 * them, handler, response.
 */
export function router<Ports, Definitions extends Routes>(
  routes: Definitions,
  handlers: Handlers<Ports, Definitions>,
): (ports: Ports & NeededFor<Definitions>, event: HttpEvent) => Promise<HttpResponse> {
  const byKey = new Map(
    Object.entries(routes).map(([name, route]) => [routeKey(route), { route, handle: handlers[name] as AnyHandler }]),
  );
  return async (ports, event) => {
    const found = byKey.get(event.routeKey);
    if (!found) throw new Problem(404, 'NOT_FOUND', `there is nothing at ${event.rawPath}`);
    const { route, handle } = found;
    const caller = allowedCaller(route, event);
    const request = { caller, headers: event.headers, ...parseRequest(route, event) };
    if (caller && isAboutRun(route)) request.params = await withWholeId(ports as RunFinder, caller, request.params);
    const { status, body, headers } = await handle(ports, request).catch((error: unknown) => {
      throw asProblem(error);
    });
    return assertResponseFits(httpResponse(route, status, body, headers));
  };
}

/** Routes about one run accept the first characters of its id, so their functions must be able to find it. */
type NeededFor<Definitions extends Routes> =
  Extract<Definitions[keyof Definitions]['path'], `${typeof RUN_PATH}${string}`> extends never ? unknown : RunFinder;

const isAboutRun = ({ path }: RouteDefinition): boolean => path.startsWith(RUN_PATH);

async function withWholeId(finder: RunFinder, { tenant }: Caller, params: unknown): Promise<unknown> {
  const { id } = params as { id: string };
  return { ...(params as object), id: await resolveRunId(finder, tenant, id) };
}

function allowedCaller({ right, peopleOnly }: RouteDefinition, event: HttpEvent): Caller | undefined {
  if (right === 'public' || right === 'signed') return undefined;
  const caller = callerOf(event);
  requireRight(caller, right);
  if (peopleOnly) requirePerson(caller, 'do this');
  return caller;
}

/** Refusals of the domain become responses. Any other error is a fault of ours and becomes a 500. */
function asProblem(error: unknown): unknown {
  const refusal = refusalOf(error);
  return refusal ? new Problem(refusal.status, refusal.code, refusal.message) : error;
}

/**
 * Sends only the fields that the contract lists, so that a field of a stored row cannot leave by accident. A body that does
 * not match is a fault of ours: the caller gets a 500, in tests as in production, which raises an alarm. Leaving out the
 * wrong part instead would hide the fault, and most fields are required. The 500 says that a change has taken effect.
 */
function httpResponse(
  route: RouteDefinition,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): HttpResponse {
  const checked = route.responses[status]?.safeParse(body);
  if (!checked?.success) {
    const problems = checked ? z.prettifyError(checked.error) : 'the status is not in the contract';
    throw new InvalidResponse(`${routeKey(route)}, response ${status}: ${problems}`);
  }
  if (checked.data instanceof Uint8Array) {
    return {
      statusCode: status,
      headers: { 'content-type': 'application/json', ...PRIVATE, ...headers },
      body: Buffer.from(checked.data).toString('base64'),
      isBase64Encoded: true,
    };
  }
  const response = json(status, checked.data);
  return { ...response, headers: { ...response.headers, ...PRIVATE, ...headers } };
}
