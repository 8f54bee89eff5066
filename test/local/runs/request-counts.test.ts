import { afterAll, beforeAll, expect, it } from 'vitest';
import { publish } from '../harness/definitions.ts';
import { isTerminal } from '../harness/host-client.ts';
import { asks, publishSessions, sessionOf } from '../harness/session-story.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

/** The webhook's transaction, the worker's load, the claim of the first write, and one commit for each write. */
const DYNAMODB_REQUESTS_MAX = 8;
const WRITES = 5;
/**
 * The completion reads the run and commits. The end of the session and the notification of the agent read nothing, and a warm
 * function knows the configuration.
 */
const OF_A_SESSION_MAX = 2;
/** A worker continues after the completion: it loads the run, and claims the next step in a commit of its own. */
const OF_A_SESSION_BEFORE_OTHERS_MAX = 4;
let host: TestHost;

beforeAll(async () => {
  host = await startTestHost();
});
afterAll(() => host.stop());

it('a run of five writes costs at most eight DynamoDB requests from its webhook to its terminal commit', async () => {
  const target = { owner: 'octo-org', repo: 'payments', number: '{% trigger.payload.release.id %}' };
  await publish(host, {
    name: 'five-labels',
    event: 'release.published',
    steps: Array.from({ length: WRITES }, (_, index) => ({
      id: `label_${index}`,
      tool: 'github.labels.add',
      with: { ...target, labels: [`label-${index}`] },
    })),
  });
  const release = async (id: number) => {
    const { body } = await host.sendGithub({ action: 'published', release: { id } }, { event: 'release' });
    return host.waitForRun(body.runIds[0] ?? '', isTerminal);
  };
  // The first run warms the functions: a definition is read once, not for every run.
  await release(1);
  await host.idle();
  await host.resetRequests();
  const run = await release(2);

  expect(run.status).toBe('succeeded');
  expect(run.receipts).toHaveLength(WRITES);
  const { functions } = await host.requests();
  const toTerminalCommit = Object.entries(functions).filter(([name]) => /^(Intake|Worker)/.test(name));
  const requests = toTerminalCommit.flatMap(([, services]) => Object.values(services.dynamodb ?? {}));
  const total = requests.reduce((sum, count) => sum + count, 0);
  expect(total, JSON.stringify(toTerminalCommit)).toBeLessThanOrEqual(DYNAMODB_REQUESTS_MAX);
});

/** As long as a completed session may take to end by itself. */
const SESSION_IS_ENDED_AFTER_MS = 10_000;
/** Functions whose requests are not those of the run: they read runs, or send events to people who watch. */
const READERS = /^(Api(?!Control)|Keyed|Sweep|LiveFeed)/;
const LABEL =
  'tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: ["{% inputs.label %}"] }';
const SESSION = 'tool: agent.session, with: { configuration: triage-agent, prompt: look, context: { script: "{}" } }';
const OTHER =
  'tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 8, labels: ["{% inputs.label %}"] }';

it('a session costs at most two DynamoDB requests more than a write, and two more if steps follow it', async () => {
  const counted = async (name: string, steps: string[]): Promise<number> => {
    const listed = steps.map((step, index) => `  - { id: step_${index}, ${step} }`).join('\n');
    const inputs = 'inputs: { label: { type: string, required: true, maxLength: 60 } }';
    await publishSessions(host, `name: ${name}\n${inputs}\nsteps:\n${listed}\n`);
    const counts: number[] = [];
    // The first run warms the functions. Of the others, the least is the cost in warm functions: a request may start
    // another instance, which reads the definitions again.
    for (const label of [0, 1, 2, 3].map((each) => `${name}-${each}`)) {
      await host.idle();
      await host.resetRequests();
      const before = await requestsOfSessions();
      const { runId } = await asks<{ runId: string }>(host, 'POST', '/runs', { workflow: { name }, inputs: { label } });
      expect((await host.waitForRun(runId, isTerminal)).status).toBe('succeeded');
      if (steps.includes(SESSION)) {
        // The completion and the notification of the agent that its task has ended.
        await host.eventually('the notification', async () => (await requestsOfSessions()) >= before + 2 || undefined);
        await host.advance(SESSION_IS_ENDED_AFTER_MS);
        await sessionOf(host, runId, ({ cancelRequests }) => cancelRequests > 0);
      }
      await host.idle();
      const { functions } = await host.requests();
      const ofRun = Object.entries(functions).filter(([by]) => !READERS.test(by));
      const requests = ofRun.flatMap(([, services]) => Object.values(services.dynamodb ?? {}));
      counts.push(requests.reduce((sum, count) => sum + count, 0));
    }
    return Math.min(...counts.slice(1));
  };
  const write = await counted('count-write', [LABEL]);
  const session = await counted('count-session', [SESSION]);
  expect(session - write).toBeLessThanOrEqual(OF_A_SESSION_MAX);
  const writes = await counted('count-writes', [LABEL, OTHER]);
  const before = await counted('count-before', [SESSION, OTHER]);
  expect(before - writes).toBeLessThanOrEqual(OF_A_SESSION_BEFORE_OTHERS_MAX);
});

/** Requests that sessions have sent, of any kind. */
async function requestsOfSessions(): Promise<number> {
  const functions = await host.functions();
  return Object.entries(functions).reduce(
    (sum, [name, { invocations }]) => sum + (name.startsWith('ApiControl') ? invocations : 0),
    0,
  );
}
