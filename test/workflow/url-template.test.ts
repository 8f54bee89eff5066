import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { httpGet } from '../../lambdas/connectors/http/request.ts';
import { renderInput } from '../../lambdas/workflow/url-template.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';

let server: Server;
let origin: string;
let received: string[] = [];
beforeAll(async () => {
  server = createServer((request, response) => {
    received.push(String(request.url));
    response.end();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  received = [];
});
afterAll(() => server.close());

/** The values that expressions give, in their order, put where `render` would put them. */
const giving =
  (...values: unknown[]) =>
  async (template: Record<string, unknown>) => {
    const parts = (template.url as string[]).map((part) => (part.startsWith('{%') ? values.shift() : part));
    return { ...template, url: parts };
  };

const requested = async (path: string, ...values: unknown[]) => {
  const input = httpGet.parse(await renderInput(httpGet, { url: `${origin}${path}` }, giving(...values)));
  const access = { baseUrl: '', instance: 'acme', credential: undefined, ownUrl: origin };
  const allowed = { ...access, allowedHosts: [new URL(origin).host] };
  await httpGet.perform(input, { access: allowed, mark: 'm', openSince: STORY_BEGINS_AT });
  const { fields } = httpGet.propose(input, 'acme');
  return { shown: String(fields.url), received: received.at(-1) };
};

/** Values of a payload that try to reach another address than the author of the workflow intended. */
const ATTACKS: [what: string, value: string][] = [
  ['one up', '..'],
  ['here', '.'],
  ['one up and in again', '../admin'],
  ['one up, encoded', '%2e%2e'],
  ['one up, encoded twice', '%252e%252e%252fadmin'],
  ['one up in wide letters', '．．／admin'],
  ['one up as one letter', '‥'],
  ['one up with a tab', '.\t.'],
  ['one up with a letter that shows nothing', '.\u200b.'],
  ['one up with a parameter', '..;x'],
  ['another segment', 'a/b'],
  ['another segment, encoded', 'a%2fb'],
  ['a backslash', 'a\\b'],
  ['a backslash, encoded twice', 'a%255cb'],
  ['nothing', ''],
];

/** Values that stay one segment, unchanged. */
const DATA: [what: string, value: string][] = [
  ['a query', 'a?admin=true'],
  ['a second query value', 'a&admin=true'],
  ['a fragment', 'a#b'],
  ['a host', '@evil.example'],
  ['a scheme', 'https:evil.example'],
  ['line breaks', 'a\r\nhost: evil.example'],
  ['a tab', 'a\tb'],
  ['a space and a plus', 'a b+c'],
  ['escapes', '100%41'],
  ['a semicolon', 'a;b=c'],
  ['dots among letters', 'v1..2'],
  ['letters of other alphabets', 'münchen 東京 😀'],
  ['quotes and braces', `'"<>{}|^\``],
];

describe('a value in the path of a URL', () => {
  it.each(ATTACKS)('that would leave its segment is rejected before anything is sent: %s', async (_what, value) => {
    await expect(requested('/users/{% x %}/keys', value)).rejects.toMatchObject({ code: 'INPUT_INVALID' });
    expect(received).toEqual([]);
  });

  it.each(DATA)('stays one segment: %s', async (_what, value) => {
    const { received: path = '' } = await requested('/users/{% x %}/keys?scope=all', value);
    const [, users, segment = '', rest, ...more] = path.split('/');
    expect([users, decodeURIComponent(segment), rest, more]).toEqual(['users', value, 'keys?scope=all', []]);
  });

  it('cannot combine with adjacent dots', async () => {
    await expect(requested('/users/.{% x %}/keys', '.')).rejects.toMatchObject({ code: 'INPUT_INVALID' });
    await expect(requested('/users/{% x %}{% y %}/keys', '.', '.')).rejects.toMatchObject({ code: 'INPUT_INVALID' });
    await expect(requested('/users/%2{% x %}%2e/keys', 'e')).rejects.toMatchObject({ code: 'INPUT_INVALID' });
    expect(received).toEqual([]);
  });

  it.each([[null], [['a']], [{ a: 1 }]])('that is not text is rejected: %j', async (value) => {
    await expect(requested('/users/{% x %}', value)).rejects.toMatchObject({ code: 'INPUT_INVALID' });
  });

  it.each([
    [7, '/users/7'],
    [true, '/users/true'],
  ])('that is %s is written unchanged', async (value, path) => {
    expect((await requested('/users/{% x %}', value)).received).toBe(path);
  });
});

describe('a value in the query of a URL', () => {
  it.each([...ATTACKS, ...DATA])('stays one value: %s', async (_what, value) => {
    const { received: path = '' } = await requested('/find?q={% x %}&limit=10', value);
    const url = new URL(path, origin);
    expect(url.pathname).toBe('/find');
    expect([...url.searchParams]).toEqual([
      ['q', value],
      ['limit', '10'],
    ]);
  });

  it('is empty if it is missing', async () => {
    expect((await requested('/find?q={% x %}', null)).received).toBe('/find?q=');
  });
});

describe('the URL that approvers see', () => {
  it.each(DATA)('is the requested URL: %s', async (_what, value) => {
    const { shown, received: path } = await requested("/a'b/{% x %}?q={% y %}", value, value);
    expect(shown).toBe(`${origin}${path}`);
  });
});

it('an older workflow whose host is an expression fails with a hint', async () => {
  const render = giving('https://evil.example/');
  await expect(renderInput(httpGet, { url: '{% trigger.url %}' }, render)).rejects.toMatchObject({
    code: 'INPUT_INVALID',
    message: expect.stringContaining('scheme, host'),
  });
});
