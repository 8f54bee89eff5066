import * as z from 'zod';
import { RISKS } from '../../../lambdas/connectors/connector.ts';
import { GenericSource } from '../../../lambdas/pipeline/generic-source.ts';
import { GATE_REASONS } from '../../../lambdas/run/approval.ts';
import { ERROR_CODES } from '../../../lambdas/run/errors.ts';

const OUTCOMES = ['runs', 'needs_approval', 'denied', 'fails'] as const;
const STEP_OUTCOMES = [...OUTCOMES, 'skipped', 'not_reached'] as const;
const Values = z.record(z.string(), z.unknown());

const ExpectedStep = z.strictObject({
  outcome: z.enum(STEP_OUTCOMES).optional().describe('What happens to the step.'),
  target: z.string().optional().describe('What the step changes or reads.'),
  fields: Values.optional().describe('The values to write. Fields that are not named here are not compared.'),
  after: Values.optional().describe('The values after the write. Fields that are not named here are not compared.'),
  input: z.unknown().optional().describe('The input of a step without a connector.'),
  policies: z
    .array(z.string())
    .optional()
    .describe('Policies that must have determined the decision; others may have too.'),
  asks: z.enum(GATE_REASONS).optional().describe('Why people must approve.'),
  tier: z.enum(RISKS).optional().describe('The tier that approvers need.'),
  quorum: z.int().optional().describe('How many people must approve.'),
  groups: z.array(z.array(z.string())).optional().describe('The groups of the approvers.'),
  error: z.enum(ERROR_CODES).optional().describe('The error of a step that fails.'),
});
export type ExpectedStep = z.infer<typeof ExpectedStep>;

const SOMEBODY = 'somebody';
const source = <Name extends string>(name: Name, means: string) => z.literal(name).describe(means);
const title = z.string().optional().describe('The title of the run.');
const payload = z.json().describe('The body of the webhook.');
const requested = {
  person: z.string().default(SOMEBODY).describe('Who starts the run.'),
  title,
  subject: z.string().optional().describe('What the run is about.'),
};

/** What starts a run. The trigger is made of it as in production. */
const StartingEvent = z.discriminatedUnion('source', [
  z.strictObject({
    source: source('github', 'A webhook of GitHub.'),
    event: z.string().optional().describe('The event, for example `push`. Default: as the payload shows.'),
    payload,
  }),
  z.strictObject({ source: source('servicenow', 'A webhook of the business rule in ServiceNow.'), payload }),
  z.strictObject({
    source: source('generic', 'A webhook of a source of your own.'),
    definition: z
      .union([z.string(), GenericSource])
      .describe('The source: its definition, or the file that `sources save` takes, relative to this file.'),
    payload,
  }),
  z.strictObject({
    source: source('manual', 'A person starts the automation, with the inputs of the case.'),
    ...requested,
  }),
  z.strictObject({
    source: source('api', 'A program starts the workflow, with the inputs of the case.'),
    ...requested,
  }),
  z.strictObject({
    source: source('schedule', 'A schedule, with the inputs of the case.'),
    name: z.string().describe('The name of the schedule.'),
    slot: z.iso.datetime().optional().describe('The time of the slot. Default: the time of the run.'),
    title,
    makers: z.array(z.string()).min(1).default([SOMEBODY]).describe('Who saved and enabled the schedule.'),
  }),
]);

const WorkflowCase = z.strictObject({
  name: z.string().min(1).describe('What the case shows, as a sentence.'),
  event: z
    .union([z.string(), StartingEvent])
    .default({ source: 'manual', person: SOMEBODY })
    .describe(
      'What starts the run: a file with a sample event, relative to this file, or the event itself. Default: a person.',
    ),
  inputs: Values.default({}).describe('Values for the inputs of the workflow.'),
  environment: z.enum(['prod', 'staging', 'dev']).default('dev').describe('The kind of the stage.'),
  at: z.iso.datetime().default('2026-01-07T12:00:00Z').describe('The time of the run. Default: a Wednesday at noon.'),
  targets: z
    .record(
      z.string(),
      z.strictObject({
        before: Values.optional().describe('The current values of what the step changes.'),
        output: z.unknown().optional().describe('The output of the step.'),
      }),
    )
    .default({})
    .describe('By step: what its target says. A test reads no target, so other values are known only after apply.'),
  expect: z
    .strictObject({
      outcome: z.enum(OUTCOMES).optional().describe('The worst outcome of the run.'),
      error: z.enum(ERROR_CODES).optional().describe('The error that prevents the start of the run.'),
      writes: z.int().min(0).optional().describe('How many writes the run makes.'),
      steps: z
        .record(z.string(), z.union([z.enum(STEP_OUTCOMES), ExpectedStep]))
        .default({})
        .describe('By step: its outcome, or more about it.'),
    })
    .describe('What must be true. Only what is named here is compared.'),
});
export type WorkflowCase = z.infer<typeof WorkflowCase>;

/** A file with test cases of one workflow. */
export const WorkflowTest = z.strictObject({
  workflow: z.string().describe('The workflow file, relative to this file.'),
  policies: z
    .string()
    .optional()
    .describe("The folder with the tenant's policies, relative to this file. Default: only the shipped ones apply."),
  cases: z.array(WorkflowCase).min(1).describe('The cases. Each plans one run.'),
});
export type WorkflowTest = z.infer<typeof WorkflowTest>;
