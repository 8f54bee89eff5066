import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { postMessage, updateMessage } from '../../lambdas/connectors/slack/messages.ts';
import { perform, readBefore } from '../contracts/connectors/connectors-contract.ts';
import { type Outside, openSimulatedOutside } from '../contracts/connectors/connectors-outside.ts';

const CHANNEL = '#incidents';

/** As mrkdwn, each of these would notify people, hide the address of a link, or imitate other text. */
const HOSTILE: [what: string, text: string][] = [
  ['a mention', 'ask <@U100ANA> now'],
  ['a ping of everybody here', '<!here> and <!channel> and <!everyone>'],
  ['a ping of a group', '<!subteam^S012345|@oncall>'],
  ['a channel', 'see <#C012345|general>'],
  ['a link that lies', '<https://evil.example|https://bank.example>'],
  ['names that Slack links', '@here @channel @ana #general'],
  ['a bare link', 'https://evil.example/?a=1&b=2'],
  ['formats', '*bold* _italic_ ~gone~ `code` ```block``` :tada:\n> quoted'],
  ['entities', '&lt;!here&gt; &amp;lt;!here&amp;gt; &#60;!here&#62;'],
  ['half a mention', 'a < b > c <@U100ANA'],
  ['a date', '<!date^1392734382^{date}|today>'],
];

/** Everything in a message that is not plain text. */
const activeParts = (message: { blocks: { elements: { elements: Record<string, unknown>[] }[] }[] }) =>
  message.blocks.flatMap(({ elements }) =>
    elements.flatMap((part) => part.elements.filter(({ type, style }) => type !== 'text' || style !== undefined)),
  );

describe('external text stays text in Slack', () => {
  let outside: Outside;
  beforeEach(async () => {
    outside = await openSimulatedOutside();
  });
  afterEach(() => outside.close());

  const shown = async (channel: unknown, ts: unknown) => {
    const query = `channel=${channel}&latest=${ts}&oldest=${ts}&inclusive=true`;
    return (await outside.ask('slack', 'GET', `/api/conversations.history?${query}`)).messages[0];
  };

  it.each(HOSTILE)('%s that is posted', async (_what, text) => {
    const { output } = await perform(outside, postMessage, { channel: CHANNEL, text });
    const { channel, ts } = output as { channel: string; ts: string };
    const message = await shown(channel, ts);
    expect(activeParts(message)).toEqual([]);
    expect(message.text).not.toMatch(/[<>]/);
    // The text is complete and unchanged: people read what approvers saw.
    expect(await readBefore(outside, updateMessage, { channel, ts, text: 'x' })).toEqual({ text });
  });

  it.each(HOSTILE)('%s that replaces another text, and its undo', async (_what, text) => {
    const first = await perform(outside, postMessage, { channel: CHANNEL, text: 'a <@U100ANA> first' });
    const where = first.output as { channel: string; ts: string };
    const edit = { ...where, text };
    const before = await readBefore(outside, updateMessage, edit);
    const { reversal } = await perform(outside, updateMessage, edit, { before });
    expect(activeParts(await shown(where.channel, where.ts))).toEqual([]);
    expect(await readBefore(outside, updateMessage, edit)).toEqual(updateMessage.propose(edit, 'acme').after);
    const { input } = reversal as { input: unknown };
    await perform(outside, updateMessage, input);
    expect(activeParts(await shown(where.channel, where.ts))).toEqual([]);
    expect(await readBefore(outside, updateMessage, edit)).toEqual({ text: 'a <@U100ANA> first' });
  });

  it('unless the workflow marks its own text as mrkdwn, which is another write than the same text', async () => {
    const text = 'ask <@U100ANA>';
    const { output } = await perform(outside, postMessage, { channel: CHANNEL, text, markdown: true });
    const { channel, ts } = output as { channel: string; ts: string };
    expect(activeParts(await shown(channel, ts))).toEqual([{ type: 'user', user_id: 'U100ANA' }]);
    const keyOf = (input: object) => postMessage.propose(input, 'acme').key;
    expect(keyOf({ channel, text, markdown: true })).not.toBe(keyOf({ channel, text }));
    expect(keyOf({ channel, text, markdown: false })).toBe(keyOf({ channel, text }));
    expect(postMessage.propose({ channel, text, markdown: true }, 'acme').fields).toEqual({ text, markdown: true });
  });

  it('and an undo restores a message with its mentions', async () => {
    const posted = { channel: CHANNEL, text: 'ask <@U100ANA> about R&D' };
    const { channel, ts } = await outside.ask('slack', 'POST', '/api/chat.postMessage', posted);
    const edit = { channel, ts, text: 'done' };
    const before = await readBefore(outside, updateMessage, edit);
    expect(before).toEqual({ text: 'ask <@U100ANA> about R&amp;D', markdown: true });
    const { reversal } = await perform(outside, updateMessage, edit, { before });
    await perform(outside, updateMessage, (reversal as { input: unknown }).input);
    expect(activeParts(await shown(channel, ts))).toEqual([{ type: 'user', user_id: 'U100ANA' }]);
    expect(await readBefore(outside, updateMessage, edit)).toEqual(before);
  });

  it('and a message of Countersign can be updated, although its metadata comes without its payload', async () => {
    const { output } = await perform(outside, postMessage, { channel: CHANNEL, text: 'looking' });
    const { ts } = output as { ts: string };
    await perform(outside, updateMessage, { channel: CHANNEL, ts, text: 'resolved' });
    expect(await readBefore(outside, updateMessage, { channel: CHANNEL, ts, text: 'x' })).toEqual({ text: 'resolved' });
  });

  it('and text that is too long for Slack is refused before anything is sent', async () => {
    const calls = await outside.calls('slack', 'POST');
    const text = '\u0001'.repeat(3_000);
    expect(() => postMessage.parse({ channel: CHANNEL, text })).toThrow('too long for one Slack message');
    await perform(outside, postMessage, { channel: CHANNEL, text: '"\n'.repeat(1_500) });
    expect(await outside.calls('slack', 'POST')).toBe(calls + 1);
  });
});
