import { setTimeout as pause } from 'node:timers/promises';
import type { RunDetail } from '../bin/client/api-client.ts';
import { hasEnded } from '../bin/commands/runs/run-status.ts';
import type { RequestReport } from '../local/aws/request-counts.ts';
import { percentile, round } from './figures.ts';
import { isReader } from './measured-host.ts';
import { sum, total } from './request-sums.ts';

const isLiveFeed = (by: string) => by.startsWith('LiveFeed');
const HEADERS = { 'x-api-key': 'local-owner-key' };
const COMPARED_RUNS = 20;
/** Warm functions are measured. */
const WARM_RUNS = 4;
const CONCURRENT = 200;
const label = (number: number) =>
  `tool: github.labels.add, with: { owner: octo-org, repo: bench, number: ${number}, labels: ["{% inputs.label %}"] }`;
/** The simulated agent completes at once: what its session proposes would be further runs. */
const SESSION = 'tool: agent.session, with: { configuration: triage-agent, prompt: look, context: { script: "{}" } }';
const WORKFLOWS = {
  write: [label(1)],
  session: [SESSION],
  twoWrites: [label(1), label(2)],
  sessionThenWrite: [SESSION, label(2)],
};
const nameOf = (workflow: string) => `bench-${workflow.toLowerCase()}`;
const yamlOf = (workflow: string, steps: string[]) =>
  [
    `name: ${nameOf(workflow)}`,
    'inputs: { label: { type: string, required: true, maxLength: 60 } }',
    'steps:',
    ...steps.map((step, index) => `  - { id: step_${index}, ${step} }`),
  ].join('\n');

/** What a session step costs beside a write step, and many sessions at once. */
export async function sessionFigures(url: string, settle: () => Promise<void>) {
  const ask = async <Body>(method: string, path: string, body?: unknown): Promise<Body> => {
    const isYaml = typeof body === 'string';
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { ...HEADERS, 'content-type': isYaml ? 'application/yaml' : 'application/json' },
      ...(body !== undefined && { body: isYaml ? body : JSON.stringify(body) }),
    });
    // Each function has a limit of concurrent invocations, as in AWS.
    if (response.status === 503 || response.status === 429) {
      await pause(200);
      return ask(method, path, body);
    }
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as Body;
  };
  let labels = 0;
  const start = async (name: string): Promise<string> => {
    labels += 1;
    const body = { workflow: { name }, inputs: { label: `bench-${labels}` } };
    return (await ask<{ runId: string }>('POST', '/api/v1/runs', body)).runId;
  };
  const ended = async (runId: string): Promise<RunDetail> => {
    for (;;) {
      const run = await ask<RunDetail>('GET', `/api/v1/runs/${runId}`);
      if (hasEnded(run.status)) return run;
      await pause(50);
    }
  };
  for (const [workflow, steps] of Object.entries(WORKFLOWS)) {
    await ask('POST', '/api/v1/workflows', yamlOf(workflow, steps));
  }
  const requestsPerRun = async (workflow: string) => {
    const name = nameOf(workflow);
    for (let each = 0; each < WARM_RUNS; each += 1) await ended(await start(name));
    await settle();
    await ask('DELETE', '/_local/requests');
    for (let each = 0; each < COMPARED_RUNS; each += 1) await ended(await start(name));
    await settle();
    const report = await ask<RequestReport>('GET', '/_local/requests');
    const perRun = (counts: (by: string) => boolean) =>
      round(total(sum(report, (by, service) => service === 'dynamodb' && counts(by))) / COMPARED_RUNS);
    return { run: perRun((by) => !isReader(by) && !isLiveFeed(by)), liveFeed: perRun(isLiveFeed) };
  };
  const dynamodbRequests: Record<string, { run: number; liveFeed: number }> = {};
  for (const workflow of Object.keys(WORKFLOWS)) dynamodbRequests[workflow] = await requestsPerRun(workflow);

  const beganMs = performance.now();
  const times = await Promise.all(
    Array.from({ length: CONCURRENT }, async () => {
      const startedMs = performance.now();
      const { status, commits } = await ended(await start(nameOf('session')));
      const completed = commits.flatMap(({ events }) => events).filter(({ type }) => type === 'session.completed');
      if (status !== 'succeeded' || completed.length !== 1) {
        throw new Error(`a session ended as ${status}, with ${completed.length} completions`);
      }
      return performance.now() - startedMs;
    }),
  );
  const seconds = (performance.now() - beganMs) / 1000;
  return {
    dynamodbRequests,
    concurrentSessions: CONCURRENT,
    completedOnce: times.length,
    allCompletedAfterSeconds: round(seconds),
    sessionP50Ms: percentile(times, 50),
    sessionP99Ms: percentile(times, 99),
  };
}
