import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Operation } from '../../lambdas/connectors/connector.ts';
import { addLabels } from '../../lambdas/connectors/github/labels.ts';
import { findOperation } from '../../lambdas/connectors/registry.ts';
import { perform, performance, readBefore } from '../contracts/connectors/connectors-contract.ts';
import { EXAMPLES } from '../contracts/connectors/connectors-examples.ts';
import { ISSUE, type Outside, openSimulatedOutside } from '../contracts/connectors/connectors-outside.ts';
import { OpenApi, type OpenApiDocument } from './openapi.ts';
import { type Recording, recordExchanges } from './recorded-exchanges.ts';

/** GitHub's own descriptions: the public API, Enterprise Cloud, and the Enterprise Servers that are still supported. */
const VERSIONS = ['api.github.com', 'ghec', 'ghes-3.17', 'ghes-3.18', 'ghes-3.19'];
const ERROR = 'basic-error';
const MOUNT = '/_sim/github';

const require = createRequire(import.meta.url);
const described = (version: string): OpenApiDocument =>
  JSON.parse(readFileSync(require.resolve(`@octokit/openapi/generated/${version}.json`), 'utf8'));

let outside: Outside;
let recording: Recording;
beforeEach(async () => {
  recording = recordExchanges();
  outside = await openSimulatedOutside();
});
afterEach(async () => {
  recording.stop();
  await outside.close();
});

const ofGithub = () => recording.exchanges.filter(({ url }) => url.pathname.startsWith(`${MOUNT}/`));

/** All requests of the operation: the read before, the write, the probe and the undo. */
async function exercise(operation: Operation, input: unknown): Promise<void> {
  const before = await readBefore(outside, operation, input);
  const { reversal } = await perform(outside, operation, input, { before });
  await operation.probe?.(operation.parse(input), performance(outside, operation));
  const inverse = 'tool' in reversal ? findOperation(reversal.tool) : undefined;
  if (!inverse || !('tool' in reversal)) return;
  await perform(outside, inverse, reversal.input, { before: await readBefore(outside, inverse, reversal.input) });
}

describe.each(VERSIONS)('according to the description of %s', (version) => {
  const api = new OpenApi(described(version));
  const problems = () => ofGithub().flatMap((each) => api.problems(each, each.url.pathname.slice(MOUNT.length), ERROR));
  const examples = EXAMPLES.filter(({ operation }) => operation.connection === 'github');

  it.each(examples.map((example) => [example.operation.tool, example] as const))(
    'every request of %s and every answer of the simulator is as described',
    async (_tool, { operation, input }) => {
      await exercise(operation, await input(outside));
      expect(ofGithub().length).toBeGreaterThan(1);
      expect(problems()).toEqual([]);
    },
  );

  it.each([401, 403, 404, 422, 429, 503])('a %i of the simulator is an error in the described form', async (status) => {
    await outside.fault('github', 'POST', { status });
    await expect(perform(outside, addLabels, { ...ISSUE, labels: ['x'] })).rejects.toThrow();
    expect(ofGithub().at(-1)).toMatchObject({ status });
    expect(problems()).toEqual([]);
  });

  it('detects deviations', async () => {
    await perform(outside, addLabels, { ...ISSUE, labels: ['x'] });
    const [exchange] = ofGithub().slice(-1);
    if (!exchange) throw new Error('nothing was recorded');
    const path = '/repos/octo-org/payments/issues/7/labels';
    const found = (change: object, at = path) => api.problems({ ...exchange, ...change }, at, ERROR);
    expect(found({})).toEqual([]);
    expect(found({}, '/repos/octo-org/payments/issue/7/labels')).toEqual([expect.stringContaining('there is no POST')]);
    expect(found({}, '/repos/octo-org/payments/issues/seven/labels')).toEqual([expect.stringContaining('integer')]);
    expect(found({ url: new URL('http://x/?page=1') })).toEqual([expect.stringContaining('page is not a parameter')]);
    expect(found({ body: { labels: [], colour: 'x' } })).toEqual(
      expect.arrayContaining([expect.stringContaining('no colour'), expect.stringContaining('fewer than 1')]),
    );
    expect(found({ status: 201 })).toEqual([expect.stringContaining('never answers 201')]);
    expect(found({ answer: [{ name: 'x' }] }).join()).toContain('node_id');
  });
});

it('every request has the version of the API, a user agent, and accepts JSON', async () => {
  for (const { operation, input } of EXAMPLES.filter((each) => each.operation.connection === 'github')) {
    recording.exchanges.length = 0;
    const given = await input(outside);
    const prepared = ofGithub().length;
    await exercise(operation, given);
    for (const { headers } of ofGithub().slice(prepared)) {
      expect(Object.fromEntries(headers)).toMatchObject({
        'user-agent': 'Countersign',
        'x-github-api-version': '2022-11-28',
        accept: 'application/json',
      });
    }
  }
});
