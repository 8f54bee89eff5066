import * as z from 'zod';
import { RISKS } from '../connectors/connector.ts';
import { GroupSets } from '../policy/approval-requirement.ts';
import { QUORUM_MAX_PEOPLE } from '../policy/policy.ts';
import { Caps } from '../run/caps.ts';
import { ONE_EXPRESSION } from './expressions/template.ts';
import { WorkflowInputs } from './inputs.ts';
import type { StepScope } from './step-scope.ts';

const NAME = /^[a-z][a-z0-9-]{0,62}$/;
const MESSAGE_MAX_CHARACTERS = 2_000;
/** No dashes: in an expression, `steps.add-note` is a subtraction. */
const STEP_ID = /^[a-z][a-z0-9_]{0,62}$/;
export const PHASES = ['prechecks', 'main', 'postchecks'] as const;
export const VALIDATION_MODES = ['per_step', 'per_phase', 'critical_only', 'final_only'] as const;
export type ValidationMode = (typeof VALIDATION_MODES)[number];
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
  attempts: z.int().min(1).max(20),
  /** The maximum wait after each failed attempt; the last value repeats. */
  backoffSeconds: z.array(z.number().min(0).max(3600)).min(1).max(20).optional(),
});

/** No value of a run may choose who approves. */
const NO_EXPRESSION = 'must be constant, not an expression';

const Approvers = z.strictObject({
  /** `[a, b]`: members of a or b. `[[a], [b]]`: members of both. */
  groups: GroupSets.refine((sets) => !sets.flat().some((group) => group.includes('{%')), NO_EXPRESSION).default([]),
  quorum: z.int().min(1).max(QUORUM_MAX_PEOPLE).default(1),
  /** Default: the risk of the write. */
  tier: z.enum(RISKS).optional(),
});

/** A longer list fails the step: nothing is written for a part of a list. */
export const FOR_EACH_MAX = 100;

const ForEach = z.strictObject({
  /** The list. Expressions of the step see `item` and `index`, which counts from 0. */
  items: Expression,
  max: z.int().min(1).max(FOR_EACH_MAX),
});

export const WorkflowStep = z.strictObject({
  id: z
    .string()
    .regex(STEP_ID, 'use lower-case letters, digits and underscores; start with a letter')
    .refine((id) => !id.startsWith('undo_'), 'the prefix undo_ is reserved for undo steps; choose another id'),
  tool: z.string(),
  /** The tool's input. Strings may contain `{% expressions %}`. */
  with: z.record(z.string(), z.unknown()).default({}),
  /** Runs the step once for each item of a list, one after another. The output is the list of outputs. */
  forEach: ForEach.optional(),
  /** If this is false, the step is skipped; with `forEach`, for this item. */
  when: Expression.optional(),
  /** Steps that must succeed first; default: all earlier steps. */
  needs: z.array(z.string()).max(NEEDS_MAX).optional(),
  retry: Retry.optional(),
  /** Increases the risk of the tool. */
  risk: z.enum(RISKS).optional(),
  /** How much a mistake would affect; default: the workflow's. */
  blastRadius: z.enum(RISKS).optional(),
  /** Requires approval in the validation mode `critical_only`. */
  critical: z.boolean().default(false),
  phase: z.enum(PHASES).default('main'),
  /** An expression with a value from 0 to 1. */
  confidence: Expression.optional(),
  /** From this confidence on, the validation mode requires no approval; overrides the workflow's. */
  autoApproveThreshold: z.number().min(0).max(1).optional(),
  /** Who must approve, in addition to what policy requires. */
  approvers: Approvers.optional(),
  /** Shown to approvers; may contain `{% expressions %}`. */
  message: z.string().max(MESSAGE_MAX_CHARACTERS).optional(),
  /** `auto`: if this step fails permanently, the run undoes its writes. */
  rollback: z.enum(['none', 'auto']).default('none'),
  /** `run`: write even if another run already made the identical write. */
  dedupeScope: z.enum(['tenant', 'run']).default('tenant'),
});
export type WorkflowStep = z.infer<typeof WorkflowStep> & {
  /** Of a step that belongs to a loop or a call. */
  scope?: StepScope;
};

/** Adds gates to the policy decision, and never removes one; see ARCHITECTURE, "Approvals". */
const Validation = z
  .strictObject({
    mode: z.enum(VALIDATION_MODES),
    /** From this confidence on, the mode requires no approval, except in prod and for high blast radius. */
    autoApproveThreshold: z.number().min(0).max(1).optional(),
  })
  .refine(({ mode, autoApproveThreshold }) => mode !== 'critical_only' || autoApproveThreshold !== undefined, {
    path: ['autoApproveThreshold'],
    message: 'is required for critical_only: the confidence from which other steps need no approval',
  });

const Approvals = z.strictObject({
  channel: z.string().min(1).max(80).optional(),
  slaSeconds: z
    .int()
    .min(10)
    .max(7 * 24 * 3600)
    .optional(),
  expiresSeconds: z
    .int()
    .min(20)
    .max(30 * 24 * 3600)
    .optional(),
});

/** A published version never changes. */
export const Workflow = z.strictObject({
  name: z.string().regex(NAME, 'use lower-case letters, digits and dashes; start with a letter'),
  description: z.string().max(500).optional(),
  /** What it takes when it starts; `inputs.name` in expressions. */
  inputs: WorkflowInputs.optional(),
  /** If a step fails permanently: end the run, pause it for an operator, or undo its writes. */
  onFailure: z.enum(['fail', 'pause', 'rollback']).default('fail'),
  /** If an approval is rejected. */
  onReject: z.enum(['fail', 'pause']).default('fail'),
  blastRadius: z.enum(RISKS).default('low'),
  validation: Validation.optional(),
  approvals: Approvals.default({}),
  /** `refuse`: do not write if the target has changed since the approvers saw it. */
  onDrift: z.enum(['write', 'refuse']).default('write'),
  /** Runs with the same value run one after another. */
  concurrencyKey: Expression.optional(),
  /** May only lower the tenant's limits. */
  caps: Caps.optional(),
  deadlineSeconds: z.int().min(1).max(DEADLINE_MAX_SECONDS).optional(),
  steps: z.array(WorkflowStep).min(1).max(STEPS_MAX),
  /** The output of a step that calls this workflow; may contain `{% expressions %}`. */
  outputs: z.record(z.string().regex(OUTPUT_NAME, 'use letters, digits and underscores'), z.unknown()).optional(),
});

/** In a workflow that runs, the steps of loops and calls are expanded (expand-workflow.ts). */
export type Workflow = Omit<z.infer<typeof Workflow>, 'steps'> & { steps: WorkflowStep[]; calls?: CalledWorkflow[] };

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
