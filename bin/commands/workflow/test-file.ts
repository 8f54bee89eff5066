import * as z from 'zod';
import { RISKS } from '../../../lambdas/connectors/connector.ts';
import { GATE_REASONS } from '../../../lambdas/run/approval.ts';
import { ERROR_CODES } from '../../../lambdas/run/errors.ts';

const OUTCOMES = ['runs', 'needs_approval', 'denied', 'fails'] as const;
const Values = z.record(z.string(), z.unknown());

const ExpectedStep = z.strictObject({
  outcome: z.enum([...OUTCOMES, 'skipped', 'not_reached']).optional(),
  target: z.string().optional(),
  /** The values to write. Fields that are not named here are not compared. */
  fields: Values.optional(),
  /** The values after the write. */
  after: Values.optional(),
  /** The input of a step without a connector. */
  input: z.unknown().optional(),
  /** Policies that must have determined the decision; others may have too. */
  policies: z.array(z.string()).optional(),
  asks: z.enum(GATE_REASONS).optional(),
  tier: z.enum(RISKS).optional(),
  quorum: z.int().optional(),
  groups: z.array(z.array(z.string())).optional(),
  error: z.enum(ERROR_CODES).optional(),
});
export type ExpectedStep = z.infer<typeof ExpectedStep>;

const WorkflowCase = z.strictObject({
  name: z.string().min(1),
  /** A file with a sample event, relative to this file, or the event itself. Without one, a person starts the run. */
  event: z
    .union([
      z.string(),
      z.strictObject({ source: z.enum(['github', 'servicenow']), event: z.string().optional(), payload: z.json() }),
    ])
    .optional(),
  inputs: Values.default({}),
  environment: z.enum(['prod', 'staging', 'dev']).default('dev'),
  /** The time of the run; by default a Wednesday at noon. */
  at: z.iso.datetime().default('2026-01-07T12:00:00Z'),
  /** By step: what its target says. A test reads no target, so other values are known only after apply. */
  targets: z
    .record(z.string(), z.strictObject({ before: Values.optional(), output: z.unknown().optional() }))
    .default({}),
  expect: z.strictObject({
    outcome: z.enum(OUTCOMES).optional(),
    /** The error that prevents the start of the run. */
    error: z.enum(ERROR_CODES).optional(),
    writes: z.int().min(0).optional(),
    steps: z.record(z.string(), z.union([z.enum([...OUTCOMES, 'skipped', 'not_reached']), ExpectedStep])).default({}),
  }),
});
export type WorkflowCase = z.infer<typeof WorkflowCase>;

/** A file with test cases of one workflow. */
export const WorkflowTest = z.strictObject({
  /** The workflow file, relative to this file. */
  workflow: z.string(),
  /** The folder with the tenant's policies, relative to this file; by default only the shipped ones apply. */
  policies: z.string().optional(),
  cases: z.array(WorkflowCase).min(1),
});
export type WorkflowTest = z.infer<typeof WorkflowTest>;
