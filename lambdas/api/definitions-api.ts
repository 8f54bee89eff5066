import { byRoute } from './answers.ts';
import { AUTOMATION_ANSWERS, type AutomationsApi } from './automations-api.ts';
import { CHANGE_ANSWERS, type ChangesApi } from './changes-api.ts';
import { PEOPLE_ANSWERS, type PeopleApi } from './people-api.ts';
import { WORKFLOW_ANSWERS, type WorkflowsApi } from './workflows-api.ts';

export type DefinitionsApi = WorkflowsApi & AutomationsApi & PeopleApi & ChangesApi;

/** What people define: one function, for all of it lies in the tenant's rows. */
export const answerDefinitions = byRoute<DefinitionsApi>({
  ...WORKFLOW_ANSWERS,
  ...AUTOMATION_ANSWERS,
  ...PEOPLE_ANSWERS,
  ...CHANGE_ANSWERS,
});
