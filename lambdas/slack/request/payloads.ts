import * as z from 'zod';
import { tryParseJson } from '../../entry/parse-json.ts';

/** Only the fields in use; Slack adds fields at any time. */
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
  trigger_id: z.string().max(200).optional(),
  text: z.string().max(4_000).default(''),
});

/** The value of a button; see `Seen` in approval-card.ts. */
export const SeenValue = z.object({ approvalId: z.string(), actionHash: z.string() });
export const ShownPageValue = SeenValue.extend({ page: z.int().nonnegative() });
export const MoreValue = z.object({ after: z.string() });

/** The identity of a guest from another organization names that organization's workspace. */
export interface SlackUser {
  team: string | undefined;
  identity: string;
}

export function parseInteraction(form: string): { user: SlackUser; payload: unknown } | undefined {
  const payload = tryParseJson(new URLSearchParams(form).get('payload') ?? '');
  const envelope = Envelope.safeParse(payload);
  if (!envelope.success) return undefined;
  const { team, enterprise, user } = envelope.data;
  return { user: slackUser(team?.id ?? enterprise?.id, user.id, user.team_id ?? undefined), payload };
}

/** `requestId`: the same if Slack sends the command again. */
export function parseCommand(form: string): { user: SlackUser; args: string[]; requestId?: string } | undefined {
  const command = Command.safeParse(Object.fromEntries(new URLSearchParams(form)));
  if (!command.success) return undefined;
  const { team_id: team, enterprise_id: enterprise, user_id: user, trigger_id: requestId, text } = command.data;
  const args = text.trim().split(/\s+/);
  return { user: slackUser(team ?? enterprise, user), args, ...(requestId !== undefined && { requestId }) };
}

function slackUser(team: string | undefined, user: string, ownTeam?: string): SlackUser {
  return { team, identity: `slack:${ownTeam ?? team}/${user}` };
}

/** The value of a button or modal; undefined if an older version wrote it in another form. */
export function parseValue<T>(schema: z.ZodType<T>, value: string): T | undefined {
  const parsed = schema.safeParse(tryParseJson(value));
  return parsed.success ? parsed.data : undefined;
}
