import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONTRACT, type FunctionGroup, routesOf } from '../../../lambdas/api/contract/index.ts';
import { routeKey } from '../../../lambdas/api/contract/route.ts';
import { publish } from '../harness/definitions.ts';
import { githubRequest, incident, incidentInserted, issueOpened, servicenowRequest } from '../harness/deliveries.ts';
import { ACME_KEY, isTerminal } from '../harness/host-client.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost();
});
afterAll(() => host.stop());

/** Too long for a sort key, for a partition key, for both in bytes but not in characters, and special characters. */
const LONG_RUN = `run_${'a'.repeat(3_000)}`;
const ODD = [
  'a'.repeat(1_100),
  'b'.repeat(3_000),
  '😀'.repeat(600),
  LONG_RUN,
  `${LONG_RUN}.gate.1`,
  `run_0.${'a'.repeat(2_000)}.1`,
  'a#b',
  '..',
  'run_0#',
  '\u0000',
  '~',
  ' ',
  '%',
  'é',
];
const TOO_LONG = ODD.slice(0, 3);
const headers = { 'x-api-key': ACME_KEY, 'content-type': 'application/json' };
const ROUTES = (Object.keys(CONTRACT) as FunctionGroup[])
  .flatMap(routesOf)
  .filter(({ right }) => right !== 'public' && right !== 'signed')
  .map(routeKey);

it.each(ROUTES)('%s handles any id, name, query and body without an internal error', async (route) => {
  const [method = '', template = ''] = route.split(' ');
  const places = template.match(/\{\w+\}/g) ?? [];
  const path = (odd: string) => template.replaceAll(/\{\w+\}/g, encodeURIComponent(odd));
  // Each odd path has one of the odd queries or bodies, and the first path has all of them.
  const asked = [
    ...(places.length === 0 ? [] : ODD.map((odd, index) => ({ path: path(odd), other: TOO_LONG[index % 4] }))),
    ...[...TOO_LONG, undefined].map((other) => ({ path: path(ODD[0] ?? ''), other })),
  ];
  for (const { path, other } of asked) {
    const query = method === 'GET' && other !== undefined ? `?cursor=${encodeURIComponent(other)}` : '';
    const body = method === 'GET' || other === undefined ? {} : { body: JSON.stringify(bodyWith(other)) };
    const { status, text } = await host.request(method, `${path}${query}`, { headers, ...body });
    expect([route, path.slice(0, 80), status, status >= 500 ? text : '']).toEqual([
      route,
      path.slice(0, 80),
      status,
      '',
    ]);
    expect([401, 403]).not.toContain(status);
    expect(status).toBeLessThan(500);
  }
});

/** What bodies of these routes have in them, all at once: strict schemas refuse most of it, and must do so. */
const bodyWith = (odd: string) => ({
  id: odd,
  name: odd,
  reason: odd,
  step: odd,
  event: odd,
  workflow: { name: odd, version: 1 },
  trigger: { source: 'github', event: odd },
});

describe('a request that passes the schema of its route', () => {
  const put = (path: string, body: object) => host.request('PUT', path, { headers, body: JSON.stringify(body) });
  const automation = { trigger: { source: 'github', event: 'issues.opened' } };

  it.each(ODD)('and names a workflow, a delegate or an identity %#', async (odd) => {
    const answers = [
      await put('/api/v1/automations/odd', { ...automation, workflow: { name: odd, version: 1 } }),
      await put('/api/v1/people/odd', { name: 'Odd', role: 'member', identities: [`github:${odd}`], groups: [odd] }),
      await put('/api/v1/people/odd/away', { until: '2027-01-01T00:00:00Z', delegate: odd }),
      await host.request('POST', '/api/v1/workflows/simulate', {
        headers,
        body: JSON.stringify({ workflow: { name: odd }, source: 'github', event: 'issues', payload: issueOpened(1) }),
      }),
    ];
    expect(answers.map(({ status }) => status).filter((status) => status >= 500)).toEqual([]);
  });
});

describe('a signed webhook', () => {
  it('with any text in the fields that become keys is accepted or refused, and does not fail', async () => {
    for (const [index, name] of ODD.entries()) {
      // Each in every place, beside others.
      const [number = '', action = ''] = [5, 9].map((places) => ODD[(index + places) % ODD.length]);
      const requests = [
        githubRequest({ ...issueOpened(1), action, repository: { full_name: name } }),
        githubRequest({ ...issueOpened(1), repository: { full_name: `${name}/${number}` } }),
        githubRequest(issueOpened(1), { event: name }),
        servicenowRequest(incidentInserted(incident('odd', { number }), index + 1), { atMs: await host.now() }),
      ];
      for (const request of requests) {
        const odd = Object.values(request.headers).some(
          (value) => !/^[\x20-\x7e]*$/.test(value) || value.length > 4_000,
        );
        if (odd) continue;
        const { status, text } = await host.request('POST', request.path, request);
        expect([status, status >= 500 ? text : '']).toEqual([status, '']);
      }
    }
  });

  it('that leads to a write with a very long target ends its run, and no message is repeated', async () => {
    await publish(host, {
      name: 'long-target',
      event: 'issues.opened',
      steps: [
        {
          id: 'ask',
          tool: 'http.get',
          with: { url: `${host.url}/_sim/{% $pad("", 3000, "x") %}` },
        },
      ],
    });
    const { body } = await host.sendGithub(issueOpened(2));
    for (const runId of body.runIds) expect(isTerminal(await host.waitForRun(runId, isTerminal))).toBe(true);
  });
});
