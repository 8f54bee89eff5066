import * as z from 'zod';
import type { Right } from '../../../people/rights.ts';
import { RESOLVED_AS, WRITE_FINDINGS } from '../../../run/run.ts';
import { route } from '../route.ts';
import { JsonValue, runParams, Timestamp } from '../schemas.ts';
import { RunSummary } from './runs.ts';

const REASON_MAX_CHARACTERS = 500;
const EVENT_MAX_CHARACTERS = 100;
const Reason = z.strictObject({ reason: z.string().max(REASON_MAX_CHARACTERS).optional() });
/** Evidence shows it unchanged, so it must look like an ID and cannot be a sentence. */
const EventId = z.string().regex(/^[\w.:/-]{1,200}$/, 'use 1 to 200 letters, digits and . : / _ -');

const runCommand = <const Command extends string, Body extends z.ZodType>(
  command: Command,
  summary: string,
  body: Body,
  example?: unknown,
) =>
  route({
    method: 'POST',
    path: `/api/v1/runs/{id}/${command}`,
    right: 'runs:control',
    summary,
    params: runParams,
    body,
    ...(example !== undefined && { example }),
    responses: { 200: RunSummary },
  });

export const controlRoutes = {
  cancelRun: runCommand('cancel', 'Cancels a run', Reason),
  pauseRun: runCommand('pause', 'Pauses a run', Reason),
  resumeRun: runCommand('resume', 'Resumes a paused run', z.strictObject({})),
  retryRun: runCommand('retry', 'Retries a failed step of a run', z.strictObject({ step: z.string().optional() })),
  cancelSession: runCommand(
    'cancel-session',
    'Cancels the session of a step. The step fails, and `onFailure` of the workflow says how the run continues',
    Reason.extend({
      step: z.string().optional().meta({ description: 'ID of the step, if several have an open session' }),
    }),
  ),
  rollBackRun: runCommand(
    'rollback',
    'Undoes the writes of a run; of an ended run by another run, which `rolledBackBy` names',
    Reason,
  ),
  signalRun: runCommand(
    'signal',
    'Sends a signal to a step that waits for one',
    z.strictObject({
      event: z.string().min(1).max(EVENT_MAX_CHARACTERS),
      payload: JsonValue.default(null),
      id: EventId.optional(),
    }),
    { event: 'deploy.finished', payload: { version: '1.4.2' }, id: 'deploy-731' },
  ),
};

const personCommand = <const Command extends string, const Needed extends Right, Body extends z.ZodType>(
  command: Command,
  right: Needed,
  summary: string,
  body: Body,
) => route({ ...runCommand(command, summary, body), right, peopleOnly: true });

const Notified = z.discriminatedUnion('type', [
  z.object({ type: z.literal('slack_channel'), channel: z.string() }),
  z.object({ type: z.literal('slack_dm_user'), person: z.string() }),
  z.object({ type: z.literal('slack_thread'), channel: z.string(), threadTs: z.string() }),
]);

const Subscription = z.object({
  to: Notified,
  notifiedAt: Timestamp.nullable().meta({ description: 'When the message was posted' }),
  skipped: z.string().nullable().meta({ description: 'Why none is posted: there is no such channel or person' }),
});

export const subscriptionRoutes = {
  subscribeRun: route({
    method: 'POST',
    path: '/api/v1/runs/{id}/subscriptions',
    right: 'runs:subscribe',
    summary: 'Notifies you, or a Slack channel, of the end of a run, once',
    params: runParams,
    body: z.strictObject({
      channel: z
        .string()
        .min(1)
        .max(80)
        .optional()
        .meta({ description: 'A Slack channel; operators may name one. Without it, you get a direct message' }),
    }),
    responses: { 200: z.object({ runId: z.string(), subscriptions: z.array(Subscription) }) },
  }),
  listSubscriptions: route({
    method: 'GET',
    path: '/api/v1/runs/{id}/subscriptions',
    right: 'runs:read',
    summary: 'Lists who is notified of the end of a run: at most 50',
    params: runParams,
    responses: { 200: z.object({ runId: z.string(), subscriptions: z.array(Subscription) }) },
  }),
};

/** What people record about a run, also after it has ended. */
export const caseRoutes = {
  assignRun: personCommand(
    'assign',
    'runs:assign',
    'Assigns a run to a person, by default to you; 409 if another person has it',
    z.strictObject({ assignee: z.string().min(1).optional().meta({ description: 'ID of the person' }) }),
  ),
  releaseRun: personCommand(
    'release',
    'runs:assign',
    'Releases a run, so that another person can take it',
    z.strictObject({}),
  ),
  resolveRun: personCommand(
    'resolve',
    'runs:resolve',
    'Records the result of a run that ended without success, and whether each unknown write was made',
    z.strictObject({
      outcome: z.enum(RESOLVED_AS),
      reason: z.string().trim().min(1, 'give a reason').max(REASON_MAX_CHARACTERS),
      writes: z
        .record(z.string(), z.enum(WRITE_FINDINGS))
        .default({})
        .meta({ description: 'By step, for each write of unknown outcome' }),
    }),
  ),
  acceptBrokenRules: personCommand(
    'accept-broken-rules',
    'evidence:accept-broken-rules',
    'Accepts that an ended run broke rules, so that its evidence is sealed as such',
    z.strictObject({
      rules: z
        .array(z.int().min(1))
        .min(1, 'name at least one rule')
        .max(100)
        .meta({ description: 'The numbers of the rules that the log of the sealer names' }),
      reason: z.string().trim().min(1, 'give a reason').max(REASON_MAX_CHARACTERS),
    }),
  ),
};
