import { afterAll, beforeAll, expect, it } from 'vitest';
import { IS_STORM } from '../../storm.ts';
import { incident, incidentInserted, issueOpened } from '../harness/deliveries.ts';
import { inParallel } from '../harness/eventually.ts';
import { labelWrites, triageWrites } from '../harness/seen-writes.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

const OF_EACH_SOURCE = IS_STORM ? 500 : 20;
const CONCURRENCY = 32;
const DONE_WITHIN_MS = 300_000;
let host: TestHost;

beforeAll(async () => {
  host = await startTestHost();
  await host.trustAutomations();
});
afterAll(() => host.stop());

it(
  `${2 * OF_EACH_SOURCE} webhooks at once are all accepted, each starts one run, every run ends and every write is made once`,
  async () => {
    const numbers = Array.from({ length: OF_EACH_SOURCE }, (_, index) => index + 1);
    const incidents = numbers.map((number) => incident(`under load ${number}`));
    await inParallel(incidents, CONCURRENCY, (each) => host.createIncident(each));

    const deliveries = numbers.flatMap((number, index) => {
      const filed = incidents[index] ?? incident('none');
      return [() => host.sendGithub(issueOpened(number)), () => host.sendServicenow(incidentInserted(filed))];
    });
    const answers = await inParallel(deliveries, CONCURRENCY, (deliver) => deliver());
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
    expect(answers.filter(({ body }) => body.runIds.length !== 1 || body.deduplicated)).toEqual([]);

    await host.idle({ withinMs: DONE_WITHIN_MS });
    const runs = await host.allRuns();
    expect(runs.map(({ runId }) => runId).sort()).toEqual(answers.flatMap(({ body }) => body.runIds).sort());
    expect(runs.filter(({ status }) => status !== 'succeeded')).toEqual([]);

    const calls = await host.calls();
    expect(numbers.filter((number) => labelWrites(calls, number) !== 1)).toEqual([]);
    const once = { assign: 1, note: 1, post: 1 };
    expect(incidents.map((each) => triageWrites(calls, each))).toEqual(incidents.map(() => once));
  },
  2 * DONE_WITHIN_MS,
);
