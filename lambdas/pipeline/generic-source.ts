import * as z from 'zod';
import { Expression } from '../workflow/workflow.ts';

const Template = z.string().max(2_000);

/**
 * A system of the tenant's own that sends webhooks with Standard Webhooks signatures. It says how to read title, subject,
 * actor and event from any JSON: texts may contain `{% expressions %}` over `trigger.payload`.
 */
export const GenericSource = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9-]{0,39}$/, 'use lower-case letters, digits and dashes; start with a letter'),
  description: z.string().max(500).optional(),
  enabled: z.boolean().default(true),
  title: Template.min(1),
  subject: Template.optional(),
  /** Who caused the event, by their name in the source. People with the identity `generic:NAME/ACTOR` cannot approve. */
  actor: Expression.optional(),
  /** `fired`: then the event is `NAME.fired`, otherwise `NAME`. */
  event: Expression.optional(),
  /** Identifies the event. By default the signed header webhook-id. */
  id: Expression.optional(),
});
export type GenericSource = z.infer<typeof GenericSource>;

/** The fields with expressions. */
export const readBy = ({ title, subject, actor, event, id }: GenericSource) => ({ title, subject, actor, event, id });
