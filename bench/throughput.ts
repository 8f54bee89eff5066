import { round } from './figures.ts';
import type { MeasuredHost } from './measured-host.ts';

interface CpuMs {
  /** Everything: this process with all its threads. */
  total: number;
  /** The main thread: the host, its simulators and the sender of the webhooks. */
  mainThread: number;
  functions: Record<string, number>;
}

/**
 * Runs per second and latency, with the CPU time of a run by where it was used: on a small machine CPU time limits both, and it
 * varies less than time.
 */
export async function throughputFigures(
  bench: MeasuredHost,
  { runs, sequential, concurrency }: { runs: number; sequential: number; concurrency: number },
) {
  const before = await cpuMs(bench);
  const together = await bench.atOnce(runs, concurrency);
  const after = await cpuMs(bench);
  const alone = await bench.oneAtATime(sequential);
  return {
    runsPerSecond: together.runsPerSecond,
    p50Ms: alone.p50Ms,
    p99Ms: alone.p99Ms,
    ingestP50Ms: alone.ingestP50Ms,
    cpuMsPerRun: perRun(before, after, runs),
    awsRequestsPerRun: together.perRun.aws,
  };
}

function perRun(before: CpuMs, after: CpuMs, runs: number) {
  const each = (name: 'total' | 'mainThread') => round((after[name] - before[name]) / runs);
  const functions = Object.entries(after.functions)
    .map(([name, ms]): [string, number] => [name, round((ms - (before.functions[name] ?? 0)) / runs)])
    .filter(([, ms]) => ms > 0);
  return {
    total: each('total'),
    mainThread: each('mainThread'),
    deployedCode: round(functions.reduce((sum, [, ms]) => sum + ms, 0)),
    functions: Object.fromEntries(functions),
  };
}

async function cpuMs(bench: MeasuredHost): Promise<CpuMs> {
  const ms = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1000;
  const stats = Object.entries(await bench.functions());
  return {
    total: ms(process.cpuUsage()),
    mainThread: ms(process.threadCpuUsage()),
    functions: Object.fromEntries(stats.map(([name, { cpuMs }]) => [name.replace(/[0-9A-F]{8}$/, ''), cpuMs])),
  };
}
