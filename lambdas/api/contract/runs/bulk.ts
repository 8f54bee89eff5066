import * as z from 'zod';
import { route } from '../route.ts';
import { Timestamp } from '../schemas.ts';
import { RunCounts, RunSummary, runFilterFields } from './runs.ts';

const BULK_ACTIONS = ['cancel', 'retry', 'rerun', 'resolve'] as const;
export type BulkAction = (typeof BULK_ACTIONS)[number];

const Preview = z.strictObject({
  action: z.enum(BULK_ACTIONS),
  filter: z.strictObject(runFilterFields).meta({ description: 'The query fields of GET /api/v1/runs; at least one' }),
  options: z
    .record(z.string(), z.json())
    .default({})
    .meta({ description: 'The body that the route of the action takes for one run, e.g. `reason`' }),
});
const Execution = z.strictObject({ token: z.string().meta({ description: 'From the preview' }) });

const Outcome = z.enum(['done', 'refused', 'failed']);
const Result = z.object({ runId: z.string(), outcome: Outcome, reason: z.string().optional() });

const progress = {
  jobId: z.string(),
  action: z.enum(BULK_ACTIONS),
  total: z.int(),
  processed: z.int(),
  counts: z.object({ done: z.int(), refused: z.int(), failed: z.int() }),
  finished: z.boolean(),
};

const Previewed = z.object({
  kind: z.literal('preview'),
  ...progress,
  byStatus: RunCounts.shape.byStatus,
  sample: z.array(RunSummary).meta({ description: 'The newest of the matched runs' }),
  leftOut: z.int().meta({ description: 'Runs that match the filter and cannot take the action in their status' }),
  complete: z.boolean().meta({ description: 'False: more runs match than one job takes, or could be searched' }),
  searchedBackTo: Timestamp.optional(),
  token: z.string().meta({ description: 'Send it to act on exactly these runs' }),
});
const Executed = z.object({
  kind: z.literal('execution'),
  ...progress,
  results: z.array(Result).meta({ description: 'Of this request; the next request continues' }),
  token: z.string(),
});

export const bulkRoutes = {
  actOnRuns: route({
    method: 'POST',
    path: '/api/v1/runs/bulk',
    right: 'runs:control',
    summary:
      'Acts on many runs. Without a token: a preview with a token. With the token: acts on the next of these runs; repeat it until `finished`',
    body: z.union([Preview, Execution]),
    responses: { 200: z.discriminatedUnion('kind', [Previewed, Executed]) },
  }),
  getBulkJob: route({
    method: 'GET',
    path: '/api/v1/runs/bulk/{job}',
    right: 'runs:control',
    summary: 'Returns the progress of a bulk action and every run that was not changed, with the reason',
    params: z.object({ job: z.string() }),
    responses: {
      200: z.object({
        ...progress,
        requestedBy: z.string(),
        createdAt: Timestamp,
        notChanged: z.array(Result),
        token: z.string().nullable().meta({ description: 'To continue; null for everybody but the requester' }),
      }),
    },
  }),
};
