/** One running execution: connects the interpreter to the clock, the functions and the journal. */
import { randomBytes } from 'node:crypto';
import { AwsError, FunctionError, type InvokeFunction } from '../../aws/aws.ts';
import type { HostClock } from '../../host/clock.ts';
import type { Fields } from '../request-fields.ts';
import { parseDefinition } from './asl-definition.ts';
import { type Effects, runMachine, StateError, type TaskRequest } from './asl-interpreter.ts';
import type { ExecutionEnd, ExecutionRow, StepFunctionsStore } from './store.ts';

/** How a task ended, as stored in the journal. */
export type Outcome = { result: unknown } | { error: string; cause: string };

/** The journal entry of a task that was stopped because another branch failed. After a restart its branch stays stopped. */
const ABORTED = 'aborted';

/** Ends the interpreter. No Retry or Catch matches it. */
class Aborted extends Error {}

const TOKEN_BYTES = 96;
const MAX_RESULT_BYTES = 262_144;

interface ExecutionOptions {
  row: ExecutionRow;
  store: StepFunctionsStore;
  clock: HostClock;
  invoke: InvokeFunction;
  onEnd: () => void;
}

export class Execution implements Effects {
  readonly #options: ExecutionOptions;
  /** The function that ends each pending task, by the key of the task. */
  readonly #pending = new Map<string, (outcome: Outcome) => void>();
  readonly #abort = new AbortController();
  /** A wait that ended before this time needs no timer, so that a restart continues at once. */
  readonly #resumedMs: number;
  /** True once the execution has ended or the host stops. Later results are ignored. */
  #ended = false;

  constructor(options: ExecutionOptions) {
    this.#options = options;
    this.#resumedMs = options.clock.now();
  }

  /** Starts from the beginning, or continues from the journal. */
  start(): void {
    const { row } = this.#options;
    this.record('started', 'ExecutionStarted', { executionStartedEventDetails: { input: row.input } });
    const definition = parseDefinition(row.arn, JSON.parse(row.definition));
    const run = { effects: this, input: JSON.parse(row.input), signal: this.#abort.signal, path: '', due: {} };
    runMachine(definition, run).then(
      () => this.#end({ status: 'SUCCEEDED', output: row.input }),
      (error) => {
        if (error instanceof Aborted) return;
        const known = error instanceof StateError ? error : new StateError('States.Runtime', String(error));
        this.#end({ status: 'FAILED', error: known.error, cause: known.causeText });
      },
    );
  }

  #end(end: Omit<ExecutionEnd, 'stopMs'>): void {
    if (this.#ended) return;
    const { status, output, error, cause } = end;
    const type = status === 'SUCCEEDED' ? 'Succeeded' : 'Failed';
    const details = status === 'SUCCEEDED' ? { output } : { error, cause };
    this.record('closed', `Execution${type}`, { [`execution${type}EventDetails`]: details });
    this.#options.store.end(this.#arn, { ...end, stopMs: this.now() });
    this.suspend();
    this.#options.onEnd();
  }

  /** Stops waiting without ending: the next start continues the execution from its journal. */
  suspend(): void {
    this.#ended = true;
    this.#pending.clear();
    this.#abort.abort();
  }

  /** Ends the task that waits with a token. False if no such task is pending. */
  completeTask(key: string, result: unknown): boolean {
    const settle = this.#pending.get(key);
    settle?.({ result });
    return settle !== undefined;
  }

  now(): number {
    return this.#options.clock.now();
  }

  known<Value>(key: string): Value | undefined {
    return this.#options.store.journaled(this.#arn, key) as Value | undefined;
  }

  once<Value>(key: string, create: () => Value): Value {
    const known = this.known<Value>(key);
    if (known !== undefined) return known;
    const value = create();
    this.#options.store.journal(this.#arn, key, value);
    return value;
  }

  openToken(key: string): string {
    return this.once(`${key} token`, () => {
      const token = randomBytes(TOKEN_BYTES).toString('base64');
      this.#options.store.openTask({ token, arn: this.#arn, key });
      return token;
    });
  }

  sleepUntil(atMs: number, signal: AbortSignal): Promise<void> {
    if (atMs <= this.#resumedMs && !signal.aborted) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = this.#options.clock.at(atMs, () => {
        signal.removeEventListener('abort', abort);
        resolve();
      });
      const abort = () => {
        timer.cancel();
        reject(new Aborted());
      };
      if (signal.aborted) abort();
      else signal.addEventListener('abort', abort, { once: true });
    });
  }

  record(key: string, type: string, details: Fields): void {
    if (!this.#ended) this.#options.store.record(this.#arn, key, this.now(), type, details);
  }

  async runTask(key: string, request: TaskRequest, signal: AbortSignal): Promise<void> {
    const known = this.known<Outcome | typeof ABORTED>(`${key} outcome`);
    if (known === ABORTED) return new Promise(() => {});
    const outcome = known ?? (await this.#outcomeOf(key, request, signal));
    if ('error' in outcome) throw new StateError(outcome.error, outcome.cause);
  }

  #outcomeOf(key: string, request: TaskRequest, signal: AbortSignal): Promise<Outcome> {
    const { store } = this.#options;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(new Aborted());
      const settle = (outcome: Outcome) => {
        if (this.#ended || !this.#pending.delete(key)) return;
        timer?.cancel();
        signal.removeEventListener('abort', abort);
        store.endTask(this.#arn, key, `${key} outcome`, outcome);
        this.#recordOutcome(key, request, outcome);
        resolve(outcome);
      };
      const timer =
        request.endsAtMs === undefined
          ? undefined
          : this.#options.clock.at(request.endsAtMs, () => settle({ error: 'States.Timeout', cause: '' }));
      const abort = () => {
        timer?.cancel();
        // An execution that has ended or is suspended has no pending tasks, and its journal stays unchanged.
        if (this.#pending.delete(key)) store.endTask(this.#arn, key, `${key} outcome`, ABORTED);
        reject(new Aborted());
      };
      this.#pending.set(key, settle);
      signal.addEventListener('abort', abort, { once: true });
      this.#invoke(key, request, settle);
    });
  }

  /**
   * Invokes the function of a task. If the task has a token, the function's return is only recorded, so that a restart does
   * not invoke it again. A failed invocation ends the task in both cases. An invocation that a crash interrupted is repeated.
   */
  #invoke(key: string, { token, functionArn, payload, resource }: TaskRequest, settle: (outcome: Outcome) => void) {
    if (token !== undefined && this.known(`${key} submitted`) !== undefined) return;
    const parameters = JSON.stringify({ functionArn, payload });
    this.record(`${key} scheduled`, 'TaskScheduled', {
      taskScheduledEventDetails: { resourceType: 'lambda', resource, parameters },
    });
    const invoked = (async () => this.#options.invoke(functionArn, payload))();
    invoked.then(
      (result) => {
        if (token === undefined) settle(outcomeOf(result));
        else if (this.#pending.has(key)) this.once(`${key} submitted`, () => true);
      },
      (error) => settle(failureOf(error)),
    );
  }

  #recordOutcome(key: string, { resource }: TaskRequest, outcome: Outcome): void {
    const [type, details] =
      'result' in outcome ? ['Succeeded', { output: JSON.stringify(outcome.result) }] : ['Failed', outcome];
    this.record(`${key} ended`, `Task${type}`, {
      [`task${type}EventDetails`]: { resourceType: 'lambda', resource, ...details },
    });
  }

  get #arn(): string {
    return this.#options.row.arn;
  }
}

function outcomeOf(result: unknown): Outcome {
  const bytes = Buffer.byteLength(JSON.stringify(result ?? null));
  if (bytes <= MAX_RESULT_BYTES) return { result: result ?? null };
  return {
    error: 'States.DataLimitExceeded',
    cause: `The result has ${bytes} bytes; the limit is ${MAX_RESULT_BYTES}.`,
  };
}

function failureOf(error: unknown): Outcome {
  if (error instanceof FunctionError) {
    const { errorType, message } = error;
    return { error: errorType, cause: JSON.stringify({ errorType, errorMessage: message }) };
  }
  // AWS reports a denied invocation as Lambda.AWSLambdaException, which CDK's default Retry repeats for two minutes. This name
  // is not retried: the execution fails at once, and its cause names the missing grant.
  if (error instanceof AwsError) return { error: `Lambda.${error.code}`, cause: error.message };
  return { error: 'Lambda.Unknown', cause: error instanceof Error ? error.message : String(error) };
}
