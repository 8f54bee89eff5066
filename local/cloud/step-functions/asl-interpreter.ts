/**
 * Runs a state machine as an ordinary async function. Everything that is not a pure function of the execution's input (time,
 * task outcomes, tokens) goes through `Effects`, under a key that names its position in the run: `3.1` is the second attempt
 * of the fourth state visited, `3.0/b1/0` the first state in the second branch of a Parallel state. The effects are stored in
 * a journal, so after a crash the same function runs again and reaches the same position.
 */
import {
  INVOKE_WITH_TOKEN,
  type MachineDefinition,
  type ParallelState,
  type RetryRule,
  type StateDefinition,
  type TaskState,
} from './asl-definition.ts';

/** An error with a name that Retry and Catch can match. */
export class StateError extends Error {
  readonly error: string;
  readonly causeText: string;
  constructor(error: string, causeText: string) {
    super(`${error}: ${causeText}`);
    this.error = error;
    this.causeText = causeText;
  }
}

export interface TaskRequest {
  resource: string;
  functionArn: string;
  payload: unknown;
  /** If set, SendTaskSuccess with this token ends the task, not the function's return. */
  token?: string;
  /** When the attempt fails with States.Timeout. */
  endsAtMs?: number | undefined;
}

export interface Effects {
  now(): number;
  /** Creates a value the first time and returns the same value after that. */
  once<Value>(key: string, create: () => Value): Value;
  /** The value that `once` created before, if any. */
  known<Value>(key: string): Value | undefined;
  openToken(key: string): string;
  runTask(key: string, request: TaskRequest, signal: AbortSignal): Promise<void>;
  sleepUntil(atMs: number, signal: AbortSignal): Promise<void>;
  record(key: string, type: string, details: Record<string, unknown>): void;
}

export interface Run {
  effects: Effects;
  input: unknown;
  signal: AbortSignal;
  path: string;
  /**
   * When the last wait or timeout was due. The clock of the host may have jumped past it, and past the end of the next state as
   * well, so the next state begins at this time and not now.
   */
  due: { atMs?: number };
}

export async function runMachine(machine: MachineDefinition, run: Run): Promise<void> {
  let next: string | undefined = machine.StartAt;
  for (let visited = 0; next !== undefined; visited++) {
    const name: string = next;
    const state = machine.States[name];
    if (state === undefined) throw new StateError('States.Runtime', `There is no state ${name}.`);
    const key = `${run.path}${visited}`;
    const record = (event: 'Entered' | 'Exited', field: 'input' | 'output') =>
      run.effects.record(`${key} ${event.toLowerCase()}`, `${state.Type}State${event}`, {
        [`state${event}EventDetails`]: { name, [field]: JSON.stringify(run.input) },
      });
    record('Entered', 'input');
    next = await runState(state, key, run);
    record('Exited', 'output');
  }
}

/** Resolves to the name of the next state, or undefined at the end of the machine. */
async function runState(state: StateDefinition, key: string, run: Run): Promise<string | undefined> {
  switch (state.Type) {
    case 'Wait':
      run.due.atMs = timestamp(state.TimestampPath, run);
      await run.effects.sleepUntil(run.due.atMs, run.signal);
      return state.Next;
    case 'Succeed':
      return undefined;
    case 'Fail':
      throw new StateError(state.Error, state.Cause);
    case 'Parallel':
      return withCatch(state, () => runBranches(state, `${key}.0`, run));
    case 'Task':
      return withCatch(state, () => withRetry(state, key, run));
  }
}

function timestamp(path: string, { input }: Run): number {
  const text = lookUp(path, { $: input }, 'States.Runtime');
  const atMs = Date.parse(String(text));
  if (Number.isNaN(atMs)) throw new StateError('States.Runtime', `${path} must be a timestamp, not ${text}.`);
  return atMs;
}

/** `$` is the input, `$$` the context object. */
type Roots = { $: unknown; $$?: unknown };

function lookUp(path: string, roots: Roots, error: string): unknown {
  const [root, ...names] = path.split('.');
  let value = root === '$$' ? roots.$$ : roots.$;
  for (const name of names) {
    const isObject = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
    if (!isObject) {
      throw new StateError(error, `The JSONPath '${path}' could not be found in the input.`);
    }
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/** A key that ends in `.$` gets the value at a path. */
function fillPayload(payload: Record<string, string>, roots: Roots): Record<string, unknown> {
  const entries = Object.entries(payload).map(([key, value]) =>
    key.endsWith('.$') ? [key.slice(0, -2), lookUp(value, roots, 'States.ParameterPathFailure')] : [key, value],
  );
  return Object.fromEntries(entries);
}

async function runBranches(state: ParallelState, key: string, run: Run): Promise<void> {
  const { effects } = run;
  // Branches may race. After a restart the other branch might win, so the failure is in the journal.
  const failure = effects.known<{ error: string; cause: string }>(`${key} failed`);
  if (failure !== undefined) throw new StateError(failure.error, failure.cause);
  const failed = new AbortController();
  const signal = AbortSignal.any([run.signal, failed.signal]);
  const branches = state.Branches.map((branch, index) =>
    runMachine(branch, { ...run, signal, path: `${key}/b${index}/` }),
  );
  try {
    await Promise.all(branches);
  } catch (error) {
    // As in AWS, the first branch to fail stops the others.
    if (error instanceof StateError) {
      effects.once(`${key} failed`, () => ({ error: error.error, cause: error.causeText }));
    }
    failed.abort();
    throw error;
  }
}

async function withRetry(state: TaskState, key: string, run: Run): Promise<void> {
  const { effects } = run;
  const used = new Map<RetryRule, number>();
  for (let attempt = 0; ; attempt++) {
    const attemptKey = `${key}.${attempt}`;
    try {
      const { Resource: resource, Parameters: parameters } = state;
      const token = resource === INVOKE_WITH_TOKEN ? effects.openToken(attemptKey) : undefined;
      const context = { State: { RetryCount: attempt }, ...(token !== undefined && { Task: { Token: token } }) };
      const payload = fillPayload(parameters.Payload, { $: run.input, $$: context });
      const timeoutMs = timeoutOf(state, run);
      const beganAtMs = Math.min(run.due.atMs ?? Number.POSITIVE_INFINITY, effects.now());
      const endsAtMs =
        timeoutMs === undefined ? undefined : effects.once(`${attemptKey} ends`, () => beganAtMs + timeoutMs);
      run.due = { ...(endsAtMs !== undefined && { atMs: endsAtMs }) };
      const request = { resource, functionArn: parameters.FunctionName, payload, token, endsAtMs };
      return await effects.runTask(attemptKey, request, run.signal);
    } catch (error) {
      if (!(error instanceof StateError)) throw error;
      const rule = state.Retry.find(({ ErrorEquals }) => matches(ErrorEquals, error));
      const count = rule === undefined ? 0 : (used.get(rule) ?? 0);
      if (rule === undefined || count >= rule.MaxAttempts) throw error;
      used.set(rule, count + 1);
      const untilMs = effects.once(`${attemptKey} retry`, () => effects.now() + retryDelayMs(rule, count));
      await effects.sleepUntil(untilMs, run.signal);
    }
  }
}

function timeoutOf({ TimeoutSecondsPath: path }: TaskState, { input }: Run): number | undefined {
  if (path === undefined) return undefined;
  const seconds = lookUp(path, { $: input }, 'States.Runtime');
  if (typeof seconds === 'number' && Number.isInteger(seconds) && seconds > 0) return seconds * 1000;
  throw new StateError('States.Runtime', `${path} must be a positive integer, not ${String(seconds)}.`);
}

function retryDelayMs({ IntervalSeconds, BackoffRate, MaxDelaySeconds }: RetryRule, count: number): number {
  return Math.min(IntervalSeconds * BackoffRate ** count, MaxDelaySeconds ?? Number.POSITIVE_INFINITY) * 1000;
}

async function withCatch(state: TaskState | ParallelState, work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work();
    return state.Next;
  } catch (error) {
    if (!(error instanceof StateError)) throw error;
    const catcher = state.Catch.find(({ ErrorEquals }) => matches(ErrorEquals, error));
    if (catcher === undefined) throw error;
    return catcher.Next;
  }
}

/** States.ALL matches every error except those that no retry can fix. */
function matches(errorEquals: string[], { error }: StateError): boolean {
  return errorEquals.some((name) =>
    name === 'States.ALL' ? error !== 'States.Runtime' && error !== 'States.DataLimitExceeded' : name === error,
  );
}
