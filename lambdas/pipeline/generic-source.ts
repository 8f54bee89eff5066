import * as z from 'zod';
import { Expression } from '../workflow/workflow.ts';

const Template = z.string().max(2_000);

/**
 * A system of the tenant's own that sends webhooks with Standard Webhooks signatures. It says how to read title, subject,
 * actor and event from any JSON: texts may contain `{% expressions %}` over `trigger.payload`.
 */
export const GenericSource = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,39}$/, 'use lower-case letters, digits and dashes; start with a letter')
    .describe('The name of the source, which is part of the address of its webhooks.'),
  description: z.string().max(500).optional().describe('What the source is.'),
  enabled: z.boolean().default(true).describe('`false`: its webhooks are refused.'),
  title: Template.min(1).describe('The title of the run.'),
  subject: Template.optional().describe('What the run is about.'),
  actor: Expression.optional().describe(
    'Who caused the event, by their name in the source. People with the identity `generic:NAME/ACTOR` cannot approve.',
  ),
  event: Expression.optional().describe('For example `fired`: then the event is `NAME.fired`, otherwise `NAME`.'),
  id: Expression.optional().describe('Identifies the event. Default: the signed header webhook-id.'),
});
/** `author`: who last changed how it reads events. They are a maker of the writes that its events start. */
export type GenericSource = z.infer<typeof GenericSource> & { author?: string };

/** The fields with expressions. */
export const readBy = ({ title, subject, actor, event, id }: GenericSource) => ({ title, subject, actor, event, id });
