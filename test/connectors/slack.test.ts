import { afterEach, describe, expect, it, vi } from 'vitest';
import { postMessage, updateMessage } from '../../lambdas/connectors/slack.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';

const access = { baseUrl: 'http://slack', instance: 'acme', credential: { botToken: 'x' } };
const performance = { access, mark: 'ours', openSince: STORY_BEGINS_AT };
const message = { channel: 'C0INCIDENTS', text: 'x' };
const edit = { channel: 'C0INCIDENTS', ts: '1.000002', text: 'R&D' };
afterEach(() => vi.unstubAllGlobals());

const answers = (body: object) => vi.stubGlobal('fetch', async () => Response.json(body));

describe('Slack says no with status 200', () => {
  it.each([
    ['channel_not_found', { code: 'TARGET_REFUSED', retryable: false, message: 'Slack refused (channel_not_found)' }],
    ['ratelimited', { code: 'TARGET_REFUSED', retryable: true, retryAfterMs: 60_000 }],
    ['service_unavailable', { code: 'TARGET_REFUSED', retryable: true }],
    // Of these it says that part of the operation may have succeeded.
    ['internal_error', { code: 'OUTCOME_UNKNOWN' }],
    ['fatal_error', { code: 'OUTCOME_UNKNOWN' }],
  ])('and %s means to a write what it says', async (error, meaning) => {
    answers({ ok: false, error });
    await expect(postMessage.perform(message, performance)).rejects.toMatchObject(meaning);
  });

  it('and a read that failed may be asked again', async () => {
    answers({ ok: false, error: 'internal_error' });
    const probing = postMessage.probe?.(message, performance);
    await expect(probing).rejects.toMatchObject({ code: 'TARGET_REFUSED', retryable: true });
  });

  it('and a word that is not known here is not repeated', async () => {
    answers({ ok: false, error: 'xoxb_canary' });
    const failure = await postMessage.perform(message, performance).catch((error: Error) => error);
    expect(failure).toMatchObject({ code: 'TARGET_REFUSED', retryable: false });
    expect((failure as Error).message).not.toContain('canary');
  });
});

describe('a probe in Slack', () => {
  it('reads on, page after page, until it finds its mark', async () => {
    const asked: string[] = [];
    const page = (messages: object[], next_cursor: string) => ({
      ok: true,
      messages,
      response_metadata: { next_cursor },
    });
    const ours = { ts: '1.2', metadata: { event_type: 'countersign_write', event_payload: { mark: 'ours' } } };
    vi.stubGlobal('fetch', async (url: string) => {
      asked.push(url);
      return Response.json(asked.length < 3 ? page([{ ts: '1.1' }], `page ${asked.length + 1}`) : page([ours], ''));
    });
    const found = await postMessage.probe?.(message, performance);
    expect(found).toMatchObject({ recovered: true, response: { ts: '1.2' } });
    expect(asked.map((url) => new URL(url).searchParams.get('cursor'))).toEqual([null, 'page 2', 'page 3']);
  });

  it('that is refused says nothing about the message', async () => {
    answers({ ok: false, error: 'missing_scope' });
    const probing = postMessage.probe?.(message, performance);
    await expect(probing).rejects.toMatchObject({ code: 'TARGET_REFUSED', retryable: false });
  });
});

describe('an updated message', () => {
  const updated = {
    ok: true,
    channel: 'C0INCIDENTS',
    ts: '1.000002',
    text: 'R&amp;D',
    message: { text: 'R&amp;D' },
  };
  const richText = (text: string, style?: object) => ({
    type: 'rich_text',
    elements: [{ type: 'rich_text_section', elements: [{ type: 'text', text, ...(style && { style }) }] }],
  });
  const shows = (blocks: object[]) => answers({ ok: true, messages: [{ ts: '1.000002', text: 'before', blocks }] });

  it('is expected to say what was written, though Slack keeps it with entities', async () => {
    shows([richText('before')]);
    const before = await updateMessage.before?.(edit, access);
    expect(before).toEqual({ text: 'before' });
    answers(updated);
    const { reversal } = await updateMessage.perform(edit, { ...performance, before });
    const input = { ...edit, text: 'before' };
    expect(reversal).toEqual({ tool: 'slack.message.update', input, expects: { text: 'R&D' } });
  });

  it('by an attempt whose answer was lost is put back to what that attempt found, not to its own text', async () => {
    answers(updated);
    const first = { text: 'before' };
    const repeated = await updateMessage.perform(edit, { ...performance, before: { text: 'R&D' }, first });
    expect(repeated).toMatchObject({ before: first, reversal: { input: { text: 'before' } } });
    const changedSince = await updateMessage.perform(edit, { ...performance, before: { text: 'theirs' }, first });
    expect(changedSince).toMatchObject({ before: { text: 'theirs' }, reversal: { input: { text: 'theirs' } } });
  });

  it('is told from the message that began its thread, which Slack shows with it', async () => {
    answers({
      ok: true,
      messages: [
        { ts: '1.000001', text: 'the first' },
        { ts: '1.000002', text: 'the reply' },
      ],
    });
    expect(await updateMessage.before?.({ ...edit, threadTs: '1.000001' }, access)).toEqual({ text: 'the reply' });
  });

  it('that a person had formatted is put back with its format', async () => {
    shows([richText('before', { bold: true })]);
    const before = await updateMessage.before?.(edit, access);
    expect(before).toEqual({ text: 'before', markdown: true });
    answers(updated);
    const { reversal } = await updateMessage.perform(edit, { ...performance, before });
    expect(reversal).toMatchObject({ input: { ...edit, text: 'before', markdown: true } });
  });

  it('whose layout the text replaced cannot be put back', async () => {
    shows([{ type: 'section' }, { type: 'actions' }]);
    const before = await updateMessage.before?.(edit, access);
    expect(before).toEqual({ text: 'before', blocks: 2 });
    answers(updated);
    const { reversal } = await updateMessage.perform(edit, { ...performance, before });
    expect(reversal).toHaveProperty('irreversible');
  });
});
