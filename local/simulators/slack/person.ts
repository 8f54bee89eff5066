import * as z from 'zod';
import { BadRequest, fieldsOf, type SimResponse, textOf } from '../exchange.ts';
import type { SystemContext } from '../system.ts';
import { blockProblems } from './block-limits.ts';
import { type Outcome, type SlackCallback, sendCallback } from './callback.ts';
import { inputElements } from './modal-inputs.ts';
import { postResponse } from './slack.ts';
import { APP, type Block, type SlackUser, type SlackView, type SlackWorkspace, USERS } from './workspace.ts';

const personSchema = z.enum(USERS.map(({ id }) => id));
const clickSchema = z.strictObject({
  user: personSchema,
  channel: z.string(),
  ts: z.string(),
  action_id: z.string(),
  /** Required only if several blocks have the same action_id. */
  block_id: z.string().optional(),
});
const submitSchema = z.strictObject({
  user: personSchema,
  view_id: z.string(),
  /** block_id → action_id → the typed text, or the value of the selected option. */
  values: z.record(z.string(), z.record(z.string(), z.string())).default({}),
});
const commandSchema = z.strictObject({
  user: personSchema,
  channel: z.string().default('#approvals'),
  /** The whole command, for example `/countersign pending`. */
  typed: z.string().regex(/^\/\S/, 'a command starts with a slash'),
});
const messageSchema = z.strictObject({
  user: personSchema,
  channel: z.string().default('#general'),
  text: z.string().min(1),
  /** Of the first message of a thread. */
  thread_ts: z.string().optional(),
});
const dismissSchema = z.strictObject({ user: personSchema, view_id: z.string() });

export interface SlackPerson {
  act(verb: string, body: unknown): Promise<SimResponse>;
}

export const PERSON_VERBS = ['_click', '_submit', '_command', '_message', '_dismiss'];

/** The people of the workspaces. Countersign receives their clicks and submissions as signed requests, as from Slack. */
export function slackPerson(
  context: SystemContext,
  workspaces: readonly SlackWorkspace[],
  callback: SlackCallback,
): SlackPerson {
  const send = ({ team }: SlackWorkspace, payload: Record<string, unknown>): Promise<Outcome> =>
    sendCallback(context.now(), callback, team, 'interactivity', { payload: JSON.stringify(payload) });

  const click = async (input: z.infer<typeof clickSchema>): Promise<Outcome> => {
    const workspace = workspaceOf(workspaces, input.user);
    const since = workspace.timestamp();
    const payload = context.store.transaction(() => blockActions(workspace, input));
    const outcome = await send(workspace, payload);
    const reply = workspace
      .messages(input.channel)
      .findLast(({ ts, ephemeral_for }) => ephemeral_for === input.user && ts > since);
    return outcome.ok && reply ? { ...outcome, message: reply.text, isPrivate: true } : outcome;
  };

  const submit = async (input: z.infer<typeof submitSchema>): Promise<Outcome> => {
    const workspace = workspaceOf(workspaces, input.user);
    const opened = ownView(workspace, input);
    const filled = fillIn(opened, input.values);
    if (Object.keys(filled.errors).length > 0)
      return { ok: false, message: 'Please complete the form.', errors: filled.errors };
    const outcome = await send(
      workspace,
      context.store.transaction(() => viewSubmission(workspace, opened, filled.state, input.user)),
    );
    return context.store.transaction(() => settleView(workspace, opened, outcome));
  };

  const command = async (input: z.infer<typeof commandSchema>): Promise<Outcome> => {
    const { user } = input;
    const workspace = workspaceOf(workspaces, user);
    const { channel, form } = context.store.transaction(() => slashCommand(workspace, input));
    const outcome = await sendCallback(context.now(), callback, workspace.team, 'commands', form);
    const body = fieldsOf(outcome.body);
    if (!outcome.ok || body.text === undefined) return outcome;
    const [problem] = body.blocks === undefined ? [] : blockProblems(body.blocks);
    if (problem !== undefined) return { ...outcome, ok: false, message: `Slack would refuse the response: ${problem}` };
    context.store.transaction(() => postResponse(workspace, { user, channel }, body));
    return outcome;
  };

  /** Slack sends a message that mentions the app as two events, and one in a conversation with the app as one. */
  const write = async (input: z.infer<typeof messageSchema>): Promise<Outcome> => {
    const workspace = workspaceOf(workspaces, input.user);
    const { message, events } = context.store.transaction(() => writtenMessage(workspace, input));
    let outcome: Outcome = { ok: true, message: 'Posted.' };
    for (const event of events) {
      outcome = await sendCallback(context.now(), callback, workspace.team, 'events', eventOf(workspace, event));
      if (!outcome.ok) return outcome;
    }
    return { ...outcome, body: { channel: message.channel, ts: message.ts } };
  };

  const dismiss = (input: z.infer<typeof dismissSchema>): Outcome => {
    const workspace = workspaceOf(workspaces, input.user);
    workspace.closeView(ownView(workspace, input).id);
    return { ok: true, message: 'Closed.' };
  };

  return {
    act: async (verb, body) => {
      let outcome: Outcome;
      if (verb === '_click') outcome = await click(parse(clickSchema, body));
      else if (verb === '_message') outcome = await write(parse(messageSchema, body));
      else if (verb === '_command') outcome = await command(parse(commandSchema, body));
      else if (verb === '_submit') outcome = await submit(parse(submitSchema, body));
      else outcome = context.store.transaction(() => dismiss(parse(dismissSchema, body)));
      return { status: 200, body: outcome };
    },
  };
}

function parse<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body ?? {});
  if (!parsed.success) throw new BadRequest(z.prettifyError(parsed.error));
  return parsed.data;
}

function ownView(workspace: SlackWorkspace, { user, view_id }: { user: string; view_id: string }): SlackView {
  const view = workspace.view(view_id);
  if (view?.user !== user) throw new BadRequest(`${user} has no open modal ${view_id}`, 404);
  return view;
}

function workspaceOf(workspaces: readonly SlackWorkspace[], id: string): SlackWorkspace {
  const { team }: Partial<SlackUser> = USERS.find((user) => user.id === id) ?? {};
  const found = workspaces.find((workspace) => workspace.team === team);
  if (!found) throw new BadRequest(`no workspace has the user ${id}`, 404);
  return found;
}

function person(id: string, { team }: SlackWorkspace): Record<string, unknown> {
  const { name }: Partial<SlackUser> = USERS.find((user) => user.id === id) ?? {};
  return { id, username: name, name, team_id: team.id };
}

function envelope(type: string, user: string, workspace: SlackWorkspace): Record<string, unknown> {
  return {
    type,
    user: person(user, workspace),
    api_app_id: APP.app_id,
    team: workspace.team,
    enterprise: null,
    is_enterprise_install: false,
  };
}

function blockActions(workspace: SlackWorkspace, input: z.infer<typeof clickSchema>): Record<string, unknown> {
  const message = workspace.message(input.channel, input.ts);
  const channel = workspace.channel(input.channel);
  if (!message || !channel) {
    const { domain } = workspace.team;
    throw new BadRequest(`the workspace ${domain} has no message ${input.ts} in ${input.channel}`, 404);
  }
  const found = (message.blocks ?? [])
    .filter((block) => input.block_id === undefined || block.block_id === input.block_id)
    .flatMap((block) =>
      [...elementsOf(block.elements), fieldsOf(block.accessory)].map((element) => ({ block, element })),
    )
    .find(({ element }) => element.action_id === input.action_id);
  if (!found)
    throw new BadRequest(`message ${input.ts} has no action ${input.action_id}: the card may have changed`, 404);
  const { action_id, text, value, style, type } = found.element;
  const { channel: _channel, ...shownMessage } = message;
  return {
    ...envelope('block_actions', input.user, workspace),
    container: {
      type: 'message',
      message_ts: message.ts,
      channel_id: channel.id,
      is_ephemeral: message.ephemeral_for !== undefined,
      thread_ts: message.thread_ts,
    },
    trigger_id: workspace.newTrigger(input.user),
    channel,
    message: shownMessage,
    state: { values: {} },
    response_url: workspace.newResponseUrl({ user: input.user, channel: channel.id, ts: message.ts }),
    actions: [
      { action_id, block_id: found.block.block_id, text, value, style, type, action_ts: workspace.timestamp() },
    ],
  };
}

function writtenMessage(workspace: SlackWorkspace, { user, channel, text, thread_ts }: z.infer<typeof messageSchema>) {
  const place = workspace.channelForPost(channel);
  const message = workspace.write(place, { user, text, ...(thread_ts !== undefined && { thread_ts }) });
  const isDirect = place.id.startsWith('D');
  const sent = {
    ...{ user, text, ts: message.ts, channel: place.id, event_ts: message.ts },
    ...(thread_ts !== undefined && { thread_ts }),
  };
  const asMessage = { type: 'message', channel_type: isDirect ? 'im' : 'channel', ...sent };
  const mentions = text.includes(`<@${APP.user}>`) && !isDirect;
  return { message, events: mentions ? [{ type: 'app_mention', ...sent }, asMessage] : [asMessage] };
}

const eventOf = (workspace: SlackWorkspace, event: Record<string, unknown>): Record<string, unknown> => ({
  type: 'event_callback',
  team_id: workspace.team.id,
  api_app_id: APP.app_id,
  event,
  event_id: `Ev${String(event.ts).replace('.', '')}${String(event.type).length}`,
  authorizations: [{ team_id: workspace.team.id, user_id: APP.user, is_bot: true }],
});

function slashCommand(
  workspace: SlackWorkspace,
  { user, channel: name, typed }: z.infer<typeof commandSchema>,
): { channel: string; form: Record<string, string> } {
  const channel = workspace.channelForPost(name);
  const [, command = '', text = ''] = /^(\S+)\s*([\s\S]*)$/.exec(typed) ?? [];
  const form = {
    api_app_id: APP.app_id,
    team_id: workspace.team.id,
    team_domain: workspace.team.domain,
    channel_id: channel.id,
    channel_name: channel.name,
    user_id: user,
    user_name: USERS.find(({ id }) => id === user)?.name ?? '',
    command,
    text,
    trigger_id: workspace.newTrigger(user),
    response_url: workspace.newResponseUrl({ user, channel: channel.id }),
  };
  return { channel: channel.id, form };
}

const elementsOf = (elements: unknown): Record<string, unknown>[] =>
  Array.isArray(elements) ? elements.map(fieldsOf) : [];

/** The checks of Slack's form before it is sent, and the state that it sends. */
function fillIn(
  opened: SlackView,
  values: Record<string, Record<string, string>>,
): { state: Record<string, unknown>; errors: Record<string, string> } {
  const state: Record<string, Record<string, unknown>> = {};
  const errors: Record<string, string> = {};
  for (const { block_id, action_id, type, options, optional } of inputElements(opened.view)) {
    const typed = values[block_id]?.[action_id] ?? '';
    const selected_option = options.find((option) => option.value === typed) ?? null;
    const isChoice = options.length > 0;
    if (!optional && (isChoice ? selected_option === null : typed.trim() === '')) {
      errors[block_id] = 'Please complete this required field.';
    }
    state[block_id] = {
      ...state[block_id],
      [action_id]: isChoice ? { type, selected_option } : { type, value: typed || null },
    };
  }
  return { state, errors };
}

function viewSubmission(
  workspace: SlackWorkspace,
  opened: SlackView,
  state: Record<string, unknown>,
  user: string,
): Record<string, unknown> {
  return {
    ...envelope('view_submission', user, workspace),
    trigger_id: workspace.newTrigger(user),
    view: {
      ...opened.view,
      id: opened.id,
      team_id: workspace.team.id,
      app_id: APP.app_id,
      bot_id: APP.bot_id,
      state: { values: state },
    },
    response_urls: [],
  };
}

const blocksOf = ({ view }: SlackView): Block[] => (Array.isArray(view.blocks) ? view.blocks : []);

/** An accepted submission closes the modal unless the response requests something else. */
function settleView(workspace: SlackWorkspace, opened: SlackView, outcome: Outcome): Outcome {
  if (!outcome.ok) return outcome;
  const { response_action, errors, view } = fieldsOf(outcome.body);
  if (response_action === 'errors') {
    const byBlock = Object.fromEntries(
      Object.entries(fieldsOf(errors)).map(([block, error]) => [block, textOf(error)]),
    );
    const inputs = blocksOf(opened).filter(({ type }) => type === 'input');
    const nowhere = Object.keys(byBlock).find((block) => !inputs.some(({ block_id }) => block_id === block));
    // Slack does not show this error, only that the app did not respond correctly.
    if (nowhere !== undefined) return { ...outcome, ok: false, message: `the modal has no input block "${nowhere}"` };
    return { ...outcome, ok: false, message: 'The form was not accepted.', errors: byBlock };
  }
  if (response_action === 'update') workspace.saveView({ ...opened, view: fieldsOf(view) });
  else workspace.closeView(opened.id);
  return outcome;
}
