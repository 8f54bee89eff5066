import { type HttpAnswer, type HttpEvent, Problem } from '../entry/http.ts';
import { refusalOf } from '../run/errors.ts';
import { assertSendable } from './answer-size.ts';
import type { Caller } from './api-keys.ts';
import { callerOf } from './caller.ts';
import type { API_ROUTES, Route } from './routes.ts';

export type Answer<Api> = (api: Api, caller: Caller, event: HttpEvent) => Promise<HttpAnswer>;

/** An answer for each route of a group: none missing, none that the stack does not make. */
export type Answers<Api, Group extends keyof typeof API_ROUTES> = Readonly<Record<Route<Group>, Answer<Api>>>;

/** Answers whoever calls by the route they called, as API Gateway names it. */
export function byRoute<Api>(answers: Readonly<Record<string, Answer<Api>>>) {
  return async (api: Api, event: HttpEvent): Promise<HttpAnswer> => {
    const caller = callerOf(event);
    const answer = answers[event.routeKey];
    if (!answer) throw new Problem(404, 'NOT_FOUND', `there is nothing at ${event.rawPath}`);
    const answered = await answer(api, caller, event).catch((error: unknown) => {
      throw asTold(error);
    });
    return assertSendable(answered);
  };
}

/** The domain's refusals are answers to the caller; anything else is a fault of ours. */
function asTold(error: unknown): unknown {
  const refusal = refusalOf(error);
  return refusal ? new Problem(refusal.status, refusal.code, refusal.message) : error;
}
