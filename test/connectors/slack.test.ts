import { afterEach, describe, expect, it, vi } from 'vitest';
import { postMessage, updateMessage } from '../../lambdas/connectors/slack/messages.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';

const access = { baseUrl: 'http://slack', instance: 'acme', credential: { botToken: 'x' } };
const performance = { access, mark: 'ours', openSince: STORY_BEGINS_AT };
const message = { channel: 'C0INCIDENTS', text: 'x' };
const edit = { channel: 'C0INCIDENTS', ts: '1.000002', text: 'R&D' };
afterEach(() => vi.unstubAllGlobals());

const answers = (body: object) => vi.stubGlobal('fetch', async () => Response.json(body));

describe('Slack reports errors with status 200', () => {
  it.each([
    [
      'channel_not_found',
      { code: 'TARGET_REFUSED', retryable: false, message: expect.stringContaining('(channel_not_found)') },
    ],
    ['ratelimited', { code: 'TARGET_REFUSED', retryable: true, retryAfterMs: 60_000 }],
    ['service_unavailable', { code: 'TARGET_REFUSED', retryable: true }],
    // Slack documents that part of the operation may have succeeded.
    ['internal_error', { code: 'OUTCOME_UNKNOWN' }],
    ['fatal_error', { code: 'OUTCOME_UNKNOWN' }],
  ])('and %s is mapped to its meaning for a write', async (error, meaning) => {
    answers({ ok: false, error });
    await expect(postMessage.perform(message, performance)).rejects.toMatchObject(meaning);
  });

  it('and a failed read may be retried', async () => {
    answers({ ok: false, error: 'internal_error' });
    const probing = postMessage.probe?.(message, performance);
    await expect(probing).rejects.toMatchObject({ code: 'TARGET_REFUSED', retryable: true });
  });

  it('and an unknown error is not quoted', async () => {
    answers({ ok: false, error: 'xoxb_canary' });
    const failure = await postMessage.perform(message, performance).catch((error: Error) => error);
    expect(failure).toMatchObject({ code: 'TARGET_REFUSED', retryable: false });
    expect((failure as Error).message).not.toContain('canary');
  });
});

describe('Slack’s errors are final, retryable, or for an admin', () => {
  it.each([
    ['msg_too_long', { retryable: false, message: 'Slack refused (msg_too_long)' }],
    ['not_in_channel', { retryable: false, message: expect.stringContaining('invite the app') }],
    ['missing_scope', { retryable: false, message: expect.stringContaining('countersign connections test slack') }],
    ['restricted_action_read_only_channel', { retryable: false, message: expect.stringContaining('ask an admin') }],
    ['ekm_access_denied', { retryable: false, message: expect.stringContaining('ask an admin') }],
    ['token_revoked', { retryable: false, message: expect.stringContaining('ask an admin') }],
    ['message_limit_exceeded', { retryable: true, retryAfterMs: 60_000 }],
    ['org_login_required', { retryable: true, retryAfterMs: 60_000 }],
  ])('%s', async (error, meaning) => {
    answers({ ok: false, error });
    await expect(postMessage.perform(message, performance)).rejects.toMatchObject({
      code: 'TARGET_REFUSED',
      ...meaning,
    });
  });
});

describe('a credential of Slack', () => {
  it.each([
    ['with a token that rotates', { botToken: 'xoxe.xoxb-1-abc' }, 'token rotation'],
    ['with a refresh token', { botToken: 'xoxb-1', refreshToken: 'xoxe-1-abc' }, 'token rotation'],
    ['with a token of the app itself', { botToken: 'xapp-1-abc' }, 'app-level token'],
    ['without a token', {}, 'needs "botToken"'],
    ['that is none', undefined, 'needs "botToken"'],
  ])('%s is refused with what to do, and nothing is sent', async (_what, credential, said) => {
    vi.stubGlobal('fetch', () => expect.unreachable('something was sent'));
    const refused = { code: 'CONNECTION_MISSING', message: expect.stringContaining(said) };
    const at = { ...performance, access: { ...access, credential } };
    await expect(postMessage.perform(message, at)).rejects.toMatchObject(refused);
    await expect(postMessage.probe?.({ ...message, channel: '#a' }, at)).rejects.toMatchObject(refused);
  });
});

describe('a channel by its name', () => {
  const pageOf = (page: number, size = 999) => ({
    ok: true,
    channels: Array.from({ length: size }, (_, index) => ({ id: `C${page}X${index}`, name: `c-${page}-${index}` })),
    response_metadata: { next_cursor: `page ${page + 1}` },
  });
  /** Slack with an endless list of channels, and a response to every other call. */
  const workspace = (rest: object, asked: string[] = []) => {
    vi.stubGlobal('fetch', async (url: string) => {
      const { pathname, searchParams } = new URL(url);
      asked.push(pathname);
      if (pathname !== '/api/users.conversations') return Response.json(rest);
      return Response.json(pageOf(Number(searchParams.get('cursor')?.slice('page '.length) ?? 0)));
    });
    return asked;
  };
  const fresh = () => ({ ...access, credential: { botToken: 'x' } });
  const update = { ...edit, channel: '#c-3-998' };
  const shown = { ok: true, messages: [{ ts: edit.ts, text: 'before' }] };

  it('is resolved once per step, in four requests for 4,000 channels', async () => {
    const asked = workspace(shown);
    const own = fresh();
    expect(await updateMessage.before?.(update, own)).toEqual({ text: 'before' });
    expect(asked.filter((path) => path.endsWith('users.conversations'))).toHaveLength(4);
    workspace({ ok: true, channel: 'C3X998', ts: edit.ts, message: { text: 'x' } }, asked);
    await updateMessage.perform(update, { ...performance, access: own });
    expect(asked.filter((path) => path.endsWith('users.conversations'))).toHaveLength(4);
  });

  it('that is not in the readable pages must be given by its id', async () => {
    const asked = workspace(shown);
    const looking = updateMessage.before?.({ ...update, channel: '#nowhere' }, fresh());
    await expect(looking).rejects.toMatchObject({ retryable: false, message: expect.stringContaining('use the id') });
    expect(asked).toHaveLength(20);
  });

  it('is retried when Slack allows it if the list is rate limited', async () => {
    vi.stubGlobal('fetch', async () => new Response('{}', { status: 429, headers: { 'retry-after': '30' } }));
    const looking = updateMessage.before?.(update, fresh());
    await expect(looking).rejects.toMatchObject({ retryable: true, retryAfterMs: 30_000 });
  });
});

describe('a probe in Slack', () => {
  it('reads page after page until it finds its mark', async () => {
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

  it('that is refused leaves the outcome unknown', async () => {
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

  it('matches the written text, although Slack stores it with entities', async () => {
    shows([richText('before')]);
    const before = await updateMessage.before?.(edit, access);
    expect(before).toEqual({ text: 'before' });
    answers(updated);
    const { reversal } = await updateMessage.perform(edit, { ...performance, before });
    const input = { ...edit, text: 'before' };
    expect(reversal).toEqual({ tool: 'slack.message.update', input, expects: { text: 'R&D' } });
  });

  it('by an attempt whose response was lost is restored to the text before that attempt', async () => {
    answers(updated);
    const first = { text: 'before' };
    const repeated = await updateMessage.perform(edit, { ...performance, before: { text: 'R&D' }, first });
    expect(repeated).toMatchObject({ before: first, reversal: { input: { text: 'before' } } });
    const changedSince = await updateMessage.perform(edit, { ...performance, before: { text: 'theirs' }, first });
    expect(changedSince).toMatchObject({ before: { text: 'theirs' }, reversal: { input: { text: 'theirs' } } });
  });

  it('is distinguished from the first message of its thread, which Slack returns with it', async () => {
    answers({
      ok: true,
      messages: [
        { ts: '1.000001', text: 'the first' },
        { ts: '1.000002', text: 'the reply' },
      ],
    });
    expect(await updateMessage.before?.({ ...edit, threadTs: '1.000001' }, access)).toEqual({ text: 'the reply' });
  });

  it('that a person had formatted is restored with its format', async () => {
    shows([richText('before', { bold: true })]);
    const before = await updateMessage.before?.(edit, access);
    expect(before).toEqual({ text: 'before', markdown: true });
    answers(updated);
    const { reversal } = await updateMessage.perform(edit, { ...performance, before });
    expect(reversal).toMatchObject({ input: { ...edit, text: 'before', markdown: true } });
  });

  it('whose layout was replaced cannot be restored', async () => {
    shows([{ type: 'section' }, { type: 'actions' }]);
    const before = await updateMessage.before?.(edit, access);
    expect(before).toEqual({ text: 'before', blocks: 2 });
    answers(updated);
    const { reversal } = await updateMessage.perform(edit, { ...performance, before });
    expect(reversal).toHaveProperty('irreversible');
  });
});
