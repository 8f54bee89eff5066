/**
 * Runs a state machine as an ordinary async function. Whatever is not a pure function of the execution's input (time, task
 * results, tokens, random jitter) goes through `Effects` under a key that names its place in the run: `3.1` is the second
 * try of the fourth state visited, `3.0/b1/0` the first state in the second branch of a Parallel state. The effects are
 * journaled, so after a crash the same function runs again and arrives where it was.
 */

import { type Fields, isFields } from '../request-fields.ts';
import { choose } from './asl-choice.ts';
import { INVOKE, INVOKE_WITH_TOKEN, type MachineDefinition, type StateDefinition } from './asl-definition.ts';
import { applyPath, fillTemplate, lookUpRequired, type PathScope, placeResult, StateError } from './asl-paths.ts';

export interface TaskRequest {
  functionArn: string;
  payload: unknown;
  /** Set if the task ends by an answer to this token instead of by the function's return. */
  token?: string;
  deadlineMs?: number;
  heartbeatMs?: number;
  resource: string;
}

export interface Effects {
  now(): number;
  /** Makes a value the first time and gives the same one ever after. */
  once<Value>(key: string, make: () => Value): Value;
  /** What `once` has made before. */
  known<Value>(key: string): Value | undefined;
  openToken(key: string): string;
  runTask(key: string, request: TaskRequest, signal: AbortSignal): Promise<unknown>;
  sleepUntil(atMs: number, signal: AbortSignal): Promise<void>;
  record(key: string, type: string, details: Fields): void;
}

export interface Run {
  effects: Effects;
  /** `Execution` and `StateMachine` of the context object. */
  context: Fields;
  signal: AbortSignal;
  path: string;
}

/** One visit of a state: what its parts need to know. */
interface Visit extends Run {
  name: string;
  state: StateDefinition;
  key: string;
  input: unknown;
  stateContext: Fields;
}

interface Step {
  output: unknown;
  /** Absent where the machine ends. */
  next?: string;
}

const DEFAULT_RETRY_INTERVAL_SECONDS = 1;
const DEFAULT_RETRY_ATTEMPTS = 3;
const DEFAULT_BACKOFF_RATE = 2;

export async function runMachine(machine: MachineDefinition, input: unknown, run: Run): Promise<unknown> {
  let name = machine.StartAt;
  let data = input;
  for (let visited = 0; ; visited++) {
    const state = machine.States[name];
    if (state === undefined) throw new StateError('States.Runtime', `There is no state ${name}.`);
    const step = await runState(name, state, data, `${run.path}${visited}`, run);
    if (step.next === undefined) return step.output;
    name = step.next;
    data = step.output;
  }
}

async function runState(name: string, state: StateDefinition, input: unknown, key: string, run: Run): Promise<Step> {
  const { effects } = run;
  const enteredMs = effects.once(`${key} entered`, () => effects.now());
  const stateContext = { Name: name, EnteredTime: new Date(enteredMs).toISOString() };
  effects.record(`${key} entered`, `${state.Type}StateEntered`, {
    stateEnteredEventDetails: { name, input: JSON.stringify(input) },
  });
  const step = await stepOf({ ...run, name, state, key, input, stateContext });
  effects.record(`${key} exited`, `${state.Type}StateExited`, {
    stateExitedEventDetails: { name, output: JSON.stringify(step.output) },
  });
  return step;
}

async function stepOf(visit: Visit): Promise<Step> {
  const { state, input } = visit;
  const scope = scopeOf(visit, input);
  switch (state.Type) {
    case 'Pass': {
      const data = applyPath(state.InputPath, scope);
      const filled = state.Parameters === undefined ? data : fillTemplate(state.Parameters, scopeOf(visit, data));
      return leave(visit, placeResult(state.ResultPath, input, state.Result ?? filled));
    }
    case 'Wait': {
      const data = applyPath(state.InputPath, scope);
      const untilMs = visit.effects.once(`${visit.key} until`, () => wakeTime(state, scopeOf(visit, data), visit));
      await visit.effects.sleepUntil(untilMs, visit.signal);
      return leave(visit, data);
    }
    case 'Choice': {
      const data = applyPath(state.InputPath, scope);
      const next = choose(state, scopeOf(visit, data));
      return { output: applyPath(state.OutputPath, scopeOf(visit, data)), next };
    }
    case 'Succeed':
      return leave(visit, applyPath(state.InputPath, scope));
    case 'Fail': {
      const text = (field: string) => {
        const path = state[`${field}Path`];
        return String(path === undefined ? (state[field] ?? '') : evaluatePath(String(path), scope));
      };
      throw new StateError(text('Error'), text('Cause'));
    }
    case 'Parallel':
      return withCatch(visit, () => withRetry(visit, (tryKey) => runBranches(visit, tryKey)));
    default:
      return withCatch(visit, () => withRetry(visit, (tryKey) => runTask(visit, tryKey)));
  }
}

function evaluatePath(path: string, scope: PathScope): unknown {
  return path.startsWith('$') ? lookUpRequired(path, scope) : (fillTemplate({ 'it.$': path }, scope) as Fields).it;
}

function leave({ state, ...visit }: Visit, output: unknown): Step {
  return { output: applyPath(state.OutputPath, scopeOf(visit, output)), next: state.Next };
}

function scopeOf({ context, stateContext }: { context: Fields; stateContext: Fields }, data: unknown): PathScope {
  return { data, context: { ...context, State: stateContext } };
}

function wakeTime(state: StateDefinition, scope: PathScope, { effects }: Visit): number {
  const given = (field: string) =>
    state[`${field}Path`] === undefined ? state[field] : lookUpRequired(String(state[`${field}Path`]), scope);
  const seconds = given('Seconds');
  if (typeof seconds === 'number' && seconds >= 0) return effects.now() + seconds * 1000;
  const atMs = Date.parse(String(given('Timestamp')));
  if (Number.isNaN(atMs)) throw new StateError('States.Runtime', 'A Wait state needs seconds or a timestamp.');
  return atMs;
}

async function runTask(visit: Visit, tryKey: string): Promise<unknown> {
  const { state, effects, input } = visit;
  const resource = String(state.Resource);
  const token = resource === INVOKE_WITH_TOKEN ? effects.openToken(tryKey) : undefined;
  const data = applyPath(state.InputPath, scopeOf(visit, input));
  const scope = scopeOf(visit, data);
  if (token !== undefined) scope.context.Task = { Token: token };
  const parameters = state.Parameters === undefined ? data : fillTemplate(state.Parameters, scope);
  const integrated = resource === INVOKE || resource === INVOKE_WITH_TOKEN;
  const asked = integrated && isFields(parameters) ? parameters : {};
  const startedMs = effects.once(`${tryKey} started`, () => effects.now());
  const timeoutMs = durationMs(state, 'TimeoutSeconds', scope);
  const result = await effects.runTask(
    tryKey,
    {
      resource,
      functionArn: integrated ? String(asked.FunctionName) : resource,
      payload: integrated ? (asked.Payload ?? {}) : parameters,
      token,
      deadlineMs: timeoutMs === undefined ? undefined : startedMs + timeoutMs,
      // Only a task with a token can send heartbeats.
      heartbeatMs: token === undefined ? undefined : durationMs(state, 'HeartbeatSeconds', scope),
    },
    visit.signal,
  );
  return resource === INVOKE ? { ExecutedVersion: '$LATEST', Payload: result, StatusCode: 200 } : result;
}

function durationMs(state: StateDefinition, field: string, scope: PathScope): number | undefined {
  const path = state[`${field}Path`];
  const seconds = path === undefined ? state[field] : lookUpRequired(String(path), scope);
  if (seconds === undefined) return undefined;
  if (typeof seconds === 'number' && seconds > 0) return seconds * 1000;
  throw new StateError('States.Runtime', `${field} must be a positive number, not ${JSON.stringify(seconds)}.`);
}

async function runBranches(visit: Visit, tryKey: string): Promise<unknown> {
  const { state, input, effects } = visit;
  // Branches may race, and on replay another one might win.
  const lost = effects.known<{ error: string; cause: string }>(`${tryKey} failed`);
  if (lost !== undefined) throw new StateError(lost.error, lost.cause);
  const data = applyPath(state.InputPath, scopeOf(visit, input));
  const filled = state.Parameters === undefined ? data : fillTemplate(state.Parameters, scopeOf(visit, data));
  const failed = new AbortController();
  const signal = AbortSignal.any([visit.signal, failed.signal]);
  const branches = (state.Branches as MachineDefinition[]).map((branch, index) =>
    runMachine(branch, structuredClone(filled), { ...visit, signal, path: `${tryKey}/b${index}/` }),
  );
  try {
    return await Promise.all(branches);
  } catch (error) {
    // As in AWS, the first branch to fail stops the others.
    if (error instanceof StateError) {
      effects.once(`${tryKey} failed`, () => ({ error: error.error, cause: error.causeText }));
    }
    failed.abort();
    throw error;
  }
}

async function withRetry(visit: Visit, attempt: (tryKey: string) => Promise<unknown>): Promise<unknown> {
  const retriers = listOf(visit.state.Retry);
  const used = new Map<Fields, number>();
  for (let tries = 0; ; tries++) {
    const tryKey = `${visit.key}.${tries}`;
    visit.stateContext.RetryCount = tries;
    try {
      return await attempt(tryKey);
    } catch (error) {
      if (!(error instanceof StateError)) throw error;
      const retrier = retriers.find((candidate) => matchesError(candidate, error));
      const count = retrier === undefined ? 0 : (used.get(retrier) ?? 0);
      if (retrier === undefined || count >= numberOr(retrier.MaxAttempts, DEFAULT_RETRY_ATTEMPTS)) throw error;
      used.set(retrier, count + 1);
      const { effects } = visit;
      const untilMs = effects.once(`${tryKey} retry`, () => effects.now() + retryDelayMs(retrier, count));
      await effects.sleepUntil(untilMs, visit.signal);
    }
  }
}

function retryDelayMs(retrier: Fields, count: number): number {
  const interval = numberOr(retrier.IntervalSeconds, DEFAULT_RETRY_INTERVAL_SECONDS);
  const seconds = interval * numberOr(retrier.BackoffRate, DEFAULT_BACKOFF_RATE) ** count;
  const bounded = Math.min(seconds, numberOr(retrier.MaxDelaySeconds, Number.POSITIVE_INFINITY));
  return bounded * 1000 * (retrier.JitterStrategy === 'FULL' ? Math.random() : 1);
}

async function withCatch(visit: Visit, work: () => Promise<unknown>): Promise<Step> {
  const { state, input } = visit;
  try {
    const result = await work();
    const scope = scopeOf(visit, result);
    const selected = state.ResultSelector === undefined ? result : fillTemplate(state.ResultSelector, scope);
    return leave(visit, placeResult(state.ResultPath, input, selected));
  } catch (error) {
    if (!(error instanceof StateError)) throw error;
    const catcher = listOf(state.Catch).find((candidate) => matchesError(candidate, error));
    if (catcher === undefined) throw error;
    const caught = { Error: error.error, Cause: error.causeText };
    return { output: placeResult(catcher.ResultPath, input, caught), next: String(catcher.Next) };
  }
}

const TIMEOUTS = ['States.Timeout', 'States.HeartbeatTimeout'];

function matchesError({ ErrorEquals }: Fields, { error }: StateError): boolean {
  const names = Array.isArray(ErrorEquals) ? ErrorEquals : [];
  return names.some((name) => {
    if (name === 'States.ALL') return error !== 'States.Runtime' && error !== 'States.DataLimitExceeded';
    if (name === 'States.TaskFailed') return !TIMEOUTS.includes(error) && error !== 'States.Runtime';
    // A missed heartbeat is also a timeout.
    if (name === 'States.Timeout') return TIMEOUTS.includes(error);
    return name === error;
  });
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

function numberOr(value: unknown, fallback: number): number {
  return typeof value === 'number' ? value : fallback;
}
