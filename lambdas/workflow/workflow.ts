import * as z from 'zod';
import { Caps } from '../run/caps.ts';

const NAME = /^[a-z][a-z0-9-]{0,62}$/;
/** No dashes: in an expression, `steps.add-note` would be a subtraction. */
const STEP_ID = /^[a-z][a-z0-9_]{0,62}$/;
export const STEPS_MAX = 1000;
const DEADLINE_MAX_SECONDS = 30 * 24 * 3600;

/** A condition is one whole expression, written as everywhere else: `{% trigger.priority = "1" %}`. */
export const Expression = z.string().regex(/^\s*\{%[\s\S]*%\}\s*$/, 'write it as one expression: "{% ... %}"');

const Retry = z.strictObject({
  attempts: z.int().min(1).max(20),
  /** The longest wait after each failed attempt, instead of the usual ladder; the last one repeats. */
  backoffSeconds: z.array(z.number().min(0).max(3600)).min(1).max(20).optional(),
});

export const WorkflowStep = z.strictObject({
  id: z.string().regex(STEP_ID, 'use lower-case letters, digits and underscores, starting with a letter'),
  tool: z.string(),
  /** The tool's input; strings may hold `{% expressions %}`. */
  with: z.record(z.string(), z.unknown()).default({}),
  /** An expression; when it is false the step succeeds without running. */
  when: Expression.optional(),
  /** Steps that must have succeeded before; without it, all that stand before this one. */
  needs: z.array(z.string()).optional(),
  retry: Retry.optional(),
  /** `run`: this write happens once per run, even if another run made the identical one. */
  dedupeScope: z.enum(['tenant', 'run']).default('tenant'),
});
export type WorkflowStep = z.infer<typeof WorkflowStep>;

/** A published workflow never changes; a new publication is a new version. */
export const Workflow = z.strictObject({
  name: z.string().regex(NAME, 'use lower-case letters, digits and dashes, starting with a letter'),
  description: z.string().max(500).optional(),
  /** What a step that failed for good does to the run: end it, or pause it for an operator. */
  onFailure: z.enum(['fail', 'pause']).default('fail'),
  /** Runs whose expression gives the same text run one after the other. */
  concurrencyKey: Expression.optional(),
  /** May lower what the tenant allows, never raise it. */
  caps: Caps.optional(),
  deadlineSeconds: z.int().min(1).max(DEADLINE_MAX_SECONDS).optional(),
  steps: z.array(WorkflowStep).min(1).max(STEPS_MAX),
});
export type Workflow = z.infer<typeof Workflow>;
