import { beforeEach, describe, expect, it } from 'vitest';
import { SetupWorld } from './setup-world.ts';

const FIRST = 'first-secret-of-16-bytes';
const SECOND = 'second-secret-of-16-bytes';
const THIRD = 'third-secret-of-16-bytes';

let world: SetupWorld;
beforeEach(() => {
  world = new SetupWorld();
});

const set = (source: string, secret: string, keepPrevious?: boolean) =>
  world.ask('PUT /api/v1/webhook-secrets/{source}', {
    params: { source },
    body: { secret, ...(keepPrevious !== undefined && { keepPrevious }) },
  });
const stored = async (source = 'github') => (await world.documents.read('acme', 'webhook-signing')).entries?.[source];

describe('rotating a signing secret', () => {
  it('keeps the secret before the new one, until the rotation ends', async () => {
    await set('github', FIRST);
    expect((await set('github', SECOND)).body).toMatchObject({ source: 'github', usable: 2, problems: [] });
    expect(await stored()).toEqual([SECOND, FIRST]);
    const params = { source: 'github' };
    const ended = await world.ask('DELETE /api/v1/webhook-secrets/{source}/previous', { params });
    expect(ended.body).toMatchObject({ usable: 1 });
    expect(await stored()).toEqual([SECOND]);
  });

  it('never keeps more than two', async () => {
    for (const secret of [FIRST, SECOND, THIRD]) await set('github', secret);
    expect(await stored()).toEqual([THIRD, SECOND]);
  });

  it('repeated with the same secret changes nothing', async () => {
    for (const secret of [FIRST, SECOND, SECOND]) await set('github', secret);
    expect(await stored()).toEqual([SECOND, FIRST]);
    expect(await world.changes()).toHaveLength(2);
  });

  it('can drop the secret before at once, for one that became known', async () => {
    await set('github', FIRST);
    await set('github', SECOND, false);
    expect(await stored()).toEqual([SECOND]);
  });
});

it('the list shows counts and problems, and no secret', async () => {
  world.documents.set('acme', 'webhook-signing', {
    github: 'generated-by-cloudformation',
    servicenow: ['short', FIRST],
  });
  const { body, text } = await world.ask('GET /api/v1/webhook-secrets');
  expect(body.secrets).toEqual(
    expect.arrayContaining([
      { source: 'github', usable: 1, generated: true, problems: [] },
      { source: 'servicenow', usable: 1, generated: false, problems: [expect.stringContaining('at least 16')] },
      { source: 'slack', usable: 0, generated: false, problems: [] },
    ]),
  );
  expect(text).not.toContain(FIRST);
});

it.each([
  ['github', 'short', 400, 'at least 16'],
  ['github', ` ${FIRST}`, 400, 'white space'],
  ['servicenow', 'whsec_!!!', 400, 'not base64'],
  ['gihub', FIRST, 404, 'did you mean "github"?'],
])('%s with %j is refused, and nothing changes', async (source, secret, status, expected) => {
  expect(await set(source, secret)).toMatchObject({ status, text: expect.stringContaining(expected) });
  expect(await world.changes()).toEqual([]);
  expect(await stored(source)).toBeUndefined();
});

it('a webhook source of the tenant has its own secret', async () => {
  expect((await set('generic:alerts', FIRST)).body).toMatchObject({ source: 'generic/alerts', usable: 1 });
  expect(await stored('generic/alerts')).toEqual([FIRST]);
  const { body } = await world.ask('GET /api/v1/webhook-secrets');
  expect(body.secrets.map(({ source }: { source: string }) => source)).toContain('generic/alerts');
});

it('in prod no owner sets a secret, with which they could sign the decisions or events of others', async () => {
  world.kind = 'prod';
  for (const source of ['slack', 'github']) {
    const before = await stored(source);
    const refused = await set(source, FIRST);
    expect(refused).toMatchObject({ status: 403, text: expect.stringContaining('operator') });
    expect(await stored(source)).toEqual(before);
  }
});
