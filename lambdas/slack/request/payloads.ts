import * as z from 'zod';
import { tryParseJson } from '../../entry/parse-json.ts';

/** Only what is used is described; Slack adds fields at any time. */
const Id = z.string().regex(/^[A-Z0-9]{1,40}$/);
const Workspace = z.object({ id: Id }).nullish();

const Envelope = z.object({
  type: z.string(),
  team: Workspace,
  enterprise: Workspace,
  user: z.object({ id: Id, team_id: Id.nullish() }),
});

const Action = z.object({ action_id: z.string(), value: z.string().default('') });
const BlockActions = z.object({
  type: z.literal('block_actions'),
  trigger_id: z.string(),
  response_url: z.string().optional(),
  actions: z.tuple([Action]).rest(Action),
});

const ViewSubmission = z.object({
  type: z.literal('view_submission'),
  view: z.object({
    callback_id: z.string(),
    private_metadata: z.string(),
    state: z.object({
      values: z.record(z.string(), z.record(z.string(), z.object({ value: z.string().nullish() }))),
    }),
  }),
});

export const Interaction = z.discriminatedUnion('type', [BlockActions, ViewSubmission]);
export type BlockActions = z.infer<typeof BlockActions>;
export type ViewSubmission = z.infer<typeof ViewSubmission>;

const Command = z.object({
  team_id: Id.optional(),
  enterprise_id: Id.optional(),
  user_id: Id,
  text: z.string().default(''),
});

/** Which button was pressed for what; see `Seen` in card.ts. */
export const SeenValue = z.object({ approvalId: z.string(), actionHash: z.string() });
export const ShownPageValue = SeenValue.extend({ page: z.int().nonnegative() });
export const MoreValue = z.object({ after: z.string() });

/** Who it was, in whose workspace: a guest of another organisation is known by their own. */
export interface Speaker {
  team: string | undefined;
  identity: string;
}

export function interactionIn(form: string): { speaker: Speaker; payload: unknown } | undefined {
  const payload = tryParseJson(new URLSearchParams(form).get('payload') ?? '');
  const envelope = Envelope.safeParse(payload);
  if (!envelope.success) return undefined;
  const { team, enterprise, user } = envelope.data;
  return { speaker: speaker(team?.id ?? enterprise?.id, user.id, user.team_id ?? undefined), payload };
}

export function commandIn(form: string): { speaker: Speaker; words: string[] } | undefined {
  const command = Command.safeParse(Object.fromEntries(new URLSearchParams(form)));
  if (!command.success) return undefined;
  const { team_id: team, enterprise_id: enterprise, user_id: user, text } = command.data;
  return { speaker: speaker(team ?? enterprise, user), words: text.trim().split(/\s+/) };
}

function speaker(team: string | undefined, user: string, own?: string): Speaker {
  return { team, identity: `slack:${own ?? team}/${user}` };
}

/** What a button or a modal carries; it is ours, but a card of an older version may carry something else. */
export function carried<T>(schema: z.ZodType<T>, value: string): T | undefined {
  const parsed = schema.safeParse(tryParseJson(value));
  return parsed.success ? parsed.data : undefined;
}
