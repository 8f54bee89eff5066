import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AGENT_PREFIX, INDEXES } from '../lambdas/run/dynamo/dynamo-keys.ts';
import { type Host, startHost } from '../local/host/host.ts';
import { type Assembly, synthesize } from '../local/template/synthesize.ts';
import { resolveTemplate } from '../local/template/template.ts';
import { agentFigures } from './agents.ts';
import { DynamoDbUnits } from './bill/dynamodb-units.ts';
import { idleBill, idleTotal, printIdleBill } from './bill/idle-stage.ts';
import { PEERS } from './bill/prices.ts';
import { billOfRuns, type Measured, printBill, printSeals, storageUsdAMonth, totalOf } from './bill/runs.ts';
import { cliStart } from './cli-start.ts';
import { coldStarts } from './cold-start.ts';
import { consoleFigures } from './console.ts';
import { percentile, round } from './figures.ts';
import { growthFigures } from './growth.ts';
import { liveFeedFigures } from './live-feed.ts';
import { LogBytes } from './log-bytes.ts';
import { isReader, MeasuredHost, STEPS, WORKFLOW_SIZES } from './measured-host.ts';
import { benchOptions } from './options.ts';
import { policyDecisionMs } from './policy.ts';
import { runLists } from './run-lists.ts';
import { sessionFigures } from './sessions.ts';
import { throughputFigures } from './throughput.ts';

/**
 * Measures a run of five natural writes on the local host. The request counts are exact and comparable between machines. The
 * times are for this machine and include the simulated targets.
 */
const given = benchOptions(process.argv.slice(2));
if (!given.values) {
  (given.exitCode === 0 ? console.log : console.error)(given.print);
  process.exit(given.exitCode);
}
const options = given.values;
const RUNS = Number(options.runs);
const SEQUENTIAL = Number(options.sequential);
const CONCURRENCY = Number(options.concurrency);
const LISTED_RUNS = Number(options.listed);
const APPROVALS = 100;
/** V8 optimizes what has run often, so fewer would measure its compiler. */
const WARM_UP_RUNS = 300;

/** A command of an agent that prints a line. Policy allows every write. */
async function agentsOnly() {
  const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-bench-'));
  const units = new DynamoDbUnits(Object.values(INDEXES));
  let requests = 0;
  const host = await startHost({
    port: 0,
    dataFolder,
    log: () => {},
    assembly: await withoutExports(dataFolder),
    observe: ({ service, operation, input, functionLogicalId }, { status, body }) => {
      const isSearch = service === 'dynamodb' && operation === 'Query' && /^Worker/.test(functionLogicalId);
      if (!isSearch || status !== 200 || !JSON.stringify(input).includes(AGENT_PREFIX)) return;
      requests += 1;
      units.observe(operation, input, JSON.parse(body.toString()));
    },
  });
  try {
    await new MeasuredHost(host).defineAgentCommand();
    print('one agent with 20 commands, then 200 and 1,000 simulated agents');
    const searches = () => ({ requests, units: units.report().reads });
    report({ ...(await agentFigures(host, join(dataFolder, 'bench-agent'), searches)) });
  } finally {
    await host.stop();
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

async function sessionsOnly() {
  const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-bench-'));
  const host = await startHost({ port: 0, dataFolder, log: () => {}, assembly: await withoutExports(dataFolder) });
  try {
    const bench = new MeasuredHost(host);
    report(await sessionFigures(host.url, () => bench.settle()));
  } finally {
    await host.stop();
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

/** A staging stage with two tenants and all other settings by default. */
const IDLE_STAGE = { kind: 'staging', tenants: ['acme', 'globex'], evidenceRetentionDays: 30 };

async function idleLines(folder: string) {
  const outdir = join(folder, 'idle.out');
  const { template, stackName } = options.stage
    ? await synthesize(outdir, options.stage)
    : await synthesize(outdir, 'idle', { idle: IDLE_STAGE });
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
    assembly: withSealWindow(withoutTraces(await synthesize(join(dataFolder, 'cdk.out')))),
    log: () => {},
    observe: ({ service, operation, input, functionLogicalId }, { status, body }) => {
      if (service !== 'dynamodb' || status !== 200 || isReader(functionLogicalId)) return;
      units.observe(operation, input, JSON.parse(body.toString()));
    },
  });
  try {
    const bench = new MeasuredHost(host, githubPayload());
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
      printSeals(measured, console.log);
      printIdleBill(
        `USD a month for a stage (${options.stage ?? 'staging, two tenants'}) without traffic, from its template`,
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

async function throughputOnly() {
  const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-bench-'));
  const host = await startHost({ port: 0, dataFolder, log: () => {}, assembly: await withoutExports(dataFolder) });
  try {
    const bench = new MeasuredHost(host);
    await bench.define();
    await bench.atOnce(WARM_UP_RUNS, CONCURRENCY);
    report(await throughputFigures(bench, { runs: RUNS, sequential: SEQUENTIAL, concurrency: CONCURRENCY }));
  } finally {
    await host.stop();
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

async function consoleOnly() {
  const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-bench-'));
  const host = await startHost({ port: 0, dataFolder, log: () => {}, assembly: await withoutExports(dataFolder) });
  try {
    const bench = new MeasuredHost(host);
    await bench.define();
    await bench.atOnce(2 * CONCURRENCY, CONCURRENCY);
    // Decisions are measured with warm functions, as in the whole bench.
    await bench.decisions(2 * CONCURRENCY);
    report(await feedAndConsole(host, bench));
  } finally {
    await host.stop();
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

async function growthOnly() {
  const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-bench-'));
  try {
    report({ growth: await growthFigures(dataFolder, asCounted) });
  } finally {
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

const unitsOfARun = (counted: Record<string, number>) =>
  Object.fromEntries(Object.entries(counted).map(([kind, units]) => [kind, round(units / BILLED_RUNS)]));

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

async function feedAndConsole({ url }: Host, bench: MeasuredHost) {
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
  const assembly = await withoutExports(dataFolder);
  print(`lists of 50 out of ${LISTED_RUNS} runs, by filter`);
  const lists = await runLists(assembly, join(dataFolder, 'lists'), LISTED_RUNS);
  rmSync(join(dataFolder, 'lists'), { recursive: true });
  const logBytes = new LogBytes();
  const log = (name: string, line: string) => logBytes.line(name, line);
  const host = await startHost({ port: 0, dataFolder, log, assembly });
  try {
    const bench = new MeasuredHost(host, {}, logBytes);
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
    print('runs beside 100,000 others, and with 20 tenants');
    const growth = await growthFigures(dataFolder, asCounted);
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
      policyKnownMs: round(policy.knownMs),
      cliStart: cli,
      coldStarts: imports,
      ...shown,
      listsOf50: lists,
      growth,
      requestsByOperation: together.byOperation,
    });
  } finally {
    await host.stop();
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

/** As in a stage by default. */
function withoutTraces(assembly: Assembly): Assembly {
  for (const { Properties } of Object.values(assembly.template.Resources ?? {})) {
    const { Variables } = (Properties?.Environment ?? {}) as { Variables?: Record<string, string> };
    delete Variables?.TRACES_URL;
  }
  return assembly;
}

/** Enough for ten runs one after the other, so that full batches are measured. */
const MEASURED_WINDOW_SECONDS = 10;

function withSealWindow(assembly: Assembly): Assembly {
  for (const { Type, Properties } of Object.values(assembly.template.Resources ?? {})) {
    if (Type !== 'AWS::Lambda::EventSourceMapping' || !JSON.stringify(Properties?.FunctionName).includes('Seal'))
      continue;
    Object.assign(Properties ?? {}, { MaximumBatchingWindowInSeconds: MEASURED_WINDOW_SECONDS });
  }
  return assembly;
}

const withoutExports = async (dataFolder: string): Promise<Assembly> =>
  asCounted(await synthesize(join(dataFolder, 'cdk.out')));

/** Exports and traces are optional for a stage, so the cost of a run is counted without them. */
function asCounted(synthesized: Assembly): Assembly {
  const assembly = withoutTraces(synthesized);
  for (const { Properties } of Object.values(assembly.template.Resources ?? {})) {
    const { Variables } = (Properties?.Environment ?? {}) as { Variables?: Record<string, string> };
    if (Variables?.EXPORTS !== undefined) Variables.EXPORTS = '[]';
    if (!options.socket) delete Variables?.LIVE_URL;
  }
  return assembly;
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
else if (options.sessions) await sessionsOnly();
else if (options.bill) await billOnly();
else if (options.console) await consoleOnly();
else if (options.throughput) await throughputOnly();
else if (options.growth) await growthOnly();
else if (options['cold-start']) await coldStartsOnly();
else await main();
