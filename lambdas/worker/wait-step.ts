import * as z from 'zod';
import { CountersignError } from '../run/errors.ts';
import { later } from '../run/lease.ts';
import type { Awaited } from '../run/step.ts';

const WAIT_MAX_SECONDS = 30 * 24 * 3600;
const SIGNAL_TIMEOUT_DEFAULT_SECONDS = 24 * 3600;

const Seconds = z.number().positive().max(WAIT_MAX_SECONDS);
const TimeWait = z.union([z.strictObject({ seconds: Seconds }), z.strictObject({ until: z.iso.datetime() })]);
const SignalWait = z.strictObject({
  event: z.string().min(1).max(100),
  timeoutSeconds: Seconds.default(SIGNAL_TIMEOUT_DEFAULT_SECONDS),
});

/** `wait: {seconds | until}` waits for a time, `wait.external: {event, timeoutSeconds}` for a signal until then. */
export function parseWait(tool: 'wait' | 'wait.external', input: unknown, at: string): Awaited {
  if (tool === 'wait') {
    const wait = parse(TimeWait, tool, input);
    return {
      kind: 'time',
      until: 'until' in wait ? new Date(wait.until).toISOString() : later(at, wait.seconds * 1000),
    };
  }
  const { event, timeoutSeconds } = parse(SignalWait, tool, input);
  return { kind: 'signal', event, until: later(at, timeoutSeconds * 1000) };
}

function parse<Schema extends z.ZodType>(schema: Schema, tool: string, input: unknown): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  throw new CountersignError('INPUT_INVALID', `${tool}: ${z.prettifyError(parsed.error)}`);
}
