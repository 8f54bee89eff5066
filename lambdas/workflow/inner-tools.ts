import * as z from 'zod';
import { RISKS } from '../connectors/connector.ts';
import { GroupSets } from '../policy/approval-requirement.ts';
import { QUORUM_MAX_PEOPLE } from '../policy/policy.ts';

const WAIT_MAX_SECONDS = 30 * 24 * 3600;
const GATE_MESSAGE_MAX_CHARACTERS = 2000;

const Seconds = z.number().positive().max(WAIT_MAX_SECONDS);

/** `wait: {seconds | until}` waits for a time. */
export const TimeWait = z.union([z.strictObject({ seconds: Seconds }), z.strictObject({ until: z.iso.datetime() })]);

/** `wait.external: {event, timeoutSeconds}` waits for a signal until then; without a time, as long as the run may. */
export const SignalWait = z.strictObject({
  event: z.string().min(1).max(100),
  timeoutSeconds: Seconds.optional(),
});

/** `approval: {message, tier, quorum, groups}`: a gate the workflow itself asks for, whatever comes after it. */
export const GateInput = z.strictObject({
  message: z.string().max(GATE_MESSAGE_MAX_CHARACTERS).optional(),
  tier: z.enum(RISKS).default('medium'),
  quorum: z.int().min(1).max(QUORUM_MAX_PEOPLE).default(1),
  groups: GroupSets.default([]),
});

/** The tools that reach nothing outside, with what they take: `transform` hands it on, the others wait, for a person, a time, a signal. */
export const INNER_TOOL_INPUTS: Readonly<Record<string, z.ZodType>> = {
  transform: z.unknown(),
  approval: GateInput,
  wait: TimeWait,
  'wait.external': SignalWait,
};
