import { automationRoutes } from '../contract/definitions/automations.ts';
import { configurationRoutes } from '../contract/definitions/configurations.ts';
import { changeRoutes, peopleRoutes } from '../contract/definitions/people.ts';
import { scheduleRoutes } from '../contract/definitions/schedules.ts';
import { sourceRoutes } from '../contract/definitions/sources.ts';
import { workflowRoutes } from '../contract/definitions/workflows.ts';
import type { Contract } from '../contract/index.ts';
import { router } from '../router.ts';
import { type AutomationsPorts, automationHandlers } from './automations.ts';
import { type ChangesPorts, changeHandlers } from './changes.ts';
import { type ConfigurationsPorts, configurationHandlers } from './configurations.ts';
import { type PeoplePorts, peopleHandlers } from './people.ts';
import { type SchedulesPorts, scheduleHandlers } from './schedules.ts';
import { type SourcesPorts, sourceHandlers } from './sources.ts';
import { type WorkflowsPorts, workflowHandlers } from './workflows.ts';

export type DefinitionsPorts = WorkflowsPorts &
  AutomationsPorts &
  ConfigurationsPorts &
  SchedulesPorts &
  SourcesPorts &
  PeoplePorts &
  ChangesPorts;

const routes = {
  ...workflowRoutes,
  ...automationRoutes,
  ...configurationRoutes,
  ...scheduleRoutes,
  ...sourceRoutes,
  ...peopleRoutes,
  ...changeRoutes,
};

/** One function for all definitions: they are rows of the same tenant, so it needs the same permissions for each. */
export const handleDefinitions = router<DefinitionsPorts, Contract['definitions']>(routes, {
  ...workflowHandlers,
  ...automationHandlers,
  ...configurationHandlers,
  ...scheduleHandlers,
  ...sourceHandlers,
  ...peopleHandlers,
  ...changeHandlers,
});
