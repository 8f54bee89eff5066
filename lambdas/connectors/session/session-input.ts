import * as z from 'zod';
import { ACTIONS_DEFAULT, ACTIONS_MAX } from '../../run/session.ts';
import { RISKS } from '../connector.ts';

const PROMPT_MAX_CHARACTERS = 20_000;
export const TIMEOUT_DEFAULT_SECONDS = 60 * 60;
const TIMEOUT_MAX_SECONDS = 24 * 60 * 60;
const TOOLS_MAX = 50;

const Allowed = z.strictObject({
  tool: z.string().max(100).describe('a tool'),
  with: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('the input that the session cannot change. If it leaves the target to the session, people must approve'),
  risk: z.enum(RISKS).optional().describe('a higher risk than that of the tool, for policy'),
});

/** The input of an `agent.session` step. */
export const SessionInput = z.lazy(() =>
  z.strictObject({
    configuration: z
      .string()
      .max(63)
      .optional()
      .describe('where the session runs; by default the configuration of the automation'),
    prompt: z.string().min(1).max(PROMPT_MAX_CHARACTERS).describe('what the session shall do'),
    context: z.json().optional().describe('what it may use, as data'),
    actions: z.array(Allowed).max(TOOLS_MAX).default([]).describe('the calls that it may propose'),
    maxActions: z.int().min(0).max(ACTIONS_MAX).default(ACTIONS_DEFAULT).describe('how many calls it may propose'),
    timeoutSeconds: z
      .int()
      .min(10)
      .max(TIMEOUT_MAX_SECONDS)
      .default(TIMEOUT_DEFAULT_SECONDS)
      .describe('the longest time until it completes'),
    resolved: z
      .union([
        z.strictObject({
          url: z.url().describe('the address of the configuration'),
          connection: z.string().describe('the connection with its credential'),
          instructions: z.string().optional().describe('what every session of it gets'),
        }),
        z.strictObject({
          command: z.record(z.string(), z.unknown()).describe('the input of `agent.command`'),
          instructions: z.string().optional().describe('what every session of it gets'),
        }),
      ])
      .optional()
      .describe('set by the worker from the configuration'),
  }),
);
export type SessionInput = z.infer<typeof SessionInput>;
