import * as z from 'zod';
import { route } from '../route.ts';
import { JsonValue, runParams } from '../schemas.ts';
import { StartedRun } from './runs.ts';

const TITLE_MAX_CHARACTERS = 300;
export const SUBJECT_MAX_CHARACTERS = 300;

/** What a person or program gives when it starts a run. */
export const given = {
  inputs: z.record(z.string(), JsonValue).optional().meta({ description: 'Values for the inputs of the workflow' }),
  title: z
    .string()
    .trim()
    .min(1)
    .max(TITLE_MAX_CHARACTERS)
    .optional()
    .meta({ description: 'Shown in lists and on the page of the run' }),
  subject: z
    .string()
    .trim()
    .min(1)
    .max(SUBJECT_MAX_CHARACTERS)
    .optional()
    .meta({ description: 'What the run is about', example: 'servicenow:acme:INC0012345' }),
};

const StartBody = z.strictObject({
  workflow: z.strictObject({ name: z.string().max(63), version: z.int().positive().optional() }).meta({
    description:
      'A published workflow; without a version, the newest. An older one only if an enabled automation runs it',
  }),
  automation: z.string().optional().meta({
    description: 'An automation of this workflow, in whose name the run acts. By default, the name of the workflow',
  }),
  ...given,
});
export type StartBody = z.infer<typeof StartBody>;

/** 201 for a run that this request started; 200 with the same body if the request was sent before with the same key. */
const started = { 200: StartedRun, 201: StartedRun };

export const startRoutes = {
  startRun: route({
    method: 'POST',
    path: '/api/v1/runs',
    right: 'runs:start',
    summary: 'Starts a run of a workflow. With an Idempotency-Key, the same request again starts nothing',
    idempotent: true,
    body: StartBody,
    responses: started,
  }),
  runAutomation: route({
    method: 'POST',
    path: '/api/v1/automations/{name}/run',
    right: 'runs:start',
    summary: 'Starts a run of an automation, as if its event had happened',
    idempotent: true,
    params: z.object({ name: z.string() }),
    body: z.strictObject(given),
    responses: started,
  }),
  rerunRun: route({
    method: 'POST',
    path: '/api/v1/runs/{id}/rerun',
    right: 'runs:start',
    summary: 'Starts a new run with the trigger of a run that has ended',
    idempotent: true,
    params: runParams,
    body: z.strictObject({
      workflowVersion: z
        .enum(['same', 'newest'])
        .default('same')
        .meta({ description: 'The version of the original run, or the newest version of its workflow' }),
    }),
    responses: started,
  }),
  replayRun: route({
    method: 'POST',
    path: '/api/v1/runs/{id}/replay',
    right: 'runs:start',
    summary: 'Repeats a run that has ended from one step on. Earlier steps keep their outputs; no write is made twice',
    idempotent: true,
    params: runParams,
    body: z.strictObject({
      step: z
        .string()
        .optional()
        .meta({ description: 'The first step to repeat. By default, the first that did not succeed, else the first' }),
    }),
    responses: started,
  }),
};
