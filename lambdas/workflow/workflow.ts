import * as z from 'zod';
import { RISKS } from '../connectors/connector.ts';
import { GroupSets } from '../policy/approval-requirement.ts';
import { QUORUM_MAX_PEOPLE } from '../policy/policy.ts';
import { Caps } from '../run/settings/caps.ts';
import { VALIDATION_MODES } from '../run/validation-mode.ts';
import { ONE_EXPRESSION } from './expressions/template.ts';
import { WorkflowInputs } from './inputs.ts';
import type { DerivedTarget } from './model-flow.ts';
import type { StepScope } from './step-scope.ts';

const NAME = /^[a-z][a-z0-9-]{0,62}$/;
const MESSAGE_MAX_CHARACTERS = 2_000;
/** No dashes: in an expression, `steps.add-note` is a subtraction. */
const STEP_ID = /^[a-z][a-z0-9_]{0,62}$/;
const PHASES = ['prechecks', 'main', 'postchecks'] as const;
export const STEPS_MAX = 1000;
/** The tool of a step that runs another workflow. */
export const CALL = 'workflow.call';
export const CALLS_DEEP_MAX = 5;
const OUTPUT_NAME = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;
export const NEEDS_MAX = 100;
const DEADLINE_MAX_SECONDS = 30 * 24 * 3600;

const AS_ONE = 'must be one expression: "{% ... %}"';
export const Expression = z.string(AS_ONE).regex(ONE_EXPRESSION, AS_ONE);

const Retry = z.strictObject({
  attempts: z.int().min(1).max(20).describe('How often the step is tried in all.'),
  backoffSeconds: z
    .array(z.number().min(0).max(3600))
    .min(1)
    .max(20)
    .optional()
    .describe('The maximum wait after each failed attempt, in seconds. The last value repeats.'),
});

/** No value of a run may choose who approves. */
const NO_EXPRESSION = 'must be constant, not an expression';

const Approvers = z.strictObject({
  groups: GroupSets.refine((sets) => !sets.flat().some((group) => group.includes('{%')), NO_EXPRESSION)
    .default([])
    .describe('`[a, b]`: members of a or b. `[[a], [b]]`: members of both.'),
  quorum: z.int().min(1).max(QUORUM_MAX_PEOPLE).default(1).describe('How many people must approve.'),
  tier: z.enum(RISKS).optional().describe('The tier that approvers need. Default: the risk of the write.'),
});

/** A longer list fails the step: nothing is written for a part of a list. */
const FOR_EACH_MAX = 100;

const ForEach = z.strictObject({
  items: Expression.describe('The list. Expressions of the step see `item` and `index`, which counts from 0.'),
  max: z
    .int()
    .min(1)
    .max(FOR_EACH_MAX)
    .describe('The longest list. A longer one fails the step, and nothing is written.'),
});

export const WorkflowStep = z.strictObject({
  id: z
    .string()
    .regex(STEP_ID, 'use lower-case letters, digits and underscores; start with a letter')
    .refine((id) => !id.startsWith('undo_'), 'the prefix undo_ is reserved for undo steps; choose another id')
    .describe('The name of the step. Later steps read its output as `steps.ID.output`.'),
  tool: z.string().describe('What the step does. `countersign tools` lists all tools.'),
  with: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('The input of the tool. Texts may contain `{% expressions %}`.'),
  forEach: ForEach.optional().describe(
    'Runs the step once for each item of a list, one after another. The output is the list of outputs.',
  ),
  when: Expression.optional().describe('If this is not true, the step is skipped; with `forEach`, for this item.'),
  needs: z
    .array(z.string())
    .max(NEEDS_MAX)
    .optional()
    .describe('Steps that must succeed first. Default: all earlier steps.'),
  retry: Retry.optional().describe(
    'How often the step is tried if the target fails, and how long it waits in between.',
  ),
  risk: z.enum(RISKS).optional().describe('Increases the risk of the tool. A lower value has no effect.'),
  blastRadius: z.enum(RISKS).optional().describe("How much a mistake would affect. Default: the workflow's."),
  critical: z.boolean().default(false).describe('Requires approval in the validation mode `critical_only`.'),
  phase: z
    .enum(PHASES)
    .default('main')
    .describe('The part of the run. In the mode `per_phase`, one approval covers a phase.'),
  confidence: Expression.optional().describe('A value from 0 to 1, which `autoApproveThreshold` is compared with.'),
  autoApproveThreshold: z
    .number()
    .min(0)
    .max(1)
    .optional()
    .describe("From this confidence on, the validation mode requires no approval. Overrides the workflow's."),
  approvers: Approvers.optional().describe('Who must approve, in addition to what policy requires.'),
  message: z
    .string()
    .max(MESSAGE_MAX_CHARACTERS)
    .optional()
    .describe('Shown to approvers. May contain `{% expressions %}`.'),
  rollback: z
    .enum(['none', 'auto'])
    .default('none')
    .describe('`auto`: if this step fails permanently, the run undoes its writes.'),
  dedupeScope: z
    .enum(['tenant', 'run'])
    .default('tenant')
    .describe('`run`: write even if another run already made the identical write.'),
});
export type WorkflowStep = z.infer<typeof WorkflowStep> & {
  /** Of a step that belongs to a loop or a call. */
  scope?: StepScope;
  /** Of the only step of an action (action-workflow.ts): its input is data, not a template. */
  action?: { input: unknown; derived: DerivedTarget[] };
};

/** Adds gates to the policy decision, and never removes one; see ARCHITECTURE, "Approvals". */
const Validation = z
  .strictObject({
    mode: z.enum(VALIDATION_MODES).describe('Which writes people must approve even if policy allows them.'),
    autoApproveThreshold: z
      .number()
      .min(0)
      .max(1)
      .optional()
      .describe('From this confidence on, the mode requires no approval, except in prod and for high blast radius.'),
  })
  .refine(({ mode, autoApproveThreshold }) => mode !== 'critical_only' || autoApproveThreshold !== undefined, {
    path: ['autoApproveThreshold'],
    message: 'is required for critical_only: the confidence from which other steps need no approval',
  });

const Approvals = z.strictObject({
  channel: z
    .string()
    .min(1)
    .max(80)
    .optional()
    .describe("The Slack channel for approvals. Default: the tenant's `approvalsChannel`."),
  slaSeconds: z
    .int()
    .min(10)
    .max(7 * 24 * 3600)
    .optional()
    .describe('After this time without a decision, the approval is overdue and further people are asked.'),
  expiresSeconds: z
    .int()
    .min(20)
    .max(30 * 24 * 3600)
    .optional()
    .describe('After this time without a decision, the approval expires and the step fails.'),
});

/** A published version never changes. */
export const Workflow = z.strictObject({
  name: z
    .string()
    .regex(NAME, 'use lower-case letters, digits and dashes; start with a letter')
    .describe('The name of the workflow. Publishing the same name again makes a new version.'),
  description: z.string().max(500).optional().describe('What the workflow is for.'),
  inputs: WorkflowInputs.optional().describe('What it takes when it starts, by name: `inputs.NAME` in expressions.'),
  onFailure: z
    .enum(['fail', 'pause', 'rollback'])
    .default('fail')
    .describe('If a step fails permanently: end the run, pause it for an operator, or undo its writes.'),
  onReject: z
    .enum(['fail', 'pause'])
    .default('fail')
    .describe('If an approval is rejected: end the run, or pause it for an operator.'),
  blastRadius: z.enum(RISKS).default('low').describe('How much a mistake of this workflow would affect.'),
  validation: Validation.optional().describe('Adds approvals to those that policy requires. It never removes one.'),
  approvals: Approvals.default({}).describe('Where approvals are requested, and how long they stay open.'),
  onDrift: z
    .enum(['write', 'refuse'])
    .default('write')
    .describe('`refuse`: do not write if the target has changed since the approvers saw it.'),
  concurrencyKey: Expression.optional().describe('Runs with the same value run one after another.'),
  caps: Caps.optional().describe("Limits of this workflow. They may only lower the tenant's limits."),
  deadlineSeconds: z
    .int()
    .min(1)
    .max(DEADLINE_MAX_SECONDS)
    .optional()
    .describe('The longest time that a run may take.'),
  steps: z
    .array(WorkflowStep)
    .min(1)
    .max(STEPS_MAX)
    .describe('What a run does, in this order unless `needs` says otherwise.'),
  outputs: z
    .record(z.string().regex(OUTPUT_NAME, 'use letters, digits and underscores'), z.unknown())
    .optional()
    .describe('The output of a step that calls this workflow. May contain `{% expressions %}`.'),
});

/** In a workflow that runs, the steps of loops and calls are expanded (expand-workflow.ts). */
export type Workflow = Omit<z.infer<typeof Workflow>, 'steps' | 'validation'> & {
  steps: WorkflowStep[];
  calls?: CalledWorkflow[];
  /** `isRequested`: who started the run asked for the mode, and the workflow itself has none. */
  validation?: z.infer<typeof Validation> & { isRequested?: true };
};

/** A version whose steps are part of a workflow, directly (depth 1) or through another call. */
export interface CalledWorkflow {
  name: string;
  version: number;
  author?: string;
  depth: number;
}

export interface PublishedWorkflow extends Workflow {
  /** A maker of every write of the workflow, like the authors of the workflows that it calls. */
  author?: string;
  publishedAt?: string;
  /** The file, as its author wrote it. Older versions do not have it. */
  source?: string;
}
