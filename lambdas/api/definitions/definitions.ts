import { byRoute } from '../router.ts';
import { AUTOMATION_HANDLERS, type AutomationsApi } from './automations.ts';
import { CHANGE_HANDLERS, type ChangesApi } from './changes.ts';
import { PEOPLE_HANDLERS, type PeopleApi } from './people.ts';
import { WORKFLOW_HANDLERS, type WorkflowsApi } from './workflows.ts';

export type DefinitionsApi = WorkflowsApi & AutomationsApi & PeopleApi & ChangesApi;

/** What people define: one function, for all of it lies in the tenant's rows. */
export const handleDefinitions = byRoute<DefinitionsApi>({
  ...WORKFLOW_HANDLERS,
  ...AUTOMATION_HANDLERS,
  ...PEOPLE_HANDLERS,
  ...CHANGE_HANDLERS,
});
