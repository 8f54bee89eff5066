import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { INDEXES } from '../lambdas/run/dynamo/dynamo-keys.ts';
import { startHost } from '../local/host/host.ts';
import { type Assembly, synthesize } from '../local/template/synthesize.ts';
import { DynamoDbUnits } from './bill/dynamodb-units.ts';
import { round } from './figures.ts';
import { isReader, MeasuredHost } from './measured-host.ts';
import { loadRuns } from './run-lists.ts';

/** What a run costs must depend neither on the runs before it nor on the other tenants of its stage. */
interface CostOfARun {
  dynamodbRequests: number;
  writeUnits: number;
  readUnits: number;
}

const RUNS_IN_THE_TABLE = [100, 10_000, 100_000];
/** A stage has up to 20. */
const TENANTS = [1, 10, 20];
const MEASURED_RUNS = 10;

export async function growthFigures(folder: string, change: (assembly: Assembly) => Assembly) {
  const atRunsInTheTable: Record<number, CostOfARun> = {};
  const assembly = change(await synthesize(join(folder, 'growth.out')));
  for (const runs of RUNS_IN_THE_TABLE) {
    const dataFolder = join(folder, `growth-${runs}-runs`);
    // The host creates its files; the runs are added while it does not use them.
    const host = await startHost({ port: 0, dataFolder, log: () => {}, assembly });
    await host.stop();
    loadRuns(host.stack, dataFolder, runs);
    atRunsInTheTable[runs] = await costOfARun(dataFolder, assembly);
  }
  const atTenants: Record<number, CostOfARun & { requestsOfAnIdleSweep: number }> = {};
  for (const count of TENANTS) {
    const stage = await synthesize(join(folder, `growth-${count}.out`), 'local', { local: stageOf(count) });
    const dataFolder = join(folder, `growth-${count}-tenants`);
    let requestsOfAnIdleSweep = 0;
    const cost = await costOfARun(dataFolder, change(stage), async (bench) => {
      requestsOfAnIdleSweep = await bench.requestsOfASweep();
    });
    atTenants[count] = { ...cost, requestsOfAnIdleSweep };
  }
  return { atRunsInTheTable, atTenants };
}

async function costOfARun(
  dataFolder: string,
  assembly: Assembly,
  besides?: (bench: MeasuredHost) => Promise<void>,
): Promise<CostOfARun> {
  const units = new DynamoDbUnits(Object.values(INDEXES));
  const host = await startHost({
    port: 0,
    dataFolder,
    assembly,
    log: () => {},
    observe: ({ service, operation, input, functionLogicalId }, { status, body }) => {
      if (service !== 'dynamodb' || status !== 200 || isReader(functionLogicalId)) return;
      units.observe(operation, input, JSON.parse(body.toString()));
    },
  });
  try {
    const bench = new MeasuredHost(host);
    await bench.define();
    // Warm functions have read their definitions.
    await bench.oneAtATime(1);
    await bench.settle();
    units.reset();
    const { perRun } = await bench.oneAtATime(MEASURED_RUNS);
    const { writes, indexWrites, reads } = units.report();
    await besides?.(bench);
    return {
      dynamodbRequests: perRun.dynamodb,
      writeUnits: round((writes + indexWrites) / MEASURED_RUNS),
      readUnits: round(reads / MEASURED_RUNS),
    };
  } finally {
    await host.stop();
  }
}

/** The local stage with this many tenants, of which acme is the first. */
function stageOf(count: number): object {
  const { context } = JSON.parse(readFileSync(join(import.meta.dirname, '..', 'cdk.json'), 'utf8'));
  const { local } = context.stages as Record<string, { tenants: string[]; issuers: { tenant: string }[] }>;
  if (!local) throw new Error('cdk.json has no stage local');
  const more = Array.from({ length: count }, (_, index) => `tenant-${index + 1}`);
  const tenants = [...local.tenants, ...more].slice(0, count);
  return { ...local, tenants, issuers: local.issuers.filter(({ tenant }) => tenants.includes(tenant)) };
}
