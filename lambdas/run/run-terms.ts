import * as z from 'zod';
import { CountersignError } from './errors.ts';
import type { Caps } from './settings/caps.ts';

const Name = z.string().regex(/^[a-z][a-z0-9-]{0,62}$/, 'the name of a configuration');
const Channel = z.string().min(1).max(80).describe('The id or the name of a channel.');

/** Which configuration the sessions of a run use. */
export const ConfigurationStrategy = z.discriminatedUnion('strategy', [
  z.strictObject({
    strategy: z.literal('fixed').describe('Always the same one.'),
    default: Name.describe('The configuration.'),
  }),
  z.strictObject({
    strategy: z.literal('agent_decide').describe('A model picks one from `allow`.'),
    allow: z.array(Name).min(1, 'name at least one configuration').max(50).describe('The only ones it may pick.'),
    fallback: Name.optional().describe('Used if the model picks none of them.'),
    default: Name.optional().describe('Used if there is no fallback.'),
  }),
]);
export type ConfigurationStrategy = z.infer<typeof ConfigurationStrategy>;

/** Where people are notified of the end of a run. */
export const Destination = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('slack_channel'), channel: Channel }),
  z.strictObject({ type: z.literal('slack_dm_user'), person: z.string().min(1).max(100).describe('A person.') }),
]);
export type Destination = z.infer<typeof Destination>;

/** The thread in Slack that a run belongs to. */
export interface SlackThread {
  type: 'slack_thread';
  channel: string;
  threadTs: string;
}

/** Where a run reports its end. */
export type NotifiedPlace = Destination | SlackThread;

/** What its automation says of a run, as far as it is set. Fixed when the run is accepted. */
export interface RunTerms {
  caps?: Caps;
  /** The only connections that its calls may use. */
  connections?: string[];
  configuration?: ConfigurationStrategy;
  model?: string;
}

/** A name of a workflow has no colon, so the counters of automations have their own names. */
export const automationCounter = (automation: string): string => `automation:${automation}`;

/** Connections of the stage, not of the tenant. */
const OF_THE_STAGE = ['bedrock'];

export function assertConnectionAllowed({ terms }: { terms?: RunTerms }, connection: string | undefined): void {
  if (terms?.connections === undefined || connection === undefined || OF_THE_STAGE.includes(connection)) return;
  if (terms.connections.includes(connection)) return;
  throw new CountersignError(
    'CONNECTION_NOT_ALLOWED',
    `the automation of this run may not use the connection ${connection}; add it to "connections" of the automation`,
  );
}
