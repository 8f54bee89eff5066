import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SIGNED_BODY_MAX_BYTES } from '../../../lambdas/entry/body-limits.ts';
import { JSON_DEPTH_MAX } from '../../../lambdas/entry/parse-json.ts';
import { githubRequest, incident, incidentInserted, issueOpened, servicenowRequest } from '../harness/deliveries.ts';
import { inParallel } from '../harness/eventually.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

const MINUTE_MS = 60_000;
const WRITES = ['PutItem', 'UpdateItem', 'DeleteItem', 'BatchWriteItem', 'TransactWriteItems'];
const SCHEDULED = /^(Sweep|EvidenceLog)/;
let host: TestHost;

beforeAll(async () => {
  host = await startTestHost();
});
afterAll(() => host.stop());
beforeEach(async () => {
  await host.idle();
  await host.resetRequests();
});

/** Of all functions but those with a schedule: the sweeper writes once a minute, also during a test. */
async function writesSoFar(): Promise<number> {
  const { functions } = await host.requests();
  const asked = Object.entries(functions).filter(([name]) => !SCHEDULED.test(name));
  const writes = asked.flatMap(([, { dynamodb, sqs }]) => [
    ...WRITES.map((operation) => dynamodb?.[operation] ?? 0),
    sqs?.SendMessage ?? 0,
  ]);
  return writes.reduce((sum, count) => sum + count, 0);
}

const labelsOf = async (issue: number) =>
  (await host.calls({ system: 'github', method: 'POST' })).filter(({ path }) =>
    path.endsWith(`/issues/${issue}/labels`),
  );

describe('a signed delivery', () => {
  it('gets 202 with the ids of its runs', async () => {
    const { status, body } = await host.sendGithub(issueOpened(1));
    expect(status).toBe(202);
    expect(body).toEqual({ runIds: [expect.stringMatching(/^run_[0-9a-f]{32}$/)], deduplicated: false });
    expect((await host.waitForRun(body.runIds[0] ?? '')).status).toBe('succeeded');
    expect(await labelsOf(1)).toMatchObject([{ body: { labels: ['triage'] }, status: 200 }]);
  });

  it('that is repeated returns the same run, and the write is made once', async () => {
    const request = githubRequest(issueOpened(2));
    const first = await host.send(request);
    const again = await inParallel(Array.from({ length: 8 }), 8, () => host.send(request));
    const { runIds } = first.body;
    for (const { status, body } of again) {
      expect(status).toBe(202);
      expect(body).toEqual({ runIds, deduplicated: true });
    }
    await host.waitForRun(runIds[0] ?? '');
    const key = `github:${request.headers['x-github-delivery']}`;
    expect((await host.allRuns()).filter(({ trigger }) => trigger.key === key).map(({ runId }) => runId)).toEqual(
      runIds,
    );
    expect(await labelsOf(2)).toHaveLength(1);
  });

  it('that is sent eight times at the same time starts one run', async () => {
    const request = githubRequest(issueOpened(3));
    const answers = await inParallel(Array.from({ length: 8 }), 8, () => host.send(request));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
    expect(new Set(answers.flatMap(({ body }) => body.runIds)).size).toBe(1);
    expect(answers.filter(({ body }) => !body.deduplicated)).toHaveLength(1);
    await host.waitForRun(answers[0]?.body.runIds[0] ?? '');
    expect(await labelsOf(3)).toHaveLength(1);
  });

  it('with the id of another body is refused, and starts nothing', async () => {
    const deliveryId = randomUUID();
    await host.openIssue(4, { deliveryId });
    const other = await host.sendGithub(issueOpened(5), { deliveryId });
    expect(other.status).toBe(409);
    expect(other.body).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT', status: 409 });
    expect((await host.allRuns()).filter(({ subject }) => subject === 'github:octo-org/payments#5')).toEqual([]);
  });

  it('without a matching automation is accepted and starts nothing', async () => {
    const { status, body } = await host.sendGithub({ ...issueOpened(6), action: 'closed' });
    expect([status, body]).toEqual([202, { runIds: [], deduplicated: false }]);
    expect(await writesSoFar()).toBe(0);
  });

  it('of an incident that the filter of the automation excludes starts nothing', async () => {
    const minor = incidentInserted(incident('minor', { priority: '4' }));
    expect((await host.sendServicenow(minor)).body).toEqual({ runIds: [], deduplicated: false });
    expect(await writesSoFar()).toBe(0);
  });
});

describe('an untrusted delivery gets 401, and nothing is written', () => {
  const request = githubRequest(issueOpened(7));
  const unsigned = { ...request, headers: { ...request.headers, 'x-hub-signature-256': '' } };
  const { 'x-hub-signature-256': _signature, ...withoutSignature } = request.headers;
  const cases = {
    'wrong signature': githubRequest(issueOpened(7), { secret: 'guessed' }),
    'empty signature': unsigned,
    'no signature': { ...request, headers: withoutSignature },
    'a body changed after signing': { ...request, body: request.body.replace('Payments', 'payments') },
    'the secret of another tenant': githubRequest(issueOpened(7), { secret: 'local-globex-github-secret' }),
    "a tenant's delivery sent to another": { ...request, path: '/webhooks/github/globex' },
    'the secret of another source': githubRequest(issueOpened(7), { secret: 'local-servicenow-secret' }),
    'an unknown tenant': githubRequest(issueOpened(7), { tenant: 'initech' }),
    'a tenant named like a part of every object': githubRequest(issueOpened(7), { tenant: 'constructor' }),
    'ServiceNow: wrong signature': servicenowRequest(incidentInserted(incident('a')), { secret: 'guessed' }),
    'ServiceNow: an unknown tenant': servicenowRequest(incidentInserted(incident('a')), { tenant: 'initech' }),
  };
  it.each(Object.entries(cases))('%s', async (_case, untrusted) => {
    const { status, headers } = await host.send(untrusted);
    expect(status).toBe(401);
    expect(headers.get('content-type')).toBe('application/problem+json');
    expect(await writesSoFar()).toBe(0);
  });

  it('with the same body and headers for an unknown tenant and for a wrong signature', async () => {
    const [unknown, wrong] = [await host.send(cases['an unknown tenant']), await host.send(cases['wrong signature'])];
    expect(unknown.text).toBe(wrong.text);
    const shown = ({ headers }: typeof unknown) =>
      [...headers].filter(([name]) => !['date', 'apigw-requestid'].includes(name));
    expect(shown(unknown)).toEqual(shown(wrong));
  });

  it.each([-6, 6])('ServiceNow: signed %i minutes from now', async (minutes) => {
    const atMs = (await host.now()) + minutes * MINUTE_MS;
    expect((await host.sendServicenow(incidentInserted(incident('late')), { atMs })).status).toBe(401);
    expect(await writesSoFar()).toBe(0);
  });

  it.each([-4, 4])('but ServiceNow may sign %i minutes from now: clocks differ', async (minutes) => {
    const atMs = (await host.now()) + minutes * MINUTE_MS;
    const inTime = incidentInserted(incident(`in time ${minutes}`, { priority: '4' }));
    expect((await host.sendServicenow(inTime, { atMs })).status).toBe(202);
  });
});

describe('a signed delivery with an invalid body is refused, and nothing is written', () => {
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
  const refused: Record<string, [number, (atMs: number) => ReturnType<typeof githubRequest>]> = {
    'malformed JSON': [400, () => githubRequest('{"action": "opened",')],
    'not JSON at all': [400, () => githubRequest('payload=%7B%7D')],
    'an empty body': [400, () => githubRequest('')],
    'not an object': [400, () => githubRequest('[]')],
    'nested too deep': [400, () => githubRequest(`{"action":${nested(JSON_DEPTH_MAX)}}`)],
    'nested so deep that a parser would overflow': [400, () => githubRequest(nested(200_000))],
    'one byte over the limit': [413, () => githubRequest(' '.repeat(SIGNED_BODY_MAX_BYTES + 1))],
    'an event name that is none': [400, () => githubRequest(issueOpened(8), { event: 'Issues/../x' })],
    'a delivery id that is none': [400, () => githubRequest(issueOpened(8), { deliveryId: 'a#b' })],
    'ServiceNow: fields nobody sends': [
      400,
      (atMs) => servicenowRequest({ ...incidentInserted(incident('b')), extra: 1 }, { atMs }),
    ],
    'ServiceNow: no sys_id': [
      400,
      (atMs) => servicenowRequest({ ...incidentInserted(incident('b')), sys_id: 'x' }, { atMs }),
    ],
  };
  it.each(Object.entries(refused))('%s', async (_case, [expected, request]) => {
    const { status, body } = await host.send(request(await host.now()));
    expect([status, body]).toEqual([expected, expect.objectContaining({ status: expected })]);
    expect(await writesSoFar()).toBe(0);
  });

  it('but a body of exactly the limit is accepted', async () => {
    const text = JSON.stringify({ ...issueOpened(9), action: 'closed' });
    const padded = text.padEnd(SIGNED_BODY_MAX_BYTES);
    expect((await host.sendGithub(padded)).status).toBe(202);
  });
});

describe('every sample that GitHub publishes', () => {
  const samples = (file: string): [string, unknown][] => {
    const events: { name: string; examples: unknown[] }[] = createRequire(import.meta.url)(
      `@octokit/webhooks-examples/${file}/index.json`,
    );
    return events.flatMap(({ name, examples }) => examples.map((example): [string, unknown] => [name, example]));
  };
  it.each([
    ['api.github.com', 300],
    ['ghes-35', 100],
  ])('of %s is accepted', async (file, atLeast) => {
    const all = samples(file);
    expect(all.length).toBeGreaterThan(atLeast);
    const answers = await inParallel(all, 2, async ([event, example]) => {
      const { status, text } = await host.sendGithub(example, { event });
      return status === 202 ? undefined : `${event}: ${status} ${text}`;
    });
    expect(answers.filter(Boolean)).toEqual([]);
  });
});
