import * as z from 'zod';
import { SessionInput } from '../connectors/session/session-input.ts';
import { WEBHOOK_SOURCES } from '../run/run.ts';
import { ConfigurationStrategy, Destination, type RunTerms } from '../run/run-terms.ts';
import { Caps } from '../run/settings/caps.ts';
import { Expression, Workflow } from '../workflow/workflow.ts';
import { ModelId } from './configuration.ts';

const AutomationTrigger = z.discriminatedUnion('source', [
  z.strictObject({
    source: z
      .enum(WEBHOOK_SOURCES)
      .describe('The system whose webhooks start runs. `generic`: one of your own sources.'),
    event: z
      .string()
      .max(300)
      .describe(
        '`issues.opened`, `incident.insert`, or the name of a generic source and perhaps its event: `alerts.fired`. ' +
          'Without the part after the dot, any action.',
      ),
    filter: Expression.optional().describe('An expression over `trigger`. Only `true` starts a run.'),
  }),
  z.strictObject({
    source: z.literal('manual').describe('No event starts it: only people, the API and schedules.'),
  }),
]);
export type AutomationTrigger = z.infer<typeof AutomationTrigger>;

const session = () => SessionInput.unwrap().shape;

/** A default is applied where the field is used, and not stored. */
const ifSet = <Field extends z.ZodType>(field: z.ZodDefault<Field>) =>
  field
    .removeDefault()
    .optional()
    .describe(field.description ?? '');

/** The session of an automation with instructions, and the rules of its run: as a step and a workflow would have them. */
const AutomationSession = z.strictObject({
  context: session().context.describe(
    'What the session may use, as data. Default: title, links, actor and subject of the event.',
  ),
  actions: ifSet(session().actions),
  maxActions: ifSet(session().maxActions),
  timeoutSeconds: ifSet(session().timeoutSeconds),
  blastRadius: ifSet(Workflow.shape.blastRadius),
  validation: Workflow.shape.validation,
  approvals: ifSet(Workflow.shape.approvals),
  onReject: ifSet(Workflow.shape.onReject),
});

/** Which events of which sources start which version of a workflow, or a session, and what its runs may do. */
export const Automation = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,62}$/)
    .describe('The name of the automation. Policies can refer to it.'),
  description: z.string().max(500).optional().describe('What the automation is for.'),
  enabled: z.boolean().default(true).describe('`false`: it starts no runs.'),
  workspace: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,39}$/)
    .default('default')
    .describe('The workspace whose share of the capacity its runs use.'),
  trigger: AutomationTrigger.optional().describe('What starts runs: short for `triggers` with one entry.'),
  triggers: z
    .array(AutomationTrigger)
    .min(1)
    .max(20)
    .optional()
    .describe('What starts runs. An event that matches several of them starts one run.'),
  workflow: z
    .strictObject(
      {
        name: z.string().max(63).describe('The name of a published workflow.'),
        version: z.int().positive().max(999_999).describe('The version, which `workflow publish` prints.'),
      },
      {
        error: ({ code }) =>
          code === 'invalid_type' ? 'write a version, like { name: close-duplicates, version: 1 }' : undefined,
      },
    )
    .optional()
    .describe('The workflow that it runs. Not with `instructions`.'),
  instructions: session()
    .prompt.optional()
    .describe(
      'Instead of a workflow: what a session shall do. May contain `{% expressions %}`. Needs `configuration`.',
    ),
  session: AutomationSession.optional().describe('With `instructions`: what the session may use and propose.'),
  inputs: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Values for the inputs of the workflow. May contain `{% expressions %}` over `trigger`.'),
  notifications: z
    .union([z.literal('none'), z.array(Destination).max(10)])
    .optional()
    .describe('Where people are notified when a run ends.'),
  connections: z
    .array(z.string().min(1).max(63))
    .max(20)
    .optional()
    .describe('The only connections that its runs may use. Without it, all.'),
  caps: Caps.optional().describe('Limits of its runs, in addition to those of the tenant and of the workflow.'),
  configuration: ConfigurationStrategy.optional().describe('Where sessions of its runs take place.'),
  model: ModelId.optional().describe('The model that picks the configuration.'),
});
/** As people write it. */
export type AutomationDefinition = z.infer<typeof Automation> & { author?: string };
/**
 * `author`: who wrote its `inputs`. They are a maker of the writes of its runs. The workflow of an automation with
 * instructions is made from them (instructed-workflow.ts).
 */
export type Automation = AutomationDefinition & { workflow: { name: string; version: number } };

/** Automations of earlier releases have one trigger. */
export const triggersOf = ({ trigger, triggers }: Pick<Automation, 'trigger' | 'triggers'>): AutomationTrigger[] =>
  triggers ?? (trigger ? [trigger] : []);

/** One trigger is stored under the name that earlier releases read. */
export function withStoredTriggers<Of extends Pick<Automation, 'trigger' | 'triggers'>>(automation: Of): Of {
  const { trigger: _one, triggers: _all, ...rest } = automation;
  const [first, ...others] = triggersOf(automation);
  return { ...rest, ...(others.length > 0 ? { triggers: [first, ...others] } : { trigger: first }) } as Of;
}

export const startsByEvent = (automation: Pick<Automation, 'trigger' | 'triggers'>): boolean =>
  triggersOf(automation).some(({ source }) => source !== 'manual');

/** What a run keeps of its automation; undefined if nothing of it is set. */
export function termsOf({
  caps,
  connections,
  configuration,
  model,
}: Pick<Automation, 'caps' | 'connections' | 'configuration' | 'model'>): RunTerms | undefined {
  const terms = {
    ...(caps && Object.keys(caps).length > 0 && { caps }),
    ...(connections && { connections }),
    ...(configuration && { configuration }),
    ...(model !== undefined && { model }),
  };
  return Object.keys(terms).length > 0 ? terms : undefined;
}

export const destinationsOf = ({ notifications }: Pick<Automation, 'notifications'>): Destination[] =>
  notifications === undefined || notifications === 'none' ? [] : notifications;
