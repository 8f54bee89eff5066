import { accessRoutes, liveRoutes, signInRoutes } from './access.ts';
import { agentEnrolRoutes, agentRoutes, agentWorkRoutes, enrolmentTokenRoutes, profileRoutes } from './agents.ts';
import { approvalRoutes } from './approvals.ts';
import { automationRoutes } from './definitions/automations.ts';
import { configurationRoutes } from './definitions/configurations.ts';
import { changeRoutes, peopleRoutes } from './definitions/people.ts';
import { scheduleRoutes } from './definitions/schedules.ts';
import { sourceRoutes } from './definitions/sources.ts';
import { planRoutes, workflowRoutes } from './definitions/workflows.ts';
import { docsRoutes } from './docs.ts';
import { changeFileRoutes, evidenceKeyRoutes, evidenceRoutes, textRoutes } from './evidence.ts';
import {
  genericRoutes,
  githubRoutes,
  servicenowRoutes,
  slackCommandRoutes,
  slackEventRoutes,
  slackInteractivityRoutes,
} from './inbound.ts';
import { mcpRoutes } from './mcp.ts';
import { deadLetterRoutes, healthRoutes, outboxRoutes, statusRoutes } from './operations.ts';
import { policyRoutes } from './policies.ts';
import type { RouteDefinition, Routes } from './route.ts';
import { actionRoutes, directActionRoutes, sessionRoutes } from './runs/actions.ts';
import { bulkRoutes } from './runs/bulk.ts';
import {
  executionApprovalRoutes,
  executionControlRoutes,
  executionReadRoutes,
  executionStartRoutes,
} from './runs/executions.ts';
import { caseRoutes, controlRoutes, subscriptionRoutes } from './runs/run-control.ts';
import { runRoutes } from './runs/runs.ts';
import { startRoutes } from './runs/start.ts';
import { outputRoutes } from './runs/steps.ts';
import { connectionRoutes, webhookSecretRoutes } from './setup/connections.ts';
import { doctorRoutes } from './setup/doctor.ts';
import { settingsRoutes } from './setup/settings.ts';

/** READ FIRST. Every route of the HTTP API, by the function that handles it. */
export const CONTRACT = {
  github: githubRoutes,
  servicenow: servicenowRoutes,
  generic: genericRoutes,
  slackInteractivity: slackInteractivityRoutes,
  slackCommands: slackCommandRoutes,
  slackEvents: slackEventRoutes,
  agentEnrol: agentEnrolRoutes,
  agentWork: agentWorkRoutes,
  runs: { ...runRoutes, ...outputRoutes, ...actionRoutes, ...executionReadRoutes },
  bulk: bulkRoutes,
  control: {
    ...controlRoutes,
    ...caseRoutes,
    ...sessionRoutes,
    ...subscriptionRoutes,
    ...executionControlRoutes,
    ...outboxRoutes,
  },
  start: { ...startRoutes, ...directActionRoutes, ...executionStartRoutes },
  mcp: mcpRoutes,
  approvals: { ...approvalRoutes, ...executionApprovalRoutes },
  definitions: {
    ...workflowRoutes,
    ...automationRoutes,
    ...configurationRoutes,
    ...scheduleRoutes,
    ...sourceRoutes,
    ...peopleRoutes,
    ...changeRoutes,
  },
  setup: { ...connectionRoutes, ...webhookSecretRoutes, ...settingsRoutes, ...doctorRoutes },
  plan: planRoutes,
  agents: { ...agentRoutes, ...enrolmentTokenRoutes, ...profileRoutes },
  policies: policyRoutes,
  evidence: { ...evidenceRoutes, ...textRoutes, ...changeFileRoutes },
  evidenceKeys: evidenceKeyRoutes,
  deadLetters: { ...deadLetterRoutes, ...statusRoutes },
  access: { ...accessRoutes, ...liveRoutes },
  health: { ...healthRoutes, ...signInRoutes },
  docs: docsRoutes,
} as const satisfies Record<string, Routes>;

export type Contract = typeof CONTRACT;
export type FunctionGroup = keyof Contract;

export const routesOf = (group: FunctionGroup): readonly RouteDefinition[] => Object.values(CONTRACT[group]);
