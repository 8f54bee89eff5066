import * as z from 'zod';
import { ERROR_CODES } from '../../../run/errors.ts';
import { Schedule as ScheduleDefinition } from '../../../schedules/schedule.ts';
import { route } from '../route.ts';
import { json, PageQuery, page, Timestamp } from '../schemas.ts';

const Schedule = z.object({
  name: z.string(),
  description: z.string().optional(),
  enabled: z.boolean(),
  automation: z.string(),
  cron: z.string().optional().meta({ example: '0 9 * * 1-5' }),
  rate: z.string().optional().meta({ example: '15 minutes' }),
  timeZone: z.string().meta({ example: 'Europe/Berlin' }),
  inputs: json<Record<string, unknown>>('Values for the inputs of the workflow').optional(),
  title: z.string().optional(),
  catchUp: z.enum(['skip', 'one', 'all']),
  catchUpMax: z.int(),
  makers: z.array(z.string()).meta({ description: 'Who saved and enabled it: they cannot approve writes of its runs' }),
  nextRuns: z.array(Timestamp).meta({ description: 'The next times; empty while it is disabled' }),
  lastRun: z.object({ slot: Timestamp, runId: z.string() }).nullable(),
  lastError: z
    .object({ slot: Timestamp, at: Timestamp, code: z.enum(ERROR_CODES), message: z.string() })
    .nullable()
    .meta({ description: 'Why the last slot started no run' }),
  missed: z
    .object({ slots: z.int(), lastSlot: Timestamp })
    .nullable()
    .meta({ description: 'Slots that started no run because they were missed' }),
});

const nameParams = z.object({ name: ScheduleDefinition.shape.name });

const toggle = <const Command extends 'enable' | 'disable'>(command: Command, summary: string) =>
  route({
    method: 'POST',
    path: `/api/v1/schedules/{name}/${command}`,
    right: 'schedules:control',
    summary,
    params: nameParams,
    responses: { 200: Schedule },
  });

export const scheduleRoutes = {
  listSchedules: route({
    method: 'GET',
    path: '/api/v1/schedules',
    right: 'automations:read',
    summary: 'Lists schedules with their next times, by name',
    query: PageQuery,
    responses: { 200: page('schedules', Schedule) },
  }),
  getSchedule: route({
    method: 'GET',
    path: '/api/v1/schedules/{name}',
    right: 'automations:read',
    summary: 'Returns a schedule with its next times, its last run and its last error',
    params: nameParams,
    responses: { 200: Schedule },
  }),
  saveSchedule: route({
    method: 'PUT',
    path: '/api/v1/schedules/{name}',
    right: 'automations:write',
    summary: 'Creates or replaces a schedule',
    params: z.object({ name: ScheduleDefinition.shape.name }),
    // The path names the schedule. A name in the body must be the same.
    body: ScheduleDefinition.extend({ name: z.string().optional() }),
    responses: { 200: Schedule },
  }),
  deleteSchedule: route({
    method: 'DELETE',
    path: '/api/v1/schedules/{name}',
    right: 'automations:write',
    summary: 'Deletes a schedule. Its runs stay',
    params: nameParams,
    responses: { 200: z.object({ deleted: z.string() }) },
  }),
  enableSchedule: toggle('enable', 'Enables a schedule, from its next time on'),
  disableSchedule: toggle('disable', 'Disables a schedule. Runs that it started continue'),
};
