import * as z from 'zod';
import type { Command } from '../worker/control-run.ts';

const Reason = z.strictObject({ reason: z.string().max(500).optional() });
/** What may be asked of a run, by the last part of its path. */
export const COMMANDS: Record<string, z.ZodType<Command>> = {
  cancel: Reason.transform((body) => ({ kind: 'cancel', ...body })),
  pause: Reason.transform((body) => ({ kind: 'pause', ...body })),
  rollback: Reason.transform((body) => ({ kind: 'rollback', ...body })),
  resume: z.strictObject({}).transform(() => ({ kind: 'resume' })),
  retry: z.strictObject({ step: z.string().optional() }).transform((body) => ({ kind: 'retry', ...body })),
  signal: z
    .strictObject({ event: z.string().min(1).max(100), payload: z.json().optional() })
    .transform(({ event, payload }) => ({ kind: 'signal', event, payload: payload ?? null })),
};

export const CONTROL_COMMANDS = Object.keys(COMMANDS);
