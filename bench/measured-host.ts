import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { GetExecutionHistoryCommand, ListExecutionsCommand, SFNClient } from '@aws-sdk/client-sfn';
import { DynamoDefinitions } from '../lambdas/pipeline/dynamo-definitions.ts';
import { Workflow } from '../lambdas/workflow/workflow.ts';
import { REGION } from '../local/aws/aws.ts';
import { HOST_CREDENTIALS } from '../local/aws/aws-endpoint.ts';
import type { RequestReport } from '../local/aws/request-counts.ts';
import { tablesOf } from '../local/dynamodb/tables.ts';
import type { Host } from '../local/host/host.ts';
import type { FunctionStats } from '../local/lambda/functions.ts';
import { byTest } from '../test/fakes/by-test.ts';
import { httpRequest } from '../test/local/harness/http-request.ts';
import { decisionToStepMs } from './approvals.ts';
import type { DynamoDbUnits } from './bill/dynamodb-units.ts';
import type { Measured } from './bill/runs.ts';
import { percentile, round } from './figures.ts';
import { LogBytes, platformLogBytes } from './log-bytes.ts';
import { onlyOf, sum, total } from './request-sums.ts';

export const STEPS = 5;
/** The number of steps; or with an approval, one step or five. */
type Kind = number | 'gated' | 'gated-5';
export const WORKFLOW_SIZES = [5, 50, 500];
const WAIT_MAX_MS = 15 * 60_000;
const ASKED_EVERY_MS = 25;
/** The functions between the webhook and the last commit of a run. Sealing and reading runs are not included. */
const PATH_FUNCTIONS = /^(Intake|Worker)/;

/** Reading runs is not part of a run. The decision on an approval is. */
export const isReader = (functionLogicalId: string): boolean =>
  /^(Api(?!Control|Approvals)|Keyed|Sweep)/.test(functionLogicalId);

/** A local host whose runs are counted and timed. */
export class MeasuredHost {
  readonly #host: Host;
  readonly #payload: object;
  readonly #logBytes: LogBytes;
  #issue = 0;

  /** `payload` is the event that each webhook has, apart from the issue and the repository. */
  constructor(host: Host, payload: object = {}, logBytes = new LogBytes()) {
    this.#host = host;
    this.#logBytes = logBytes;
    this.#payload = payload;
  }

  /** Counts everything that runs need, from the first webhook until all work is done. */
  async billed(runs: number, kind: Kind, units: DynamoDbUnits): Promise<Measured> {
    await this.settle();
    const before = { functions: await this.functions(), calls: await this.#targetCalls() };
    const executions = await this.#transitions();
    await this.#control('DELETE', 'requests');
    units.reset();
    const runIds: string[] = [];
    for (let each = 0; each < runs; each += 1) {
      const runId = await this.send(kind);
      runIds.push(runId);
      if (kind === 'gated-5') await decisionToStepMs(this.#host.url, [runId]);
      else await this.#finished(runId);
    }
    for (const runId of runIds) await this.#sealed(runId);
    await this.settle();
    const functions = Object.entries(await this.#functionsSince(before.functions));
    const worked = functions.filter(([name, { invocations }]) => invocations > 0 && !isReader(name));
    const requests = (await this.#control('GET', 'requests')) as RequestReport;
    return {
      runs,
      units: units.report(),
      requests: onlyOf(requests, (name) => !isReader(name)),
      functions: Object.fromEntries(worked),
      platformLogBytes: platformLogBytes(Object.fromEntries(worked), this.#host.stack),
      queueBatches: worked
        .filter(([name]) => this.#consumesQueue(name))
        .reduce((sum, [, each]) => sum + each.invocations, 0),
      // The webhook, and the decision.
      httpApiRequests: kind === 'gated-5' ? 2 * runs : runs,
      targetCalls: (await this.#targetCalls()) - before.calls,
      transitions: (await this.#transitions()) - executions,
    };
  }

  async functions(): Promise<Record<string, FunctionStats>> {
    return (await this.#control('GET', 'functions')) as Record<string, FunctionStats>;
  }

  async #functionsSince(before: Record<string, FunctionStats>): Promise<Record<string, FunctionStats>> {
    const now = Object.entries(await this.functions());
    return Object.fromEntries(now.map(([name, stats]) => [name, difference(stats, before[name])]));
  }

  async #targetCalls(): Promise<number> {
    const answer = await fetch(`${this.#host.url}/_sim/calls`);
    return ((await answer.json()) as { calls: unknown[] }).calls.length;
  }

  /** AWS bills each state that an execution enters, retries included. */
  async #transitions(): Promise<number> {
    const [machine] = this.#host.stack.ofType('AWS::StepFunctions::StateMachine');
    const client = new SFNClient({
      endpoint: this.#host.awsEndpointUrl,
      region: REGION,
      credentials: HOST_CREDENTIALS,
    });
    const { executions = [] } = await client.send(new ListExecutionsCommand({ stateMachineArn: machine?.arn ?? '' }));
    let entered = 0;
    for (const { executionArn = '' } of executions) {
      const { events = [] } = await client.send(new GetExecutionHistoryCommand({ executionArn }));
      entered += events.filter(({ type }) => type?.endsWith('StateEntered')).length;
    }
    client.destroy();
    return entered;
  }

  #definitions() {
    const table = String(tablesOf(this.#host.stack)[0]?.ref);
    const client = new DynamoDBClient({
      endpoint: this.#host.awsEndpointUrl,
      region: REGION,
      credentials: HOST_CREDENTIALS,
    });
    const definitions = new DynamoDefinitions(client, table);
    return { definitions, client };
  }

  /** One automation for each size, selected by the repository's name; every step adds another label. */
  async define(): Promise<void> {
    const { definitions, client } = this.#definitions();
    for (const size of [...WORKFLOW_SIZES, 'gated', 'gated-5'] as const) {
      const workflow = typeof size === 'number' ? labelling(size) : gated(size);
      await definitions.publishWorkflow('acme', workflow, 1, byTest());
      await definitions.saveAutomation(
        'acme',
        {
          name: `bench-${size}`,
          enabled: true,
          workspace: 'default',
          trigger: { source: 'github', event: 'issues.edited', filter: `{% trigger.repo = "bench-${size}" %}` },
          workflow: { name: `bench-${size}`, version: 1 },
        },
        byTest(),
      );
    }
    client.destroy();
    // Functions cache definitions for a minute.
    await this.#control('POST', 'clock', { advanceSeconds: 61 });
  }

  async defineAgentCommand(): Promise<void> {
    const { definitions, client } = this.#definitions();
    const command = { command: '/bin/echo', args: ['hello'], environment: 'dev', capabilities: ['bench'] };
    const steps = [{ id: 'run', tool: 'agent.command', with: command }];
    const name = 'bench-agent';
    await definitions.publishWorkflow('acme', Workflow.parse({ name, steps }), 1, byTest());
    const trigger = { source: 'manual' as const };
    const automation = { name, enabled: true, workspace: 'default', trigger, workflow: { name, version: 1 } };
    await definitions.saveAutomation('acme', automation, byTest());
    const files = {
      'bench.cedar': '@id("bench") @reason("bench") permit (principal, action == Action::"execute", resource);',
    };
    await definitions.savePolicies('acme', { engine: 'cedar', files }, byTest());
    client.destroy();
    await this.#control('POST', 'clock', { advanceSeconds: 61 });
  }

  /** Starts runs, and returns their ids when all of them wait for an approval. */
  async waitingRuns(count: number): Promise<string[]> {
    const runIds: string[] = [];
    for (let each = 0; each < count; each += 1) runIds.push(await this.send('gated'));
    await this.settle();
    return runIds;
  }

  /** Starts runs that wait for an approval, and decides them one after the other. */
  async decisions(count: number): Promise<number[]> {
    return decisionToStepMs(this.#host.url, await this.waitingRuns(count));
  }

  async send(kind: Kind): Promise<string> {
    this.#issue += 1;
    const { issue, repository, sender, ...event } = this.#payload as Partial<Record<string, object>>;
    const body = JSON.stringify({
      ...event,
      action: 'edited',
      issue: { ...issue, number: this.#issue, title: `Issue ${this.#issue}` },
      repository: { ...repository, name: `bench-${kind}`, full_name: `octo-org/bench-${kind}` },
      sender: { ...sender, login: 'mona' },
    });
    const signature = createHmac('sha256', 'local-github-secret').update(body).digest('hex');
    const answer = await this.#request('POST', '/webhooks/github/acme', body, {
      'content-type': 'application/json',
      'x-github-event': 'issues',
      'x-github-delivery': randomUUID(),
      'x-hub-signature-256': `sha256=${signature}`,
    });
    const { runIds } = JSON.parse(answer.text) as { runIds?: string[] };
    const runId = runIds?.[0];
    if (answer.status !== 202 || !runId) throw new Error(`the webhook response was ${answer.status}, without a run`);
    return runId;
  }

  async oneAtATime(count: number, steps = STEPS) {
    const durations: number[] = [];
    const ingests: number[] = [];
    const counted = await this.counted(async () => {
      for (let index = 0; index < count; index += 1) {
        const sentAt = performance.now();
        const runId = await this.send(steps);
        ingests.push(performance.now() - sentAt);
        durations.push(await this.#finished(runId));
      }
    }, count);
    return {
      ...counted,
      p50Ms: percentile(durations, 50),
      p99Ms: percentile(durations, 99),
      ingestP50Ms: percentile(ingests, 50),
    };
  }

  async atOnce(count: number, concurrency: number) {
    const startedAt = performance.now();
    const counted = await this.counted(async () => {
      let left = count;
      const sender = async () => {
        while (left > 0) {
          left -= 1;
          await this.send(STEPS);
        }
      };
      await Promise.all(Array.from({ length: concurrency }, sender));
    }, count);
    return { ...counted, runsPerSecond: round(count / ((performance.now() - startedAt) / 1000)) };
  }

  /** Counts the requests of runs from the first webhook until all work is done. */
  async counted(work: () => Promise<unknown>, runs: number) {
    await this.settle();
    await this.#control('DELETE', 'requests');
    this.#logBytes.reset();
    const before = await this.functions();
    await work();
    await this.settle();
    const report = (await this.#control('GET', 'requests')) as RequestReport;
    const onPath = sum(report, (name, service) => PATH_FUNCTIONS.test(name) && service === 'dynamodb');
    const isOfRun = (name: string) => /^(Intake|Worker|Evidence|Approval|LiveFeed)/.test(name);
    const all = sum(report, (name) => !name.startsWith('Api') && !name.startsWith('Sweep'));
    const log = this.#logBytes.of(isOfRun, await this.#functionsSince(before), this.#host.stack);
    return {
      perRun: {
        dynamodb: round(total(onPath) / runs),
        aws: round(total(all) / runs),
        log: { application: round(log.application / runs), platform: round(log.platform / runs) },
      },
      byOperation: Object.fromEntries(
        Object.entries(all).map(([operation, count]) => [operation, round(count / runs)]),
      ),
    };
  }

  /** The requests of one sweep to DynamoDB, while nothing is due. */
  async requestsOfASweep(): Promise<number> {
    await this.settle();
    await this.#control('DELETE', 'requests');
    await this.#control('POST', 'sweep');
    const report = (await this.#control('GET', 'requests')) as RequestReport;
    return total(sum(report, (name, service) => name.startsWith('Sweep') && service === 'dynamodb'));
  }

  /** Waits until no run is queued or running and every finished run is sealed. */
  async settle(): Promise<void> {
    const until = Date.now() + WAIT_MAX_MS;
    while (Date.now() < until) {
      const functions = (await this.#control('GET', 'functions')) as Record<string, { busy: number; queued: number }>;
      const busy = Object.entries(functions).some(
        ([name, { busy, queued }]) => !name.startsWith('Api') && busy + queued > 0,
      );
      const open = busy || (await this.#open('queued')) || (await this.#open('running'));
      if (!open) return;
      await pause(50);
    }
    throw new Error(`the runs did not finish within ${WAIT_MAX_MS / 60_000} minutes`);
  }

  async #open(status: string): Promise<boolean> {
    const { runs } = (await this.#api(`/api/v1/runs?limit=1&status=${status}`)) as { runs: unknown[] };
    return runs.length > 0;
  }

  #consumesQueue(functionLogicalId: string): boolean {
    const own = this.#host.stack
      .ofType('AWS::Lambda::Function')
      .find(({ logicalId }) => logicalId === functionLogicalId);
    return this.#host.stack
      .ofType('AWS::Lambda::EventSourceMapping')
      .filter(({ properties }) => String(properties.EventSourceArn).includes(':sqs:'))
      .some(({ properties }) => [own?.ref, own?.arn].includes(String(properties.FunctionName)));
  }

  /** Runs that end within the window of the sealing function are sealed together. */
  async #sealed(runId: string): Promise<void> {
    const { evidence } = (await this.#api(`/api/v1/runs/${runId}`)) as { evidence: unknown };
    if (evidence) return;
    await pause(200);
    return this.#sealed(runId);
  }

  /** The run records how long it took, so few questions are enough, and each takes CPU time that the run needs. */
  async #finished(runId: string): Promise<number> {
    for (;;) {
      await pause(ASKED_EVERY_MS);
      const run = (await this.#api(`/api/v1/runs/${runId}/events?limit=1`)) as { status: string };
      if (run.status === 'succeeded') break;
      if (run.status === 'failed_terminal') throw new Error(`run ${runId} failed`);
    }
    const { durationMs } = (await this.#api(`/api/v1/runs/${runId}`)) as { durationMs: number };
    return durationMs;
  }

  async #api(path: string): Promise<unknown> {
    const answer = await this.#request('GET', path, '', { 'x-api-key': 'local-owner-key' });
    if (answer.status !== 200) throw new Error(`the response of ${path} was ${answer.status}`);
    return JSON.parse(answer.text);
  }

  #request(method: string, path: string, body: string, headers: Record<string, string>) {
    return httpRequest(`${this.#host.url}${path}`, { method, headers, body });
  }

  async #control(method: string, path: string, body?: unknown): Promise<unknown> {
    const answer = await fetch(`${this.#host.url}/_local/${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return answer.json();
  }
}

function labelling(size: number): Workflow {
  return Workflow.parse({
    name: `bench-${size}`,
    steps: Array.from({ length: size }, (_, index) => ({
      id: `label_${index}`,
      tool: 'github.labels.add',
      with: {
        owner: '{% trigger.owner %}',
        repo: '{% trigger.repo %}',
        number: '{% trigger.number %}',
        labels: [`label-${index}`],
      },
    })),
  });
}

/** Writes of which the first one needs an approval. */
function gated(kind: 'gated' | 'gated-5'): Workflow {
  const [step, ...rest] = labelling(kind === 'gated' ? 1 : STEPS).steps;
  return Workflow.parse({ name: `bench-${kind}`, steps: [{ ...step, risk: 'medium' }, ...rest] });
}

function difference(after: FunctionStats, before: FunctionStats | undefined): FunctionStats {
  const names = Object.keys(after) as (keyof FunctionStats)[];
  return Object.fromEntries(
    names.map((name) => [name, after[name] - (before?.[name] ?? 0)]),
  ) as unknown as FunctionStats;
}
