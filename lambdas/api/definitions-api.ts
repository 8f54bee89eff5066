import { type HttpAnswer, type HttpEvent, Problem } from '../entry/http.ts';
import { AUTOMATION_ROUTES, type AutomationsApi } from './automations-api.ts';
import { callerOf } from './caller.ts';
import { PEOPLE_ROUTES, type PeopleApi } from './people-api.ts';
import { WORKFLOW_ROUTES, type WorkflowsApi } from './workflows-api.ts';

export type DefinitionsApi = WorkflowsApi & AutomationsApi & PeopleApi;

const ROUTES = { ...WORKFLOW_ROUTES, ...AUTOMATION_ROUTES, ...PEOPLE_ROUTES };

export async function answerDefinitions(api: DefinitionsApi, event: HttpEvent): Promise<HttpAnswer> {
  const caller = callerOf(event);
  const answer = ROUTES[event.routeKey];
  if (!answer) throw new Problem(404, 'NOT_FOUND', `there is nothing at ${event.rawPath}`);
  return answer(api, caller, event);
}
