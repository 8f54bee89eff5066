/**
 * Step Functions (Standard) with task tokens. It uses the host's clock and survives `kill -9`.
 *
 * It has its own interpreter (`asl-interpreter.ts`) instead of `aws-local-stepfunctions`: that library waits and retries on
 * real timers, uses one task token for a whole execution, and stores nothing.
 *
 *   StartExecution ─► row + journal ─► task: token stored ─► function invoked ─► waits
 *                                                              └ SendTaskSuccess: outcome and token in one transaction
 */
import { randomUUID } from 'node:crypto';
import { ACCOUNT, AwsError, type InvokeFunction, type JsonService, REGION } from '../../aws/aws.ts';
import type { HostClock } from '../../host/clock.ts';
import { type Fields, fieldReader, findOperation, type Operation } from '../request-fields.ts';
import { parseDefinition } from './asl-definition.ts';
import { Execution } from './execution.ts';
import { type ExecutionRow, StepFunctionsStore } from './store.ts';

export interface MachineOptions {
  logicalId: string;
  name: string;
  arn: string;
  definition: object;
  /** Invokes as the machine's role. Rejects with AwsError if the role is denied, with FunctionError if the function failed. */
  invoke: InvokeFunction;
}

const MAX_PAYLOAD_BYTES = 262_144;

const read = fieldReader({ missing: 'ValidationException', invalid: 'ValidationException' });

export class LocalStepFunctions implements JsonService {
  readonly #clock: HostClock;
  readonly #store: StepFunctionsStore;
  readonly #machines = new Map<string, MachineOptions>();
  readonly #executions = new Map<string, Execution>();
  /** Resolves in the next turn of the event loop, when the executions of an earlier start wait again. */
  readonly #resumed: Promise<void>;
  readonly #operations: Record<string, Operation<(input: Fields) => Fields>> = {
    StartExecution: [['stateMachineArn', 'name', 'input'], (input) => this.#start(input)],
    DescribeExecution: [['executionArn'], (input) => describe(this.#execution(input))],
    ListExecutions: [['stateMachineArn'], (input) => this.#list(input)],
    GetExecutionHistory: [['executionArn'], (input) => this.#history(input)],
    SendTaskSuccess: [['taskToken', 'output'], (input) => this.#completeTask(input)],
  };

  constructor({ dataFolder, clock, machines }: { dataFolder: string; clock: HostClock; machines: MachineOptions[] }) {
    this.#clock = clock;
    for (const machine of machines) {
      parseDefinition(machine.logicalId, machine.definition);
      this.#machines.set(machine.arn, machine);
    }
    this.#store = new StepFunctionsStore(dataFolder);
    for (const row of this.#store.running()) this.#run(row);
    this.#resumed = new Promise((turn) => setImmediate(turn));
  }

  async call(operation: string, input: Fields): Promise<Fields> {
    const run = findOperation('Step Functions', this.#operations, operation, input);
    await this.#resumed;
    return run(input);
  }

  /** Suspends the running executions. The next start on the same data folder continues them. */
  stop(): void {
    for (const execution of this.#executions.values()) execution.suspend();
    this.#executions.clear();
    this.#store.close();
  }

  #start(input: Fields): Fields {
    const machine = this.#machine(input);
    const name = read.optionalText(input, 'name') ?? randomUUID();
    const text = read.optionalText(input, 'input') ?? '{}';
    if (!/^[^\s<>{}[\]?*"#%\\^|~`$&,;:/\p{Cc}]{1,80}$/u.test(name)) {
      throw new AwsError('InvalidName', `Invalid Name: '${name}'`);
    }
    parseJson(text, 'InvalidExecutionInput', 'Invalid State Machine Execution Input');
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

  /** An execution whose machine is no longer in the template stays as it is until the machine is there again. */
  #run(row: ExecutionRow): void {
    const machine = this.#machines.get(row.machineArn);
    if (machine === undefined) return;
    const execution = new Execution({
      row,
      store: this.#store,
      clock: this.#clock,
      invoke: machine.invoke,
      onEnd: () => this.#executions.delete(row.arn),
    });
    this.#executions.set(row.arn, execution);
    execution.start();
  }

  /** Returns all executions on one page: only tests list them. */
  #list(input: Fields): Fields {
    const executions = this.#store.list(this.#machine(input).arn).map((row) => {
      const { executionArn, stateMachineArn, name, status, startDate, stopDate } = describe(row);
      return { executionArn, stateMachineArn, name, status, startDate, stopDate };
    });
    return { executions };
  }

  /** Returns all events on one page: only tests read them. */
  #history(input: Fields): Fields {
    const events = this.#store.history(this.#execution(input).arn).map(({ id, atMs, type, details }) => ({
      id,
      previousEventId: id - 1,
      timestamp: atMs / 1000,
      type,
      ...JSON.parse(details),
    }));
    return { events };
  }

  #completeTask(input: Fields): Fields {
    const result = parseJson(read.text(input, 'output'), 'InvalidOutput', 'Invalid output');
    const task = this.#store.task(read.text(input, 'taskToken'));
    if (task === undefined) throw new AwsError('InvalidToken', "Invalid Token: 'Invalid token'");
    const execution = task.open === 1 ? this.#executions.get(task.arn) : undefined;
    if (execution === undefined || !execution.completeTask(task.key, result)) {
      throw new AwsError('TaskTimedOut', "Task Timed Out: 'Provided task does not exist anymore'");
    }
    return {};
  }

  #machine(input: Fields): MachineOptions {
    const arn = read.text(input, 'stateMachineArn');
    const machine = this.#machines.get(arn);
    if (machine === undefined) {
      throw new AwsError('StateMachineDoesNotExist', `State Machine Does Not Exist: '${arn}'`);
    }
    return machine;
  }

  #execution(input: Fields): ExecutionRow {
    const arn = read.text(input, 'executionArn');
    const row = this.#store.execution(arn);
    if (row === undefined) throw new AwsError('ExecutionDoesNotExist', `Execution Does Not Exist: '${arn}'`);
    return row;
  }
}

/** A repeated start succeeds only while the first execution runs, and only with the same input. */
function sameStart(existing: ExecutionRow, input: string): Fields {
  if (existing.status === 'RUNNING' && existing.input === input) {
    return { executionArn: existing.arn, startDate: existing.startMs / 1000 };
  }
  throw new AwsError('ExecutionAlreadyExists', `Execution Already Exists: '${existing.arn}'`);
}

function describe(row: ExecutionRow): Fields {
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

function parseJson(text: string, code: string, message: string): unknown {
  if (Buffer.byteLength(text) > MAX_PAYLOAD_BYTES) {
    throw new AwsError('ValidationException', `A payload has at most ${MAX_PAYLOAD_BYTES} bytes.`);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new AwsError(code, `${message}: not valid JSON`);
  }
}
