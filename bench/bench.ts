import { createHmac, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { GetExecutionHistoryCommand, ListExecutionsCommand, SFNClient } from '@aws-sdk/client-sfn';
import { DynamoDefinitions } from '../lambdas/pipeline/dynamo-definitions.ts';
import { INDEXES } from '../lambdas/run/dynamo/dynamo-keys.ts';
import { Workflow } from '../lambdas/workflow/workflow.ts';
import { REGION } from '../local/aws/aws.ts';
import { HOST_CREDENTIALS } from '../local/aws/aws-endpoint.ts';
import type { RequestReport } from '../local/aws/request-counts.ts';
import { tablesOf } from '../local/dynamodb/tables.ts';
import { type Host, startHost } from '../local/host/host.ts';
import type { FunctionStats } from '../local/lambda/functions.ts';
import { type Assembly, synthesize } from '../local/template/synthesize.ts';
import { resolveTemplate } from '../local/template/template.ts';
import { byTest } from '../test/fakes/by-test.ts';
import { agentFigures } from './agents.ts';
import { decisionToStepMs } from './approvals.ts';
import { DynamoDbUnits } from './bill/dynamodb-units.ts';
import { idleBill, idleTotal, printIdleBill } from './bill/idle-stage.ts';
import { PEERS } from './bill/prices.ts';
import { billOfRuns, type Measured, printBill, storageUsdAMonth, totalOf } from './bill/runs.ts';
import { cliStart } from './cli-start.ts';
import { coldStarts } from './cold-start.ts';
import { consoleFigures } from './console.ts';
import { liveFeedFigures } from './live-feed.ts';
import { LogBytes } from './log-bytes.ts';
import { policyDecisionMs } from './policy.ts';
import { runLists } from './run-lists.ts';

/**
 * Measures a run of five natural writes on the local host. The request counts are exact and comparable between machines. The
 * times are for this machine and include the simulated targets.
 */
const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    runs: { type: 'string', default: '2000' },
    sequential: { type: 'string', default: '200' },
    concurrency: { type: 'string', default: '32' },
    listed: { type: 'string', default: '100000' },
    /** Only the figures of agents. */
    agents: { type: 'boolean', default: false },
    /** Only the cost of a million runs. */
    bill: { type: 'boolean', default: false },
    /** Only the figures of the live feed and the console. */
    console: { type: 'boolean', default: false },
    /** Only the imports of the functions' bundles. */
    'cold-start': { type: 'boolean', default: false },
    /** `--no-socket`: agents are named no socket, so they only poll. */
    socket: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const RUNS = Number(options.runs);
const SEQUENTIAL = Number(options.sequential);
const CONCURRENCY = Number(options.concurrency);
const LISTED_RUNS = Number(options.listed);
const STEPS = 5;
/** The number of steps; or with an approval, one step or five. */
type Kind = number | 'gated' | 'gated-5';
const APPROVALS = 100;
const WORKFLOW_SIZES = [5, 50, 500];
const WAIT_MAX_MS = 15 * 60_000;
/** The functions between the webhook and the last commit of a run. Sealing and reading runs are not included. */
const PATH_FUNCTIONS = /^(Intake|Worker)/;

/** A command of an agent that prints a line. Policy allows every write. */
async function agentsOnly() {
  const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-bench-'));
  const host = await startHost({ port: 0, dataFolder, log: () => {}, assembly: await withoutExports(dataFolder) });
  try {
    await new Bench(host).defineAgentCommand();
    print('one agent with 20 commands, then 200 simulated agents');
    report({ ...(await agentFigures(host, join(dataFolder, 'bench-agent'))) });
  } finally {
    await host.stop();
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

/** A staging stage with two tenants and all other settings by default. */
const IDLE_STAGE = { kind: 'staging', tenants: ['acme', 'globex'], evidenceRetentionDays: 30 };

async function idleLines(folder: string) {
  const { template, stackName } = await synthesize(join(folder, 'idle.out'), 'idle', { idle: IDLE_STAGE });
  return idleBill(resolveTemplate(template, { stackName }));
}

const BILLED_RUNS = 20;

/** Both exports are on, and payloads have the size of those that GitHub sends. */
async function billOnly() {
  const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-bench-'));
  const units = new DynamoDbUnits(Object.values(INDEXES));
  const host = await startHost({
    port: 0,
    dataFolder,
    log: () => {},
    observe: ({ service, operation, input, functionLogicalId }, { status, body }) => {
      if (service !== 'dynamodb' || status !== 200 || isReader(functionLogicalId)) return;
      units.observe(operation, input, JSON.parse(body.toString()));
    },
  });
  try {
    const bench = new Bench(host, githubPayload());
    await bench.define();
    const measured: Record<string, Measured> = {};
    for (const [name, kind] of [
      ['no approval', STEPS],
      ['one approval', 'gated-5'],
    ] as const) {
      // Warm functions have their definitions, secrets and policies, as almost all of a million runs do.
      await bench.billed(1, kind, units);
      measured[name] = await bench.billed(BILLED_RUNS, kind, units);
    }
    const bills = Object.fromEntries(Object.entries(measured).map(([name, each]) => [name, billOfRuns(each)]));
    const idle = await idleLines(dataFolder);
    if (!options.json) {
      printBill(bills, console.log);
      printIdleBill(
        'USD a month for a stage (staging, two tenants) without traffic, from its template',
        idle,
        console.log,
      );
      return;
    }
    const totals = Object.fromEntries(Object.entries(bills).map(([name, lines]) => [name, round(totalOf(lines))]));
    const storage = Object.entries(measured).map(([name, each]) => [name, round(storageUsdAMonth(each))]);
    const detailed = (of: 'byRow' | 'byIndex') =>
      Object.fromEntries(Object.entries(measured).map(([name, { units }]) => [name, unitsOfARun(units[of])]));
    report({
      idleBill: { total: round(idleTotal(idle)), lines: idle },
      runsBill: {
        totals,
        lines: bills,
        storageUsdAMonth: Object.fromEntries(storage),
        writeUnitsByRow: detailed('byRow'),
        writeUnitsByIndex: detailed('byIndex'),
        peers: PEERS,
      },
    });
  } finally {
    await host.stop();
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

async function consoleOnly() {
  const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-bench-'));
  const host = await startHost({ port: 0, dataFolder, log: () => {}, assembly: await withoutExports(dataFolder) });
  try {
    const bench = new Bench(host);
    await bench.define();
    await bench.atOnce(2 * CONCURRENCY, CONCURRENCY);
    report(await feedAndConsole(host, bench));
  } finally {
    await host.stop();
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

const unitsOfARun = (counted: Record<string, number>) =>
  Object.fromEntries(Object.entries(counted).map(([kind, units]) => [kind, round(units / BILLED_RUNS)]));

/** Reading runs is not part of a run. The decision on an approval is. */
const isReader = (functionLogicalId: string) => /^(Api(?!Control|Approvals)|Keyed|Sweep)/.test(functionLogicalId);

/** An event of about 11 KB, as in GitHub's own examples. */
function githubPayload(): object {
  const definitions = createRequire(import.meta.url)('@octokit/webhooks-examples') as {
    name: string;
    examples: { action: string }[];
  }[];
  const examples = definitions.find(({ name }) => name === 'issues')?.examples ?? [];
  const [example] = examples.filter(({ action }) => action === 'edited');
  if (!example) throw new Error('GitHub has no example of an edited issue any more');
  return example;
}

async function feedAndConsole({ url }: Host, bench: Bench) {
  print('the live feed, with 500 connections');
  const liveFeed = await liveFeedFigures(url, (count) => bench.waitingRuns(count));
  print('the console: build, browser, npm start');
  return { liveFeed, console: await consoleFigures(url) };
}

async function coldStartsOnly() {
  const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-bench-'));
  try {
    const assembly = await synthesize(join(dataFolder, 'cdk.out'));
    report({ coldStarts: importsOf(assembly) });
  } finally {
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

/** Imports call nothing, so the addresses do not matter. */
function importsOf(assembly: Assembly) {
  const url = 'http://127.0.0.1:1';
  const stack = resolveTemplate(assembly.template, {
    stackName: assembly.stackName,
    awsEndpointUrl: url,
    hostUrl: url,
  });
  return coldStarts(stack, (logicalId) => {
    const code = stack.resources.get(logicalId)?.properties.Code as { S3Key: string };
    return assembly.codeFolder(code.S3Key);
  });
}

const print = (text: string) => process.stderr.write(`${text}\n`);

async function main() {
  const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-bench-'));
  // Exports are optional for a stage, so the cost of a run is measured without them.
  const assembly = await withoutExports(dataFolder);
  print(`lists of 50 out of ${LISTED_RUNS} runs, by filter`);
  const lists = await runLists(assembly, join(dataFolder, 'lists'), LISTED_RUNS);
  rmSync(join(dataFolder, 'lists'), { recursive: true });
  const logBytes = new LogBytes();
  const log = (name: string, line: string) => logBytes.line(name, line);
  const host = await startHost({ port: 0, dataFolder, log, assembly });
  try {
    const bench = new Bench(host, {}, logBytes);
    await bench.define();
    // Warm functions are measured, because each function reads its definitions once after its start.
    await bench.atOnce(2 * CONCURRENCY, CONCURRENCY);

    print(`${SEQUENTIAL} runs, one at a time`);
    const alone = await bench.oneAtATime(SEQUENTIAL);
    print(`${RUNS} runs, ${CONCURRENCY} at a time`);
    const together = await bench.atOnce(RUNS, CONCURRENCY);
    print('runs with 5, 50 and 500 steps');
    const requestsPerStep: Record<string, number> = {};
    for (const steps of WORKFLOW_SIZES) {
      const { perRun } = await bench.counted(() => bench.oneAtATime(1, steps), 1);
      requestsPerStep[steps] = round(perRun.dynamodb / steps);
    }
    print(`${APPROVALS} approvals`);
    const decisions = await bench.decisions(APPROVALS);
    const policy = await policyDecisionMs();
    print('starts of the command line');
    const cli = await cliStart(host.url);
    print('imports of the bundles');
    const imports = importsOf(assembly);
    const shown = await feedAndConsole(host, bench);
    const late = await bench.counted(() => bench.oneAtATime(20), 20);
    report({
      dynamodbRequestsPerRun: together.perRun.dynamodb,
      awsRequestsPerRun: together.perRun.aws,
      logBytesPerRun: alone.perRun.log,
      runsPerSecond: together.runsPerSecond,
      p50Ms: alone.p50Ms,
      p99Ms: alone.p99Ms,
      ingestP50Ms: alone.ingestP50Ms,
      requestsPerStep,
      decisionToStepP50Ms: percentile(decisions, 50),
      decisionToStepP99Ms: percentile(decisions, 99),
      policyColdMs: round(policy.coldMs),
      policyWarmMs: round(policy.warmMs),
      cliStart: cli,
      coldStarts: imports,
      ...shown,
      listsOf50: lists,
      requestsPerRunAtTableSize: {
        [SEQUENTIAL]: alone.perRun.dynamodb,
        [SEQUENTIAL + RUNS]: late.perRun.dynamodb,
      },
      requestsByOperation: together.byOperation,
    });
  } finally {
    await host.stop();
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

async function withoutExports(dataFolder: string): Promise<Assembly> {
  const assembly = await synthesize(join(dataFolder, 'cdk.out'));
  for (const { Properties } of Object.values(assembly.template.Resources ?? {})) {
    const { Variables } = (Properties?.Environment ?? {}) as { Variables?: Record<string, string> };
    if (Variables?.EXPORTS !== undefined) Variables.EXPORTS = '[]';
    if (!options.socket) delete Variables?.LIVE_URL;
  }
  return assembly;
}

class Bench {
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
    const before = { functions: await this.#functions(), calls: await this.#targetCalls() };
    const executions = await this.#transitions();
    await this.#control('DELETE', 'requests');
    units.reset();
    for (let each = 0; each < runs; each += 1) {
      const runId = await this.send(kind);
      if (kind === 'gated-5') await decisionToStepMs(this.#host.url, [runId]);
      else await this.#finished(runId);
    }
    await this.settle();
    const functions = Object.entries(await this.#functions()).map(
      ([name, stats]) => [name, difference(stats, before.functions[name])] as const,
    );
    const worked = functions.filter(([name, { invocations }]) => invocations > 0 && !isReader(name));
    const requests = (await this.#control('GET', 'requests')) as RequestReport;
    return {
      runs,
      units: units.report(),
      requests: onlyOf(requests, (name) => !isReader(name)),
      functions: Object.fromEntries(worked),
      // The webhook, and the decision.
      httpApiRequests: kind === 'gated-5' ? 2 * runs : runs,
      targetCalls: (await this.#targetCalls()) - before.calls,
      transitions: (await this.#transitions()) - executions,
    };
  }

  async #functions(): Promise<Record<string, FunctionStats>> {
    return (await this.#control('GET', 'functions')) as Record<string, FunctionStats>;
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
    const answer = await fetch(`${this.#host.url}/webhooks/github/acme`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-github-event': 'issues',
        'x-github-delivery': randomUUID(),
        'x-hub-signature-256': `sha256=${signature}`,
      },
      body,
    });
    const { runIds } = (await answer.json()) as { runIds?: string[] };
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
    const before = await this.#functions();
    await work();
    await this.settle();
    const report = (await this.#control('GET', 'requests')) as RequestReport;
    const onPath = sum(report, (name, service) => PATH_FUNCTIONS.test(name) && service === 'dynamodb');
    const isOfRun = (name: string) => /^(Intake|Worker|Evidence|Approval|LiveFeed)/.test(name);
    const all = sum(report, (name) => !name.startsWith('Api') && !name.startsWith('Sweep'));
    const after = Object.entries(await this.#functions()).map(([name, stats]): [string, FunctionStats] => {
      return [name, { ...stats, invocations: stats.invocations - (before[name]?.invocations ?? 0) }];
    });
    const log = this.#logBytes.of(isOfRun, Object.fromEntries(after), this.#host.stack);
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

  async #finished(runId: string): Promise<number> {
    for (;;) {
      const run = (await this.#api(`/api/v1/runs/${runId}/events?limit=1`)) as { status: string };
      if (run.status === 'succeeded') break;
      if (run.status === 'failed_terminal') throw new Error(`run ${runId} failed`);
      await pause(2);
    }
    const { durationMs } = (await this.#api(`/api/v1/runs/${runId}`)) as { durationMs: number };
    return durationMs;
  }

  async #api(path: string): Promise<unknown> {
    const answer = await fetch(`${this.#host.url}${path}`, { headers: { 'x-api-key': 'local-owner-key' } });
    if (!answer.ok) throw new Error(`the response of ${path} was ${answer.status}`);
    return answer.json();
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

/** The same report for some of the functions. */
function onlyOf(report: RequestReport, counts: (name: string) => boolean): RequestReport {
  const functions = Object.fromEntries(Object.entries(report.functions).filter(([name]) => counts(name)));
  const services: RequestReport['services'] = {};
  for (const each of Object.values(functions)) {
    for (const [service, operations] of Object.entries(each)) {
      const all = services[service] ?? {};
      services[service] = all;
      for (const [operation, count] of Object.entries(operations)) all[operation] = (all[operation] ?? 0) + count;
    }
  }
  return { ...report, functions, services };
}

function sum(
  report: RequestReport,
  counts: (functionName: string, service: string) => boolean,
): Record<string, number> {
  const found: Record<string, number> = {};
  for (const [name, services] of Object.entries(report.functions)) {
    for (const [service, operations] of Object.entries(services)) {
      if (!counts(name, service)) continue;
      for (const [operation, count] of Object.entries(operations)) {
        const key = `${service}.${operation}`;
        found[key] = (found[key] ?? 0) + count;
      }
    }
  }
  return found;
}

const total = (counts: Record<string, number>) => Object.values(counts).reduce((a, b) => a + b, 0);
const round = (value: number) => Math.round(value * 100) / 100;

function percentile(values: number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return round(sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? 0);
}

function report(figures: Record<string, unknown>): void {
  if (options.json) {
    console.log(JSON.stringify(figures, null, 2));
    return;
  }
  for (const [name, figure] of Object.entries(figures)) {
    console.log(`${name.padEnd(28)} ${typeof figure === 'object' ? JSON.stringify(figure) : figure}`);
  }
}

if (options.agents) await agentsOnly();
else if (options.bill) await billOnly();
else if (options.console) await consoleOnly();
else if (options['cold-start']) await coldStartsOnly();
else await main();
