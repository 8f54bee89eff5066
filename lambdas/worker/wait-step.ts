import type * as z from 'zod';
import { CountersignError } from '../run/errors.ts';
import { inputFlaws } from '../run/input-flaws.ts';
import { later } from '../run/lease.ts';
import type { Awaited } from '../run/step.ts';
import { SignalWait, TimeWait } from '../workflow/inner-tools.ts';

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
  throw new CountersignError('INPUT_INVALID', `${tool}: ${inputFlaws(parsed.error)}`);
}
