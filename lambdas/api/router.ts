import { type HttpEvent, type HttpResponse, Problem } from '../entry/http.ts';
import { refusalOf } from '../run/errors.ts';
import type { Caller } from './authorizer/api-keys.ts';
import { callerOf } from './authorizer/caller.ts';
import { assertResponseFits } from './response-size.ts';
import type { API_ROUTES, Route } from './routes.ts';

export type Handler<Api> = (api: Api, caller: Caller, event: HttpEvent) => Promise<HttpResponse>;

/** An answer for each route of a group: none missing, none that the stack does not make. */
export type Handlers<Api, Group extends keyof typeof API_ROUTES> = Readonly<Record<Route<Group>, Handler<Api>>>;

/** Handlers whoever calls by the route they called, as API Gateway names it. */
export function byRoute<Api>(handlers: Readonly<Record<string, Handler<Api>>>) {
  return async (api: Api, event: HttpEvent): Promise<HttpResponse> => {
    const caller = callerOf(event);
    const answer = handlers[event.routeKey];
    if (!answer) throw new Problem(404, 'NOT_FOUND', `there is nothing at ${event.rawPath}`);
    const answered = await answer(api, caller, event).catch((error: unknown) => {
      throw asTold(error);
    });
    return assertResponseFits(answered);
  };
}

/** The domain's refusals are handlers to the caller; anything else is a fault of ours. */
function asTold(error: unknown): unknown {
  const refusal = refusalOf(error);
  return refusal ? new Problem(refusal.status, refusal.code, refusal.message) : error;
}
