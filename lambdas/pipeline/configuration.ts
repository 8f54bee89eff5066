import * as z from 'zod';
import { AgentEnvironment, Capabilities } from '../agents/agent-terms.ts';
import { SessionCommand } from '../connectors/agent/command.ts';

const ConfigurationName = z.string().regex(/^[a-z][a-z0-9-]{0,62}$/, 'a name like triage-agent');

export const ModelId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9.:-]{0,120}$/, 'the id of a model or inference profile')
  .describe('A model or inference profile, which the stage must name in `models`.');

/** An agent card is found below the base URL, so the URL has no query and no fragment. */
const BaseUrl = z
  .url({ protocol: /^https?$/, error: 'a URL with the origin of its connection, like https://triage.example.com' })
  .max(500)
  .refine((url) => !/[?#]|\/\/[^/]*@/.test(url), 'a URL without user, query and fragment')
  .describe('The base URL. Its agent card is at `/.well-known/agent-card.json`.');

/** Where a session runs, how to reach it, and its instructions. */
export const Configuration = z.strictObject({
  name: ConfigurationName.describe('The name of the configuration.'),
  description: z.string().max(500).optional().describe('What the configuration is for.'),
  routing: z
    .string()
    .trim()
    .min(1)
    .max(1_000)
    .optional()
    .describe('What it is good at. A model picks only among configurations that say it (`agent_decide`).'),
  session: z
    .discriminatedUnion('provider', [
      z.strictObject({
        provider: z.literal('a2a').describe('An agent that speaks A2A 1.0.'),
        url: BaseUrl,
        connection: z.string().min(1).max(63).describe('The connection of the tenant with its credential.'),
      }),
      z.strictObject({
        provider: z.literal('agent').describe('A command on an enrolled agent of the tenant.'),
        ...SessionCommand.unwrap().shape,
        environment: AgentEnvironment.describe('The environment in which it must run.'),
        capabilities: Capabilities.default([]).describe('What the agent must have.'),
      }),
    ])
    .describe('Where sessions run.'),
  model: ModelId.optional(),
  instructions: z.string().min(1).max(20_000).optional().describe('What every session gets, before its task.'),
});
export type Configuration = z.infer<typeof Configuration>;

/**
 * `revision` counts the changes, so that a change of an outdated definition is refused. `author`: who last changed where
 * sessions run or their instructions. They are a maker of what the sessions do.
 */
export type StoredConfiguration = Configuration & { revision: number; author?: string };

/** What the author has decided. */
export const decidedIn = ({ session, instructions }: Configuration) => ({ session, instructions });
