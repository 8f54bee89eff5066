import * as z from 'zod';
import { RISKS } from '../connectors/connector.ts';

const WAIT_MAX_SECONDS = 30 * 24 * 3600;
const SIGNAL_TIMEOUT_DEFAULT_SECONDS = 24 * 3600;
const GATE_MESSAGE_MAX_CHARACTERS = 2000;
const GATE_QUORUM_MAX = 10;

const Seconds = z.number().positive().max(WAIT_MAX_SECONDS);

/** `wait: {seconds | until}` waits for a time. */
export const TimeWait = z.union([z.strictObject({ seconds: Seconds }), z.strictObject({ until: z.iso.datetime() })]);

/** `wait.external: {event, timeoutSeconds}` waits for a signal until then. */
export const SignalWait = z.strictObject({
  event: z.string().min(1).max(100),
  timeoutSeconds: Seconds.default(SIGNAL_TIMEOUT_DEFAULT_SECONDS),
});

/** `approval: {message, tier, quorum, groups}`: a gate the workflow itself asks for, whatever comes after it. */
export const GateInput = z.strictObject({
  message: z.string().max(GATE_MESSAGE_MAX_CHARACTERS).optional(),
  tier: z.enum(RISKS).default('medium'),
  quorum: z.int().min(1).max(GATE_QUORUM_MAX).default(1),
  groups: z.array(z.string()).default([]),
});

/** What the tools that reach nothing outside take in `with`; `transform` takes anything. */
export const INNER_TOOL_INPUTS: Readonly<Record<string, z.ZodType>> = {
  wait: TimeWait,
  'wait.external': SignalWait,
  approval: GateInput,
};
