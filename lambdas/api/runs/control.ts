import * as z from 'zod';
import { json } from '../../entry/http.ts';
import { type Command, controlRun } from '../../run-changes/control-run.ts';
import type { RunChanger } from '../../run-changes/run-changer.ts';
import { mayOrRefuse } from '../authorizer/caller.ts';
import { redriveOutbox } from '../operations/outbox.ts';
import { parseBody } from '../request.ts';
import { byRoute, type Handler, type Handlers } from '../router.ts';
import { runSummary } from './run-views.ts';

const REASON_MAX_CHARACTERS = 500;
const EVENT_MAX_CHARACTERS = 100;

const Reason = z.strictObject({ reason: z.string().max(REASON_MAX_CHARACTERS).optional() });
const Retry = z.strictObject({ step: z.string().optional() });
/** Evidence shows it as it is: letters of an id, and no sentence. */
const EventId = z.string().regex(/^[\w.:/-]{1,200}$/, 'use 1 to 200 letters, digits and . : / _ -');
const Signal = z.strictObject({
  event: z.string().min(1).max(EVENT_MAX_CHARACTERS),
  payload: z.json().default(null),
  id: EventId.optional(),
});

const HANDLERS: Handlers<RunChanger, 'control'> = {
  'POST /api/v1/runs/{id}/cancel': order(Reason, (body) => ({ kind: 'cancel', ...body })),
  'POST /api/v1/runs/{id}/pause': order(Reason, (body) => ({ kind: 'pause', ...body })),
  'POST /api/v1/runs/{id}/resume': order(z.strictObject({}), () => ({ kind: 'resume' })),
  'POST /api/v1/runs/{id}/retry': order(Retry, (body) => ({ kind: 'retry', ...body })),
  'POST /api/v1/runs/{id}/rollback': order(Reason, (body) => ({ kind: 'rollback', ...body })),
  'POST /api/v1/runs/{id}/signal': order(Signal, (body) => ({ kind: 'signal', ...body })),
  'POST /api/v1/outbox/redrive': redriveOutbox,
};

/** What an operator may ask of a run. */
export const handleControl = byRoute(HANDLERS);

function order<Body extends z.ZodType>(
  schema: Body,
  commandOf: (body: z.output<Body>) => Command,
): Handler<RunChanger> {
  return async (mover, caller, event) => {
    mayOrRefuse(caller, 'control', 'change a run');
    const command = commandOf(parseBody(schema, event));
    const { tenant, person } = caller;
    const target = { tenant, runId: event.pathParameters?.id ?? '' };
    const { run } = await controlRun(mover, target, command, person);
    return json(200, runSummary(run));
  };
}
