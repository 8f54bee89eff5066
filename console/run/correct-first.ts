import type { ErrorCode } from '../../lambdas/run/errors.ts';

interface Correction {
  text: string;
  /** The page where it is corrected: its name and its path. */
  page?: readonly [name: string, path: string];
}

const WORKFLOW: Correction = {
  text: 'Correct the workflow and publish a new version.',
  page: ['Workflows', '/workflows'],
};
const TARGET: Correction = { text: 'Correct what the target rejects: the message says what to check.' };

/** Errors whose cause stays until somebody corrects it, as in RUNBOOK, "Codes on runs and steps". */
export const CORRECT_FIRST: Partial<Record<ErrorCode, Correction>> = {
  CONFIGURATION_UNRESOLVED: {
    text: 'Create the configuration of the sessions, or correct the one that the automation or the step names.',
  },
  CONNECTION_MISSING: {
    text: 'Add the connection, or correct its credential.',
    page: ['Connections', '/settings/connections'],
  },
  CONNECTION_NOT_ALLOWED: {
    text: 'Allow the connection in the automation, or correct the workflow.',
    page: ['Automations', '/automations'],
  },
  COMMAND_NOT_ALLOWED: {
    text: 'Change the command, or let an owner or admin change the lists of the profile.',
    page: ['Agents', '/agents'],
  },
  ASSIGNMENT_FAILED: { text: 'Start or fix an agent.', page: ['Agents', '/agents'] },
  POLICY_DENIED: { text: 'Change the workflow or the policies.', page: ['Policies', '/policies'] },
  COMMAND_FAILED: { text: 'Read the output of the command and correct the cause.' },
  TARGET_REFUSED: TARGET,
  RETRIES_EXHAUSTED: TARGET,
  INPUT_INVALID: WORKFLOW,
  EXPRESSION_FAILED: WORKFLOW,
  EXPRESSION_LIMIT_EXCEEDED: WORKFLOW,
  MISSING_VALUE: WORKFLOW,
  OUTPUT_TOO_LARGE: WORKFLOW,
};
