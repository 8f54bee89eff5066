import { stringify } from 'yaml';
import { SESSION_TOOL } from '../connectors/session/session.ts';
import { TIMEOUT_DEFAULT_SECONDS } from '../connectors/session/session-input.ts';
import { triedWorkflow } from '../workflow/checks/expression-limits.ts';
import type { Expressions } from '../workflow/expressions/expressions.ts';
import { type FileProblem, readWorkflow } from '../workflow/parse-workflow.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import type { AutomationDefinition } from './automation.ts';

/** No file can publish a workflow with such a name, because it contains a dot. */
const PREFIX = 'automation.';
export const isInstructedName = (workflow: string): boolean => workflow.startsWith(PREFIX);
export const instructedName = (automation: string): string => `${PREFIX}${automation}`;

const STEP = 'session';
/** The run also needs time for its start, and for the approval of its session. */
const BESIDES_THE_SESSION_SECONDS = 60 * 60;

/** What is known of every event. Values that an event does not have are left out. */
const EVENT =
  '{% { "title": enrichment.title, "severity": enrichment.severity, "actor": enrichment.actor, "links": enrichment.links[], ' +
  '"source": trigger.source, "event": trigger.event, "subject": trigger.subject, "text": trigger.text } %}';

export type Instructed = Pick<AutomationDefinition, 'name' | 'description' | 'session'> & { instructions: string };

/**
 * The workflow of an automation that has instructions: one session. It is published under the name of the automation like any
 * other workflow, so a run keeps its version, its author is a maker, and policy, evidence and actions need no code of their own.
 */
function fileOf({
  name,
  description = `The session of the automation ${name}.`,
  instructions,
  session = {},
}: Instructed): Record<string, unknown> {
  const { context = EVENT, actions, maxActions, timeoutSeconds, ...rules } = session;
  return {
    name,
    description,
    ...rules,
    deadlineSeconds: (timeoutSeconds ?? TIMEOUT_DEFAULT_SECONDS) + BESIDES_THE_SESSION_SECONDS,
    steps: [
      {
        id: STEP,
        tool: SESSION_TOOL,
        with: {
          prompt: instructions,
          context,
          ...(actions && { actions }),
          ...(maxActions !== undefined && { maxActions }),
          ...(timeoutSeconds !== undefined && { timeoutSeconds }),
        },
      },
    ],
  };
}

/** Checks the instructions like the file of a workflow. A problem names the field of the automation. */
export async function instructedWorkflow(
  expressions: Expressions,
  tenant: string,
  automation: Instructed,
): Promise<{ workflow: PublishedWorkflow } | { problem: string }> {
  const file = fileOf(automation);
  const read = readWorkflow(stringify(file));
  if ('problems' in read) return { problem: read.problems.map(inAutomation).join('\n') };
  const [endless] = await triedWorkflow(expressions, tenant, read.workflow);
  if (endless) return { problem: inAutomation(read.problemAt(endless)) };
  const name = instructedName(automation.name);
  return { workflow: { ...read.workflow, name, source: stringify({ ...file, name }) } };
}

function inAutomation({ path, message }: FileProblem): string {
  const [, field] = /^steps\.0\.with\.(.*)$/.exec(path) ?? [];
  const at = field ?? path;
  return `${at === 'prompt' ? 'instructions' : `session.${at}`}: ${message}`;
}
