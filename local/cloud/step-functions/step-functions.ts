/**
 * Step Functions (Standard) with task tokens, on the host's clock, surviving `kill -9`.
 *
 * An interpreter of our own (`asl-interpreter.ts`, JSONPath, the state types an approval needs) instead of
 * `aws-local-stepfunctions`: that library waits, retries and times out on real timers it does not let go of, fixes the
 * context object (and so the task token) for a whole run, and persists nothing. Adding clock, tokens and a journal from
 * outside meant rewriting every Wait and Retry into tasks; here they are the few effects the interpreter has.
 *
 *   StartExecution ─► row + replayable run ─► task: token journaled ─► function invoked ─► waits
 *                                               │ SendTaskSuccess / Failure: outcome and end of token in one commit
 *                                               └ deadline or heartbeat passes: the same, as States.Timeout
 */
import { randomUUID } from 'node:crypto';
import { ACCOUNT, AwsError, type InvokeFunction, type JsonService, REGION } from '../../aws/aws.ts';
import type { HostClock } from '../../host/clock.ts';
import { type Fields, fieldReader, operationOf } from '../request-fields.ts';
import { checkDefinition, type MachineDefinition } from './asl-definition.ts';
import { Execution } from './execution.ts';
import { type ExecutionRow, StepFunctionsStore } from './store.ts';

export interface MachineOptions {
  logicalId: string;
  name: string;
  arn: string;
  definition: object;
  /** Invokes as the machine's role; rejects with AwsError if that may not, with FunctionError if the function failed. */
  invoke: InvokeFunction;
}

const MAX_PAYLOAD_BYTES = 262_144;
const DEFAULT_PAGE = 100;
const MAX_PAGE = 1_000;

const read = fieldReader({ missing: 'ValidationException', invalid: 'ValidationException' });

export class LocalStepFunctions implements JsonService {
  readonly #clock: HostClock;
  readonly #store: StepFunctionsStore;
  readonly #machines = new Map<string, MachineOptions & { definition: MachineDefinition }>();
  readonly #executions = new Map<string, Execution>();
  /** By the next turn of the event loop the executions found at the start wait where they waited before. */
  readonly #resumed: Promise<void>;
  readonly #operations: Record<string, (input: Fields) => Fields> = {
    StartExecution: (input) => this.#start(input),
    DescribeExecution: (input) => described(this.#execution(input)),
    StopExecution: (input) => this.#stop(input),
    ListExecutions: (input) => this.#list(input),
    GetExecutionHistory: (input) => this.#history(input),
    SendTaskSuccess: (input) => this.#succeed(input),
    SendTaskFailure: (input) => this.#fail(input),
    SendTaskHeartbeat: (input) => this.#heartbeat(input),
  };

  constructor({ dataFolder, clock, machines }: { dataFolder: string; clock: HostClock; machines: MachineOptions[] }) {
    this.#clock = clock;
    for (const machine of machines) {
      const definition = checkDefinition(machine.logicalId, machine.definition);
      this.#machines.set(machine.arn, { ...machine, definition });
    }
    this.#store = new StepFunctionsStore(dataFolder);
    for (const row of this.#store.running()) this.#run(row);
    this.#resumed = new Promise((turn) => setImmediate(turn));
  }

  async call(operation: string, input: Fields): Promise<Fields> {
    const run = operationOf('Step Functions', this.#operations, operation);
    await this.#resumed;
    return run(input);
  }

  /** Suspends what runs; the next start on the same data folder goes on with it. */
  stop(): void {
    for (const execution of this.#executions.values()) execution.suspend();
    this.#executions.clear();
    this.#store.closeDatabase();
  }

  #start(input: Fields): Fields {
    const machine = this.#machines.get(read.text(input, 'stateMachineArn'));
    if (machine === undefined) {
      throw new AwsError('StateMachineDoesNotExist', `State Machine Does Not Exist: '${input.stateMachineArn}'`);
    }
    const name = read.optionalText(input, 'name') ?? randomUUID();
    const text = read.optionalText(input, 'input') ?? '{}';
    if (!/^[^\s<>{}[\]?*"#%\\^|~`$&,;:/\p{Cc}]{1,80}$/u.test(name)) {
      throw new AwsError('InvalidName', `Invalid Name: '${name}'`);
    }
    checkJson(text, 'InvalidExecutionInput', 'Invalid State Machine Execution Input');
    const arn = `arn:aws:states:${REGION}:${ACCOUNT}:execution:${machine.name}:${name}`;
    const existing = this.#store.execution(arn);
    if (existing !== undefined) return sameStart(existing, text);
    const startMs = this.#clock.now();
    const definition = JSON.stringify(machine.definition);
    this.#store.add({ arn, machineArn: machine.arn, name, input: text, definition, startMs });
    const row = this.#store.execution(arn);
    if (row !== undefined) this.#run(row);
    return { executionArn: arn, startDate: startMs / 1000 };
  }

  /** An execution whose machine has left the template stays as it is until the machine is back. */
  #run(row: ExecutionRow): void {
    const machine = this.#machines.get(row.machineArn);
    if (machine === undefined) return;
    const execution = new Execution({
      row,
      store: this.#store,
      clock: this.#clock,
      invoke: machine.invoke,
      onClosed: () => this.#executions.delete(row.arn),
    });
    this.#executions.set(row.arn, execution);
    execution.start();
  }

  #stop(input: Fields): Fields {
    const { arn } = this.#execution(input);
    const error = read.optionalText(input, 'error');
    const cause = read.optionalText(input, 'cause');
    this.#executions.get(arn)?.end({ status: 'ABORTED', error, cause });
    return { stopDate: (this.#store.execution(arn)?.stopMs ?? this.#clock.now()) / 1000 };
  }

  #list(input: Fields): Fields {
    const machineArn = read.text(input, 'stateMachineArn');
    if (!this.#machines.has(machineArn)) {
      throw new AwsError('StateMachineDoesNotExist', `State Machine Does Not Exist: '${machineArn}'`);
    }
    const limit = read.integer(input, 'maxResults', { min: 0, max: MAX_PAGE }) || DEFAULT_PAGE;
    const token = read.optionalText(input, 'nextToken');
    const before = token === undefined ? Number.MAX_SAFE_INTEGER : Number(token);
    if (!Number.isInteger(before)) throw new AwsError('InvalidToken', `Invalid Token: '${token}'`);
    const rows = this.#store.list(machineArn, read.optionalText(input, 'statusFilter'), before, limit + 1);
    const page = rows.slice(0, limit);
    const executions = page.map((row) => {
      const { executionArn, stateMachineArn, name, status, startDate, stopDate } = described(row);
      return { executionArn, stateMachineArn, name, status, startDate, stopDate };
    });
    return rows.length > limit ? { executions, nextToken: String(page.at(-1)?.seq) } : { executions };
  }

  #history(input: Fields): Fields {
    const { arn } = this.#execution(input);
    const limit = read.integer(input, 'maxResults', { min: 0, max: MAX_PAGE }) || DEFAULT_PAGE;
    const skip = Number(read.optionalText(input, 'nextToken') ?? 0);
    if (!Number.isInteger(skip)) throw new AwsError('InvalidToken', `Invalid Token: '${input.nextToken}'`);
    const rows = this.#store.history(arn);
    if (input.reverseOrder === true) rows.reverse();
    const events = rows.slice(skip, skip + limit).map(({ id, atMs, type, details }) => ({
      id,
      previousEventId: id - 1,
      timestamp: atMs / 1000,
      type,
      ...JSON.parse(details),
    }));
    return rows.length > skip + limit ? { events, nextToken: String(skip + limit) } : { events };
  }

  #succeed(input: Fields): Fields {
    const output = read.text(input, 'output');
    checkJson(output, 'InvalidOutput', 'Invalid output');
    return this.#answer(input, (execution, key) => execution.answer(key, { result: JSON.parse(output) }));
  }

  #fail(input: Fields): Fields {
    const error = read.optionalText(input, 'error') ?? '';
    const cause = read.optionalText(input, 'cause') ?? '';
    return this.#answer(input, (execution, key) => execution.answer(key, { error, cause }));
  }

  #heartbeat(input: Fields): Fields {
    return this.#answer(input, (execution, key, token) => execution.heartbeat(key, token));
  }

  #answer(input: Fields, give: (execution: Execution, key: string, token: string) => boolean): Fields {
    const token = read.text(input, 'taskToken');
    const task = this.#store.task(token);
    if (task === undefined) throw new AwsError('InvalidToken', "Invalid Token: 'Invalid token'");
    const execution = task.open === 1 ? this.#executions.get(task.arn) : undefined;
    if (execution === undefined || !give(execution, task.key, token)) {
      throw new AwsError('TaskTimedOut', "Task Timed Out: 'Provided task does not exist anymore'");
    }
    return {};
  }

  #execution(input: Fields): ExecutionRow {
    const arn = read.text(input, 'executionArn');
    const row = this.#store.execution(arn);
    if (row === undefined) throw new AwsError('ExecutionDoesNotExist', `Execution Does Not Exist: '${arn}'`);
    return row;
  }
}

/** A repeated start is the same start only while the first one runs, and only with the same input. */
function sameStart(existing: ExecutionRow, input: string): Fields {
  if (existing.status === 'RUNNING' && existing.input === input) {
    return { executionArn: existing.arn, startDate: existing.startMs / 1000 };
  }
  throw new AwsError('ExecutionAlreadyExists', `Execution Already Exists: '${existing.arn}'`);
}

function described(row: ExecutionRow): Fields {
  const { output, error, cause, stopMs } = row;
  return {
    executionArn: row.arn,
    stateMachineArn: row.machineArn,
    name: row.name,
    status: row.status,
    startDate: row.startMs / 1000,
    ...(stopMs === null ? {} : { stopDate: stopMs / 1000 }),
    input: row.input,
    inputDetails: { included: true },
    ...(output === null ? {} : { output, outputDetails: { included: true } }),
    ...(error === null ? {} : { error }),
    ...(cause === null ? {} : { cause }),
  };
}

function checkJson(text: string, code: string, message: string): void {
  if (Buffer.byteLength(text) > MAX_PAYLOAD_BYTES) {
    throw new AwsError('ValidationException', `A payload has at most ${MAX_PAYLOAD_BYTES} bytes.`);
  }
  try {
    JSON.parse(text);
  } catch {
    throw new AwsError(code, `${message}: not valid JSON`);
  }
}
