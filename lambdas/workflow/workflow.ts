import * as z from 'zod';
import { RISKS } from '../connectors/connector.ts';
import { Caps } from '../run/caps.ts';
import { ONE_EXPRESSION } from './expressions/template.ts';

const NAME = /^[a-z][a-z0-9-]{0,62}$/;
/** No dashes: in an expression, `steps.add-note` would be a subtraction. */
const MESSAGE_MAX_CHARACTERS = 2_000;
const STEP_ID = /^[a-z][a-z0-9_]{0,62}$/;
export const PHASES = ['prechecks', 'main', 'postchecks'] as const;
export const VALIDATION_MODES = ['per_step', 'per_phase', 'critical_only', 'final_only'] as const;
export type ValidationMode = (typeof VALIDATION_MODES)[number];
export const STEPS_MAX = 1000;
/** What a step may need by name; without `needs` it needs all before it. */
export const NEEDS_MAX = 100;
const DEADLINE_MAX_SECONDS = 30 * 24 * 3600;

/** A condition is one whole expression, written as everywhere else: `{% trigger.priority = "1" %}`. */
const AS_ONE = 'write it as one expression: "{% ... %}"';
export const Expression = z.string(AS_ONE).regex(ONE_EXPRESSION, AS_ONE);

const Retry = z.strictObject({
  attempts: z.int().min(1).max(20),
  /** The longest wait after each failed attempt, instead of the usual ladder; the last one repeats. */
  backoffSeconds: z.array(z.number().min(0).max(3600)).min(1).max(20).optional(),
});

export const WorkflowStep = z.strictObject({
  id: z
    .string()
    .regex(STEP_ID, 'use lower-case letters, digits and underscores, starting with a letter')
    .refine((id) => !id.startsWith('undo_'), 'what takes a step back is called undo_ and its name; choose another'),
  tool: z.string(),
  /** The tool's input; strings may hold `{% expressions %}`. */
  with: z.record(z.string(), z.unknown()).default({}),
  /** An expression; when it is false the step succeeds without running. */
  when: Expression.optional(),
  /** Steps that must have succeeded before; without it, all that stand before this one. */
  needs: z.array(z.string()).max(NEEDS_MAX).optional(),
  retry: Retry.optional(),
  /** What it puts at risk, if that is more than the tool itself says. */
  risk: z.enum(RISKS).optional(),
  /** How much would be hit if it went wrong; without it, the workflow's. */
  blastRadius: z.enum(RISKS).optional(),
  /** Gated in the validation mode `critical_only`. */
  critical: z.boolean().default(false),
  phase: z.enum(PHASES).default('main'),
  /** An expression that gives 0 to 1: how sure the run is of this step. */
  confidence: Expression.optional(),
  /** The confidence at which a gate of the validation mode opens by itself for this step, instead of the workflow's. */
  autoApproveThreshold: z.number().min(0).max(1).optional(),
  /** What approvers should read of it, in words they know; may hold `{% expressions %}`. */
  message: z.string().max(MESSAGE_MAX_CHARACTERS).optional(),
  /** `auto`: when this step fails for good, the run takes back what it wrote before. */
  rollback: z.enum(['none', 'auto']).default('none'),
  /** `run`: this write happens once per run, even if another run made the identical one. */
  dedupeScope: z.enum(['tenant', 'run']).default('tenant'),
});
export type WorkflowStep = z.infer<typeof WorkflowStep>;

/** Gates on top of what policy decides; see ARCHITECTURE, "Approvals". A mode adds gates, it never removes one. */
const Validation = z
  .strictObject({
    mode: z.enum(VALIDATION_MODES),
    /** At this confidence a gate that only the mode asks for opens by itself, outside prod and for a small blast radius. */
    autoApproveThreshold: z.number().min(0).max(1).optional(),
  })
  .refine(({ mode, autoApproveThreshold }) => mode !== 'critical_only' || autoApproveThreshold !== undefined, {
    path: ['autoApproveThreshold'],
    message: 'critical_only lets other steps pass at this confidence; say which',
  });

/** Whom to ask and how long to wait for them. */
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

/** A published workflow never changes; a new publication is a new version. */
export const Workflow = z.strictObject({
  name: z.string().regex(NAME, 'use lower-case letters, digits and dashes, starting with a letter'),
  description: z.string().max(500).optional(),
  /** What a step that failed for good does to the run: end it, pause it for an operator, or take back what it wrote. */
  onFailure: z.enum(['fail', 'pause', 'rollback']).default('fail'),
  /** What a rejected approval does to the run. */
  onReject: z.enum(['fail', 'pause']).default('fail'),
  blastRadius: z.enum(RISKS).default('low'),
  validation: Validation.optional(),
  approvals: Approvals.default({}),
  /** `refuse`: what was approved is not written if its target is no longer as the approvers were shown it. */
  onDrift: z.enum(['write', 'refuse']).default('write'),
  /** Runs whose expression gives the same text run one after the other. */
  concurrencyKey: Expression.optional(),
  /** May lower what the tenant allows, never raise it. */
  caps: Caps.optional(),
  deadlineSeconds: z.int().min(1).max(DEADLINE_MAX_SECONDS).optional(),
  steps: z.array(WorkflowStep).min(1).max(STEPS_MAX),
});
export type Workflow = z.infer<typeof Workflow>;

/** With the person who published it, one of the makers of whatever it writes, and when. */
export type PublishedWorkflow = Workflow & { author?: string; publishedAt?: string };
