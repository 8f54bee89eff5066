import { randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { FunctionError } from '../aws/aws.ts';
import type { Caller } from '../aws/aws-endpoint.ts';
import type { FaultRule } from '../aws/faults.ts';
import { type Answer, passedRequests, type SimulatorsAt } from '../aws/passed-requests.ts';
import type { WireRequest } from '../aws/wire.ts';
import type { LocalCloudWatch } from '../cloud/cloudwatch/cloudwatch.ts';
import { parseLogLine } from '../cloud/cloudwatch/log-line.ts';
import type { HostClock } from '../host/clock.ts';
import type { ResolvedStack } from '../template/template.ts';
import { environmentOf, type FunctionDefinition, functionDefinitions } from './function-definition.ts';
import { FunctionInstance } from './function-instance.ts';
import { Metrics, type MetricTotal } from './metrics.ts';
import { INVOCATIONS_IN_A_CHAIN_MAX, oneMoreInvocation } from './recursion.ts';
import { retainWebAssembly } from './shared-webassembly.ts';

interface FunctionsOptions {
  stack: ResolvedStack;
  clock: Pick<HostClock, 'sharedOffset'>;
  awsEndpointUrl: string;
  /** The folder of a function's bundle, by logical id. */
  codeFolder(logicalId: string): string;
  log(functionLogicalId: string, line: string): void;
  /** Serves an AWS request that a thread has passed. */
  serveAws(request: WireRequest, answer: Answer): void;
  /** The simulators, which then also answer requests that threads pass. */
  simulators?: SimulatorsAt;
  /** Registers the function of an access key, before its thread runs. */
  registerCaller(accessKeyId: string, caller: Caller): void;
  /** Metrics of invocations and of log lines. */
  cloudWatch?: Pick<LocalCloudWatch, 'collect' | 'put'>;
  /** The injected fault of an invocation. */
  fault?(functionLogicalId: string): FaultRule | undefined;
  /** The maximum number of threads of a function. A smaller reservation in the template takes precedence. */
  concurrencyOf?(logicalId: string): number;
}

interface InvocationContext {
  awsRequestId?: string;
}

export interface FunctionStats {
  threads: number;
  busy: number;
  queued: number;
  /** The maximum number that ran at the same time. */
  peak: number;
  invocations: number;
  errors: number;
  /** Invocations that the recursive loop detection refused. */
  stoppedLoops: number;
  /** CPU time of the handler, in the threads of the function. */
  cpuMs: number;
  logLines: number;
  logBytes: number;
}

/** At least two, to find concurrency bugs. At most the number of cores, and four: each thread compiles its bundle and needs memory. */
export const DEFAULT_CONCURRENCY = Math.max(2, Math.min(4, availableParallelism()));
/** Lambda's limit for a synchronous request and its response. */
const PAYLOAD_LIMIT_BYTES = 6 * 1024 * 1024;

/** The functions of the template. Warm threads are reused, with one invocation each; further invocations wait. */
export class Functions {
  readonly #pools: FunctionPool[];
  readonly #byName = new Map<string, FunctionPool>();
  readonly #metrics = new Metrics();

  constructor(options: FunctionsOptions) {
    this.#pools = functionDefinitions(options.stack, options.codeFolder).map(
      (definition) => new FunctionPool(definition, options, this.#metrics),
    );
    for (const pool of this.#pools) {
      const { logicalId, name, arn } = pool.definition;
      for (const key of [logicalId, name, arn]) this.#byName.set(key, pool);
    }
  }

  /** Resolves to the result of the handler. Rejects with `FunctionError` if it threw, timed out or crashed. */
  async invoke(
    functionArnOrLogicalId: string,
    event: unknown,
    context: InvocationContext = {},
    chain?: string,
  ): Promise<unknown> {
    const withoutQualifier = functionArnOrLogicalId.replace(/(:function:[^:]+):.+$/, '$1');
    const pool = this.#byName.get(functionArnOrLogicalId) ?? this.#byName.get(withoutQualifier);
    if (!pool) throw new FunctionError('ResourceNotFoundException', `Function not found: ${functionArnOrLogicalId}`);
    const eventJson = JSON.stringify(event) ?? 'null';
    refuseTooLarge(eventJson, 'RequestEntityTooLargeException', 'Request');
    const resultJson = await pool.invoke(eventJson, { awsRequestId: randomUUID(), ...context }, chain);
    refuseTooLarge(resultJson, 'Function.ResponseSizeTooLarge', 'Response');
    return JSON.parse(resultJson);
  }

  /** Ends the thread with this access key like a crash of its runtime. Resolves when it has ended. */
  async crash(accessKeyId: string): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.crash(accessKeyId)));
  }

  /** No invocation runs or waits. */
  get idle(): boolean {
    return this.#pools.every((pool) => pool.idle);
  }

  stats(): Record<string, FunctionStats> {
    return Object.fromEntries(this.#pools.map((pool) => [pool.definition.logicalId, pool.stats()]));
  }

  metrics(): MetricTotal[] {
    return this.#metrics.list();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.stop()));
  }
}

function refuseTooLarge(json: string, errorType: string, what: string): void {
  const bytes = Buffer.byteLength(json);
  if (bytes <= PAYLOAD_LIMIT_BYTES) return;
  const message = `${what} payload size (${bytes} bytes) exceeded maximum allowed payload size (${PAYLOAD_LIMIT_BYTES} bytes).`;
  throw new FunctionError(errorType, message);
}

class FunctionPool {
  readonly definition: FunctionDefinition;
  readonly #options: FunctionsOptions;
  readonly #metrics: Metrics;
  readonly #limit: number;
  readonly #instances = new Set<FunctionInstance>();
  readonly #idle: FunctionInstance[] = [];
  readonly #waiting: { resolve(instance: FunctionInstance): void; reject(error: Error): void }[] = [];
  #started = 0;
  #busy = 0;
  #peak = 0;
  #invocations = 0;
  #errors = 0;
  #stoppedLoops = 0;
  #cpuMs = 0;
  #logLines = 0;
  #logBytes = 0;
  #stopped = false;

  constructor(definition: FunctionDefinition, options: FunctionsOptions, metrics: Metrics) {
    this.definition = definition;
    this.#options = options;
    this.#metrics = metrics;
    const offered = options.concurrencyOf?.(definition.logicalId) ?? DEFAULT_CONCURRENCY;
    this.#limit = Math.min(offered, definition.reservedConcurrency ?? offered);
  }

  async invoke(eventJson: string, requestContext: Record<string, unknown>, chain?: string): Promise<string> {
    const traceHeader = this.#continueChain(chain);
    const fault = this.#options.fault?.(this.definition.logicalId);
    if (this.#limit === 0 || fault?.kind === 'throttle') {
      this.#measure({ Throttles: 1 });
      throw new FunctionError('TooManyRequestsException', fault ? 'Rate Exceeded.' : 'the reserved concurrency is 0');
    }
    const instance = await this.#take();
    this.#invocations += 1;
    const startedMs = performance.now();
    const ended = (Errors: number) =>
      this.#measure({ Invocations: 1, Errors, Throttles: 0, Duration: performance.now() - startedMs });
    try {
      if (fault) throw new FunctionError('Runtime.ExitError', `injected by fault rule ${fault.id}`);
      const result = await instance.invoke(eventJson, requestContext, traceHeader);
      ended(0);
      return result;
    } catch (error) {
      this.#errors += 1;
      ended(1);
      throw error;
    } finally {
      this.#release(instance);
    }
  }

  /** The metrics in a log line. */
  #read(text: string): void {
    const line = parseLogLine(text);
    if (!line) return;
    this.#metrics.collect(this.definition.logicalId, line);
    this.#options.cloudWatch?.collect(this.definition.logicalId, line);
  }

  #measure(values: Record<string, number>): void {
    this.#options.cloudWatch?.put('AWS/Lambda', { FunctionName: this.definition.name }, values);
  }

  /** Lambda stops a recursive loop unless the function allows it. */
  #continueChain(chain: string | undefined): string {
    const { arn, allowsRecursion } = this.definition;
    const { count, traceHeader } = oneMoreInvocation(arn, chain);
    if (count <= INVOCATIONS_IN_A_CHAIN_MAX || allowsRecursion) return traceHeader;
    this.#stoppedLoops += 1;
    throw new FunctionError('RecursiveInvocationException', 'Lambda has detected and stopped a recursive loop');
  }

  async crash(accessKeyId: string): Promise<void> {
    for (const instance of this.#instances) if (instance.accessKeyId === accessKeyId) await instance.crash();
  }

  get idle(): boolean {
    return this.#busy === 0 && this.#waiting.length === 0;
  }

  stats(): FunctionStats {
    const [threads, queued] = [this.#instances.size, this.#waiting.length];
    const [busy, peak, invocations, errors] = [this.#busy, this.#peak, this.#invocations, this.#errors];
    const [cpuMs, logLines, logBytes] = [this.#cpuMs, this.#logLines, this.#logBytes];
    const counts = { threads, busy, queued, peak, invocations, errors, stoppedLoops: this.#stoppedLoops };
    return { ...counts, cpuMs, logLines, logBytes };
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const stopped = new FunctionError('ServiceException', 'the local host is stopping');
    for (const waiter of this.#waiting.splice(0)) waiter.reject(stopped);
    await Promise.all([...this.#instances].map((instance) => instance.crash()));
  }

  #take(): Promise<FunctionInstance> {
    if (this.#stopped) return Promise.reject(new FunctionError('ServiceException', 'the local host is stopping'));
    if (this.#busy >= this.#limit) {
      return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
    }
    this.#busy += 1;
    this.#peak = Math.max(this.#peak, this.#busy);
    return Promise.resolve(this.#warmOrNew());
  }

  /** Gives the slot to the next waiting invocation, in order. */
  #release(instance: FunctionInstance): void {
    if (instance.alive) this.#idle.push(instance);
    const next = this.#waiting.shift();
    if (next) next.resolve(this.#warmOrNew());
    else this.#busy -= 1;
  }

  /** Prefers the thread that was used last. */
  #warmOrNew(): FunctionInstance {
    for (let idle = this.#idle.pop(); idle; idle = this.#idle.pop()) if (idle.alive) return idle;
    return this.#start();
  }

  #start(): FunctionInstance {
    this.#started += 1;
    const { logicalId, roleLogicalId, codeFolder } = this.definition;
    retainWebAssembly(codeFolder);
    const accessKeyId = `LOCAL${logicalId}.${this.#started}`;
    this.#options.registerCaller(accessKeyId, { functionLogicalId: logicalId, roleLogicalId });
    const instance = new FunctionInstance({
      definition: this.definition,
      accessKeyId,
      environment: environmentOf(this.definition, { accessKeyId, awsEndpointUrl: this.#options.awsEndpointUrl }),
      clockOffset: this.#options.clock.sharedOffset,
      passed: passedRequests(this.#options),
      onCpuTime: (ms) => {
        this.#cpuMs += ms;
      },
      onLine: (line) => {
        this.#logLines += 1;
        this.#logBytes += Buffer.byteLength(line);
        this.#read(line);
        this.#options.log(logicalId, line);
      },
      onExit: () => this.#instances.delete(instance),
    });
    this.#instances.add(instance);
    return instance;
  }
}
