import type { RequestReport } from '../../local/aws/request-counts.ts';
import type { FunctionStats } from '../../local/lambda/functions.ts';
import type { Units } from './dynamodb-units.ts';
import { GIGABYTE, PEERS, PRICES } from './prices.ts';

const RUNS = 1_000_000;
const MEMORY_GIGABYTES = 512 / 1024;
/** Lambda gives a whole core to 1,769 MB. */
const CORES = 512 / 1769;
/** Assumed, because a local engine has no network: the time in which a function waits for a call of AWS, or of a target. */
const AWS_CALL_MS = 6;
const TARGET_CALL_MS = 150;
/** Each line of CloudWatch counts this many bytes more. */
const LOG_LINE_BYTES = 26;

/** What the measured runs needed, all together. */
export interface Measured {
  runs: number;
  units: Units;
  requests: RequestReport;
  /** Of the functions that work for runs; reading runs is not included. */
  functions: Record<string, FunctionStats>;
  /** Of Lambda's own lines. */
  platformLogBytes: number;
  /** Invocations with messages of a queue. */
  queueBatches: number;
  httpApiRequests: number;
  targetCalls: number;
  transitions: number;
}

export interface BillLine {
  line: string;
  perRun: number;
  usd: number;
  /** Depends on the customer's systems and not on this one. */
  besides?: true;
}

/** The bill of a million such runs, line by line. */
export function billOfRuns(measured: Measured): BillLine[] {
  const { runs, units, functions } = measured;
  const stats = Object.values(functions);
  const sum = (of: (each: FunctionStats) => number) => stats.reduce((total, each) => total + of(each), 0);
  const invocations = sum((each) => each.invocations);
  const calls = (service: string, ...operations: string[]) =>
    Object.entries(measured.requests.services[service] ?? {})
      .filter(([operation]) => operations.length === 0 || operations.includes(operation))
      .reduce((total, [, count]) => total + count, 0);
  const allCalls = Object.keys(measured.requests.services).reduce((total, service) => total + calls(service), 0);
  const sent = calls('sqs');
  const gigabyteSeconds = (ms: number) => (ms / 1000) * MEMORY_GIGABYTES;
  const logBytes = sum((each) => each.logBytes + each.logLines * LOG_LINE_BYTES) + measured.platformLogBytes;
  const line = (name: string, count: number, price: number): BillLine => ({
    line: name,
    perRun: count / runs,
    usd: (count / runs) * price * RUNS,
  });
  return [
    line('DynamoDB write units', units.writes, PRICES.dynamoDbWriteUnit),
    line('DynamoDB write units of indexes', units.indexWrites, PRICES.dynamoDbWriteUnit),
    line('DynamoDB read units', units.reads, PRICES.dynamoDbReadUnit),
    // Each message is sent by itself; an invocation receives and deletes its messages together.
    line('SQS requests', sent + 2 * measured.queueBatches, PRICES.sqsRequest + PRICES.sqsFairRequestSurcharge),
    line('Lambda requests', invocations, PRICES.lambdaRequest),
    line('Lambda GB-seconds, CPU', gigabyteSeconds(sum((each) => each.cpuMs) / CORES), PRICES.lambdaArmGigabyteSecond),
    line('Lambda GB-seconds, waiting for AWS', gigabyteSeconds(allCalls * AWS_CALL_MS), PRICES.lambdaArmGigabyteSecond),
    line('HTTP API requests', measured.httpApiRequests, PRICES.httpApiRequest),
    line('S3 puts', calls('s3', 'PutObject'), PRICES.s3Put),
    line('S3 gets', calls('s3', 'GetObject', 'HeadObject'), PRICES.s3Get),
    line('KMS signatures', calls('kms', 'Sign'), PRICES.kmsSignature),
    line('Secrets Manager requests', calls('secretsmanager'), PRICES.secretsManagerRequest),
    line('CloudWatch Logs, GB', logBytes / GIGABYTE, PRICES.logsGigabyte),
    line('Step Functions transitions', measured.transitions, PRICES.stepFunctionsTransition),
    {
      ...line(
        'besides: GB-seconds, waiting for targets',
        gigabyteSeconds(measured.targetCalls * TARGET_CALL_MS),
        PRICES.lambdaArmGigabyteSecond,
      ),
      besides: true,
    },
  ];
}

/** The signature, and the objects with bundles and SIEM lines, are for all runs that are sealed together. */
const SEAL_USD = PRICES.kmsSignature + 2 * PRICES.s3Put;

/** Lambda reads a queue with five pollers, each of which fills its own batch. */
const POLLERS = 5;
/** `sealWindowSeconds` of a stage, by default. */
const DEFAULT_WINDOW_SECONDS = 20;
const MONTH_SECONDS = 30 * 24 * 60 * 60;
/** Of a million runs that are evenly spread over a month: a window begins with the first run of a batch. */
const TOGETHER_IN_A_MONTH = 1 + ((RUNS / MONTH_SECONDS) * DEFAULT_WINDOW_SECONDS) / POLLERS;

/** What the bill depends on: how many runs end within the window in which they wait for each other. */
export function printSeals(measured: Record<string, Measured>, print: (text: string) => void): void {
  for (const [name, { runs, requests }] of Object.entries(measured)) {
    const together = runs / (requests.services.kms?.Sign ?? runs);
    const more = (count: number) => ((1 / count - 1 / together) * SEAL_USD * RUNS).toFixed(2);
    const inAMonth = `evenly spread over a month, with ${TOGETHER_IN_A_MONTH.toFixed(1)}: ${more(TOGETHER_IN_A_MONTH)} USD more`;
    print(`${name}: ${together.toFixed(1)} runs sealed together; ${inAMonth}, each alone: ${more(1)} USD more`);
  }
}

export const totalOf = (lines: readonly BillLine[]): number =>
  lines.reduce((sum, { usd, besides }) => sum + (besides ? 0 : usd), 0);

/** A month of what the rows of a million runs occupy. It is not in the total: the retention of the stage decides. */
export const storageUsdAMonth = ({ runs, units }: Measured): number =>
  (units.storedBytes / runs / GIGABYTE) * RUNS * PRICES.dynamoDbGigabyteMonth;

export function printBill(bills: Record<string, BillLine[]>, print: (text: string) => void): void {
  const names = Object.keys(bills);
  const [first = []] = Object.values(bills);
  const row = (title: string, cells: string[]) =>
    print(title.padEnd(42) + cells.map((cell) => cell.padStart(26)).join(''));
  const lineAt = (index: number) => {
    const cells = names.map((name) => {
      const { perRun = 0, usd = 0 } = bills[name]?.[index] ?? {};
      return `${perRun.toPrecision(4)} → ${usd.toFixed(2)}`;
    });
    row(first[index]?.line ?? '', cells);
  };
  print('USD for a million runs of five governed steps, at list prices (us-east-1); counts are for one run');
  row('', names);
  for (const [index, { besides }] of first.entries()) if (!besides) lineAt(index);
  row(
    'total',
    names.map((name) => totalOf(bills[name] ?? []).toFixed(2)),
  );
  for (const [index, { besides }] of first.entries()) if (besides) lineAt(index);
  print(
    `waiting assumed: ${AWS_CALL_MS} ms for a call of AWS, ${TARGET_CALL_MS} ms for one of a target; 512 MB, ${CORES.toFixed(2)} of a core`,
  );
  print('others, without compute and data, for five steps:');
  for (const { name, usd, of } of PEERS) print(`  ${name.padEnd(32)} ${String(usd).padStart(5)}  ${of}`);
}
