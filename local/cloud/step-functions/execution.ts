/** One running execution: the interpreter's effects on the clock, the functions and the journal. */
import { randomBytes } from 'node:crypto';
import { AwsError, FunctionError, type InvokeFunction } from '../../aws/aws.ts';
import type { HostClock, Timer } from '../../host/clock.ts';
import type { Fields } from '../request-fields.ts';
import type { MachineDefinition } from './asl-definition.ts';
import { type Effects, runMachine, type TaskRequest } from './asl-interpreter.ts';
import { StateError } from './asl-paths.ts';
import type { Closing, ExecutionRow, StepFunctionsStore } from './store.ts';

/** How a task ended, as journaled. */
type Outcome = { result: unknown } | { error: string; cause: string };

/** Journaled for a task that ended because another branch failed: on replay its branch never goes on. */
const ABORTED = 'aborted';

/** Ends the interpreter from outside; no Retry or Catch sees it. */
class Aborted extends Error {}

interface PendingTask {
  request: TaskRequest;
  finish(outcome: Outcome): void;
  timers: Timer[];
}

const TOKEN_BYTES = 96;
const MAX_RESULT_BYTES = 262_144;

export class Execution implements Effects {
  readonly #row: ExecutionRow;
  readonly #store: StepFunctionsStore;
  readonly #clock: HostClock;
  readonly #invoke: InvokeFunction;
  readonly #onClosed: () => void;
  readonly #definition: MachineDefinition;
  readonly #pending = new Map<string, PendingTask>();
  readonly #abort = new AbortController();
  /** Waits that were over by then are replayed without the clock, so that a replay takes no time at all. */
  readonly #resumedMs: number;
  #deadline?: Timer;
  /** Set when the execution has closed or the host stops: whatever arrives later is ignored. */
  #ended = false;

  constructor(options: {
    row: ExecutionRow;
    store: StepFunctionsStore;
    clock: HostClock;
    invoke: InvokeFunction;
    onClosed: () => void;
  }) {
    this.#row = options.row;
    this.#store = options.store;
    this.#clock = options.clock;
    this.#invoke = options.invoke;
    this.#onClosed = options.onClosed;
    this.#definition = JSON.parse(options.row.definition);
    this.#resumedMs = options.clock.now();
  }

  /** From the beginning, or, with a journal, from where it was. */
  start(): void {
    const { arn, name, machineArn, startMs } = this.#row;
    const input: unknown = JSON.parse(this.#row.input);
    this.record('started', 'ExecutionStarted', { executionStartedEventDetails: { input: this.#row.input } });
    const { TimeoutSeconds } = this.#definition;
    if (TimeoutSeconds !== undefined) {
      const expire = () =>
        this.end({ status: 'TIMED_OUT', error: 'States.Timeout', cause: 'The execution took too long.' });
      const deadlineMs = startMs + TimeoutSeconds * 1000;
      if (deadlineMs <= this.#resumedMs) {
        expire();
        return;
      }
      this.#deadline = this.#clock.at(deadlineMs, expire);
    }
    const context = {
      Execution: { Id: arn, Name: name, Input: input, StartTime: new Date(startMs).toISOString() },
      StateMachine: { Id: machineArn, Name: machineArn.split(':').at(-1) },
    };
    const run = { effects: this, context, signal: this.#abort.signal, path: '' };
    runMachine(this.#definition, input, run).then(
      (output) => this.end({ status: 'SUCCEEDED', output: JSON.stringify(output ?? null) }),
      (error) => {
        if (error instanceof Aborted) return;
        const known = error instanceof StateError ? error : new StateError('States.Runtime', String(error));
        this.end({ status: 'FAILED', error: known.error, cause: known.causeText });
      },
    );
  }

  /** Closes the execution, from inside or outside; the first to do so wins. */
  end(closing: Omit<Closing, 'stopMs'>): void {
    if (this.#ended) return;
    const { status, output, error, cause } = closing;
    const type = { SUCCEEDED: 'Succeeded', FAILED: 'Failed', TIMED_OUT: 'TimedOut', ABORTED: 'Aborted' }[status];
    const details = status === 'SUCCEEDED' ? { output } : { error, cause };
    this.record('closed', `Execution${type}`, { [`execution${type}EventDetails`]: details });
    this.#store.close(this.#row.arn, { ...closing, stopMs: this.#clock.now() });
    this.suspend();
    this.#onClosed();
  }

  /** Lets go of timers and waits without closing: the journal carries the execution over to the next start. */
  suspend(): void {
    this.#ended = true;
    this.#deadline?.cancel();
    for (const { timers } of this.#pending.values()) for (const timer of timers) timer.cancel();
    this.#pending.clear();
    this.#abort.abort();
  }

  /** Ends a task by its token; false if its time was up before the answer came. */
  answer(key: string, outcome: Outcome): boolean {
    const task = this.#inTime(key);
    task?.finish(outcome);
    return task !== undefined;
  }

  heartbeat(key: string, token: string): boolean {
    const task = this.#inTime(key);
    if (task === undefined) return false;
    this.#store.beat(token, this.#clock.now());
    this.#watch(key, task);
    return true;
  }

  now(): number {
    return this.#clock.now();
  }

  known<Value>(key: string): Value | undefined {
    return this.#store.journaled(this.#row.arn, key) as Value | undefined;
  }

  once<Value>(key: string, make: () => Value): Value {
    const known = this.known<Value>(key);
    if (known !== undefined) return known;
    const value = make();
    this.#store.journal(this.#row.arn, key, value);
    return value;
  }

  openToken(key: string): string {
    return this.once(`${key} token`, () => {
      const token = randomBytes(TOKEN_BYTES).toString('base64');
      this.#store.openTask({ token, arn: this.#row.arn, key, beatMs: this.now() });
      return token;
    });
  }

  sleepUntil(atMs: number, signal: AbortSignal): Promise<void> {
    if (atMs <= this.#resumedMs && !signal.aborted) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = this.#clock.at(atMs, () => {
        signal.removeEventListener('abort', leave);
        resolve();
      });
      const leave = () => {
        timer.cancel();
        reject(new Aborted());
      };
      if (signal.aborted) leave();
      else signal.addEventListener('abort', leave, { once: true });
    });
  }

  record(key: string, type: string, details: Fields): void {
    if (!this.#ended) this.#store.record(this.#row.arn, key, this.now(), type, details);
  }

  async runTask(key: string, request: TaskRequest, signal: AbortSignal): Promise<unknown> {
    const known = this.#store.journaled(this.#row.arn, `${key} outcome`) as Outcome | typeof ABORTED | undefined;
    if (known === ABORTED) return new Promise(() => {});
    return valueOfOutcome(known ?? (await this.#outcomeOf(key, request, signal)));
  }

  #outcomeOf(key: string, request: TaskRequest, signal: AbortSignal): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(new Aborted());
      const settle = (outcome: Outcome) => {
        if (this.#ended || !this.#pending.delete(key)) return;
        for (const timer of task.timers) timer.cancel();
        signal.removeEventListener('abort', leave);
        this.#store.endTask(this.#row.arn, key, `${key} outcome`, outcome);
        this.#recordOutcome(key, request, outcome);
        resolve(outcome);
      };
      const leave = () => {
        for (const timer of task.timers) timer.cancel();
        // A closed or suspended execution has no pending tasks and keeps its journal as it is.
        if (this.#pending.delete(key)) this.#store.endTask(this.#row.arn, key, `${key} outcome`, ABORTED);
        reject(new Aborted());
      };
      const task: PendingTask = { request, finish: settle, timers: [] };
      this.#pending.set(key, task);
      signal.addEventListener('abort', leave, { once: true });
      this.#watch(key, task);
      if (this.#inTime(key) !== undefined) this.#begin(key, request, settle);
    });
  }

  /**
   * Invokes the function. With a token its return is only noted, so that a restart does not call it again; its failure ends
   * the task in either case. A call cut off by a crash is made again: like every asynchronous call, at least once.
   */
  #begin(key: string, request: TaskRequest, settle: (outcome: Outcome) => void): void {
    const { token, functionArn, payload, resource } = request;
    const { arn } = this.#row;
    if (token !== undefined && this.#store.journaled(arn, `${key} submitted`) !== undefined) return;
    this.record(`${key} scheduled`, 'TaskScheduled', {
      taskScheduledEventDetails: {
        resourceType: 'lambda',
        resource,
        parameters: JSON.stringify({ functionArn, payload }),
      },
    });
    const invoked = (async () => this.#invoke(functionArn, payload))();
    invoked.then(
      (result) => {
        if (token === undefined) settle(resultOf(result));
        else if (this.#pending.has(key)) this.once(`${key} submitted`, () => true);
      },
      (error) => settle(failureOf(error)),
    );
  }

  /** Arms the clock for the deadline and, measured from the last sign of life, for the next heartbeat. */
  #watch(key: string, { request, finish, timers }: PendingTask): void {
    for (const timer of timers.splice(0)) timer.cancel();
    const { deadlineMs, heartbeatMs } = request;
    if (deadlineMs !== undefined) timers.push(this.#clock.at(deadlineMs, () => finish(TIMED_OUT)));
    const lastBeatMs = this.#store.taskOf(this.#row.arn, key)?.beatMs ?? this.now();
    if (heartbeatMs !== undefined) timers.push(this.#clock.at(lastBeatMs + heartbeatMs, () => finish(NO_HEARTBEAT)));
  }

  /** The pending task, unless the clock has passed its time and only its timer has not run yet. */
  #inTime(key: string): PendingTask | undefined {
    const task = this.#pending.get(key);
    if (task === undefined) return undefined;
    const { deadlineMs = Number.POSITIVE_INFINITY, heartbeatMs = Number.POSITIVE_INFINITY } = task.request;
    const beatMs = this.#store.taskOf(this.#row.arn, key)?.beatMs ?? this.now();
    if (this.now() >= deadlineMs) task.finish(TIMED_OUT);
    else if (this.now() >= beatMs + heartbeatMs) task.finish(NO_HEARTBEAT);
    else return task;
    return undefined;
  }

  #recordOutcome(key: string, { resource }: TaskRequest, outcome: Outcome): void {
    const common = { resourceType: 'lambda', resource };
    if ('result' in outcome) {
      const output = JSON.stringify(outcome.result);
      this.record(`${key} ended`, 'TaskSucceeded', { taskSucceededEventDetails: { ...common, output } });
      return;
    }
    const type = outcome === TIMED_OUT || outcome === NO_HEARTBEAT ? 'TimedOut' : 'Failed';
    this.record(`${key} ended`, `Task${type}`, { [`task${type}EventDetails`]: { ...common, ...outcome } });
  }
}

const TIMED_OUT = { error: 'States.Timeout', cause: '' };
const NO_HEARTBEAT = { error: 'States.HeartbeatTimeout', cause: '' };

function valueOfOutcome(outcome: Outcome): unknown {
  if ('result' in outcome) return outcome.result;
  throw new StateError(outcome.error, outcome.cause);
}

function resultOf(result: unknown): Outcome {
  const bytes = Buffer.byteLength(JSON.stringify(result ?? null));
  if (bytes <= MAX_RESULT_BYTES) return { result: result ?? null };
  return {
    error: 'States.DataLimitExceeded',
    cause: `The result has ${bytes} bytes; ${MAX_RESULT_BYTES} are allowed.`,
  };
}

function failureOf(error: unknown): Outcome {
  if (error instanceof FunctionError) {
    const { errorType, message } = error;
    return { error: errorType, cause: JSON.stringify({ errorType, errorMessage: message }) };
  }
  // AWS names a refused call Lambda.AWSLambdaException, which CDK's default Retry repeats for two minutes; under its own
  // name it fails at once, with the missing grant as the cause.
  if (error instanceof AwsError) return { error: `Lambda.${error.code}`, cause: error.message };
  return { error: 'Lambda.Unknown', cause: error instanceof Error ? error.message : String(error) };
}
