import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postMessage, updateMessage } from '../../lambdas/connectors/slack/messages.ts';
import { SlackDigests } from '../../lambdas/slack/digest/slack-digests.ts';
import { blockProblems, isTooLongForMessage, viewProblems } from '../../local/simulators/slack/block-limits.ts';
import { perform, performance, readBefore } from '../contracts/connectors/connectors-contract.ts';
import { type Outside, openSimulatedOutside } from '../contracts/connectors/connectors-outside.ts';
import { approvalOf, writing } from '../slack/approvals.ts';
import { TRICKS } from '../slack/hostile-text.ts';
import { ANA, BEN, openSlackWorld } from '../slack/slack-world.ts';
import { type RecordedExchange, recordExchanges } from './recorded-exchanges.ts';
import { type Claim, typeErrors } from './slack-types.ts';

/** Compiling takes seconds, more on a busy machine. */
const COMPILE_TIMEOUT_MS = 120_000;

/** Slack's published types for the arguments and the response of each method in use. */
const METHODS: Record<string, [request: string, answer: string]> = {
  'chat.getPermalink': ['WebApi.ChatGetPermalinkArguments', 'WebApi.ChatGetPermalinkResponse'],
  'chat.postMessage': ['WebApi.ChatPostMessageArguments', 'WebApi.ChatPostMessageResponse'],
  'chat.update': ['WebApi.ChatUpdateArguments', 'WebApi.ChatUpdateResponse'],
  'conversations.history': ['WebApi.ConversationsHistoryArguments', 'WebApi.ConversationsHistoryResponse'],
  'conversations.replies': ['WebApi.ConversationsRepliesArguments', 'WebApi.ConversationsRepliesResponse'],
  'users.conversations': ['WebApi.UsersConversationsArguments', 'WebApi.UsersConversationsResponse'],
  'views.open': ['WebApi.ViewsOpenArguments', 'WebApi.ViewsOpenResponse'],
};

const methodOf = ({ url }: RecordedExchange): string => url.pathname.split('/').at(-1) ?? '';

/** A query has only texts; Slack's types determine their values. */
function argumentsOf({ method, url, body }: RecordedExchange): unknown {
  if (method !== 'GET') return body;
  const typed = (text: string) => (['true', 'false'].includes(text) ? text === 'true' : text);
  const entries = [...url.searchParams].map(([name, text]) => [name, name === 'limit' ? Number(text) : typed(text)]);
  return Object.fromEntries(entries);
}

let exchanges: RecordedExchange[];
/** The responses to Slack: messages for one person, and modals. */
const answered: Claim[] = [];

/** Every kind of request to Slack, with hostile texts. */
beforeAll(async () => {
  const recording = recordExchanges();
  const text = TRICKS.join('\n').slice(0, 2_000);
  const outside = await openSimulatedOutside();
  const posted = (await perform(outside, postMessage, { channel: '#incidents', text })).output as { ts: string };
  const edit = { channel: '#incidents', ts: posted.ts, text: `${text} again` };
  await perform(outside, updateMessage, edit, { before: await readBefore(outside, updateMessage, edit) });
  await perform(outside, updateMessage, { ...edit, text: '*done* <!here>', markdown: true });
  const reply = { channel: '#incidents', text, threadTs: posted.ts };
  await perform(outside, postMessage, reply);
  await postMessage.probe?.(postMessage.parse(reply), performance(outside, postMessage));
  await outside.close();

  const world = await openSlackWorld();
  const approval = await world.post(approvalOf(writing({ note: text, state: 2, labels: ['a'] })));
  world.know(approval);
  for (const action of ['show_all', 'reject', 'edit']) {
    await world.click(BEN, approval, action);
    answered.push({ type: 'Types.ModalView', value: viewSent((await world.modal()).view) });
  }
  await world.cards.remind(approval, true);
  const digests = new SlackDigests({ ...world.ports, people: world.definitions });
  const digest = { tenant: 'acme', channel: '#approvals', number: 1, approvals: [approval], added: [] };
  await digests.close('acme', await digests.post(digest), [{ ...approval, status: 'expired' }]);
  await digests.find({ ...digest, since: approval.requestedAt });
  await world.cards.update({ ...approval, status: 'approved' });
  recording.stop();
  await world.act('_command', { user: ANA, typed: '/countersign pending' });
  const { blocks } = (await world.messages()).find(({ ephemeral_for }) => ephemeral_for === ANA) ?? {};
  answered.push({ type: 'Types.KnownBlock[]', value: blocks });
  await world.close();
  exchanges = recording.exchanges.filter(({ url }) => url.pathname.includes('/slack/api/'));
}, COMPILE_TIMEOUT_MS);

/** Separates the lists of blocks from a value, and the frame of a modal, whose types have enums for texts. */
function withoutBlocks(value: unknown): { rest: unknown; blocks: unknown[] } {
  const blocks: unknown[] = [];
  const rest = JSON.parse(JSON.stringify(value), (name, each) => {
    if (name === 'blocks') blocks.push(each);
    return ['blocks', 'title', 'submit', 'close'].includes(name) ? undefined : each;
  });
  return { rest, blocks };
}

const viewSent = ({ type, callback_id, private_metadata, title, submit, close, blocks }: Record<string, unknown>) =>
  JSON.parse(JSON.stringify({ type, callback_id, private_metadata, title, submit, close, blocks }));

describe('Slack’s published types hold', () => {
  it('for every method in use', () => {
    expect(new Set(exchanges.map(methodOf))).toEqual(new Set(Object.keys(METHODS)));
  });

  it(
    'for every request that we send, and every message and modal that we answer with',
    async () => {
      const sent = exchanges.map((each) => ({
        type: METHODS[methodOf(each)]?.[0] ?? 'never',
        value: argumentsOf(each),
      }));
      expect(await typeErrors([...sent, ...answered])).toBe('');
    },
    COMPILE_TIMEOUT_MS,
  );

  it(
    'for every answer of the simulator',
    async () => {
      // The response types were generated from samples and lack many blocks; the argument types have all of them.
      const answers = exchanges.flatMap((each) => {
        const { rest, blocks } = withoutBlocks(each.answer);
        return [
          { type: METHODS[methodOf(each)]?.[1] ?? 'never', value: rest },
          ...blocks.map((value) => ({ type: 'Types.KnownBlock[]', value })),
        ];
      });
      expect(await typeErrors(answers)).toBe('');
    },
    COMPILE_TIMEOUT_MS,
  );

  it(
    'and would be seen not to',
    async () => {
      const said = await typeErrors([
        { type: METHODS['chat.postMessage']?.[0] ?? '', value: { channel: 'C1', text: 'x', link_name: true } },
        { type: 'Types.KnownBlock[]', value: [{ type: 'header', text: { type: 'mrkdwn', text: 'x' } }] },
        { type: METHODS['chat.update']?.[1] ?? '', value: { ok: true, message: { ephemeral_for: 'U1' } } },
      ]);
      for (const wrong of ['link_name', 'mrkdwn', 'ephemeral_for']) expect(said).toContain(wrong);
    },
    COMPILE_TIMEOUT_MS,
  );
});

it('every message and modal stays within Slack’s limits', () => {
  for (const { body } of exchanges) {
    const { text = '', blocks, view } = (body ?? {}) as { text?: string; blocks?: unknown; view?: unknown };
    expect(text.length).toBeLessThanOrEqual(4_000);
    if (blocks !== undefined) expect([blockProblems(blocks), isTooLongForMessage(blocks)]).toEqual([[], false]);
    if (view !== undefined) expect(viewProblems(view)).toBeUndefined();
  }
});

describe('unexpected but documented behaviour of Slack', () => {
  let outside: Outside;
  const message = { channel: '#incidents', text: 'hello' };
  const surprise = (what: string, path: string) =>
    outside.ask('slack', 'POST', '/../faults', { system: 'slack', kind: 'surprise', surprise: what, path });
  beforeAll(async () => {
    outside = await openSimulatedOutside();
  });
  afterAll(() => outside.close());
  const probe = () => postMessage.probe?.(postMessage.parse(message), performance(outside, postMessage));

  it('a hidden mark does not count as absent: nothing is posted twice', async () => {
    await perform(outside, postMessage, message);
    await surprise('payload_hidden', 'conversations.history');
    await expect(probe()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', message: expect.stringContaining('scope') });
    expect(await probe()).toMatchObject({ recovered: true });
  });

  it('a rate-limited list is requested again when Slack allows it', async () => {
    await surprise('lists_limited', 'conversations.history');
    await expect(probe()).rejects.toMatchObject({ retryable: true, retryAfterMs: 30_000 });
  });

  it('a success with warnings is a success', async () => {
    await surprise('warnings', 'chat.postMessage');
    expect(await perform(outside, postMessage, { ...message, text: 'warned' })).toMatchObject({
      output: { ts: expect.any(String) },
    });
  });

  it('a text that Slack shortened does not match what the undo expects', async () => {
    const { output } = await perform(outside, postMessage, { ...message, text: 'before' });
    const edit = { channel: '#incidents', ts: (output as { ts: string }).ts, text: 'longer than ten characters' };
    await surprise('text_cut', 'chat.update');
    const { reversal } = await perform(outside, updateMessage, edit, { before: { text: 'before' } });
    expect(reversal).toMatchObject({ expects: { text: 'longer tha' } });
    expect(await readBefore(outside, updateMessage, edit)).toEqual({ text: 'longer tha' });
  });
});
