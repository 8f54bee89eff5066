import {
  DescribeExecutionCommand,
  GetExecutionHistoryCommand,
  ListExecutionsCommand,
  SendTaskSuccessCommand,
  SFNClient,
  StartExecutionCommand,
  StopExecutionCommand,
} from '@aws-sdk/client-sfn';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AwsError, FunctionError } from '../../../local/aws/aws.ts';
import { LocalStepFunctions } from '../../../local/cloud/step-functions/step-functions.ts';
import { HostClock } from '../../../local/host/clock.ts';
import { openWire, temporaryFolder, until, type Wire } from './wire.ts';

const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;
const YEAR_SECONDS = 31_536_000;
const functionArn = (name: string) => `arn:aws:lambda:us-east-1:000000000000:function:${name}`;
const machineArn = (name: string) => `arn:aws:states:us-east-1:000000000000:stateMachine:${name}`;

const task = (name: string, more: object = {}) => ({
  Type: 'Task',
  Resource: 'arn:aws:states:::lambda:invoke',
  Parameters: { FunctionName: functionArn(name), Payload: { 'approval.$': '$.approval' } },
  ResultPath: null,
  End: true,
  ...more,
});
const askWithToken = {
  Type: 'Task',
  Resource: 'arn:aws:states:::lambda:invoke.waitForTaskToken',
  Parameters: {
    FunctionName: functionArn('notify'),
    Payload: {
      kind: 'notify',
      'token.$': '$$.Task.Token',
      'retryCount.$': '$$.State.RetryCount',
      'approval.$': '$.approval',
      'requester.$': '$.requester.name',
    },
  },
  ResultPath: null,
};
const branch = (first: string, states: Record<string, object>) => ({ StartAt: first, States: states });

/** As in the template: one branch waits for a decision, the other ends the stage at its time. */
const approval = {
  StartAt: 'Ask',
  States: {
    Ask: {
      Type: 'Parallel',
      Branches: [
        branch('Until', {
          Until: { Type: 'Wait', TimestampPath: '$.remindAt', Next: 'Over' },
          Over: { Type: 'Fail', Error: 'StageOver', Cause: 'Nobody has decided.' },
        }),
        branch('People', {
          People: { ...askWithToken, Next: 'Decided' },
          Decided: { Type: 'Fail', Error: 'Decided', Cause: 'The approval is decided.' },
        }),
      ],
      ResultPath: null,
      Catch: [
        { ErrorEquals: ['Decided'], ResultPath: null, Next: 'Done' },
        { ErrorEquals: ['States.ALL'], ResultPath: null, Next: 'Grace' },
      ],
      End: true,
    },
    Done: { Type: 'Succeed' },
    Grace: { Type: 'Wait', TimestampPath: '$.expiresAt', Next: 'Expire' },
    Expire: task('expire'),
  },
};

interface Invocation {
  name: string;
  event: Record<string, unknown>;
}

describe('the local Step Functions, seen through the AWS SDK', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let clock: HostClock;
  let service: LocalStepFunctions;
  let wire: Wire;
  let client: SFNClient;
  let invocations: Invocation[];
  let handlers: Record<string, (event: Record<string, unknown>) => unknown>;
  let definitions: Record<string, object>;

  async function open(): Promise<void> {
    const machines = Object.entries(definitions).map(([name, definition]) => ({
      logicalId: name,
      name,
      arn: machineArn(name),
      definition,
      invoke: async (arn: string, event: unknown) => {
        const called = arn.split(':').at(-1) ?? '';
        invocations.push({ name: called, event: event as Record<string, unknown> });
        return handlers[called]?.(event as Record<string, unknown>) ?? null;
      },
    }));
    service = new LocalStepFunctions({ dataFolder: folder.path, clock, machines });
    wire = await openWire({ json: { AWSStepFunctions: service } });
    client = new SFNClient(wire.client);
  }
  async function close(): Promise<void> {
    client.destroy();
    await wire.close();
    service.stop();
  }
  async function reopen(): Promise<void> {
    await close();
    await open();
  }
  beforeEach(() => {
    folder = temporaryFolder();
    clock = new HostClock(folder.path);
    invocations = [];
    handlers = {};
    definitions = { approval };
  });
  afterEach(async () => {
    await close();
    clock.stop();
    folder.remove();
  });

  const inSeconds = (seconds: number) => new Date(clock.now() + seconds * SECOND_MS).toISOString();
  const input = () => ({
    approval: 'a-1',
    requester: { name: 'Ana' },
    remindAt: inSeconds(3_600),
    expiresAt: inSeconds(4_200),
  });
  const start = (name: string, data: object = input(), machine = 'approval') =>
    client.send(new StartExecutionCommand({ stateMachineArn: machineArn(machine), name, input: JSON.stringify(data) }));
  const executionArn = (name: string, machine = 'approval') =>
    `arn:aws:states:us-east-1:000000000000:execution:${machine}:${name}`;
  const describeExecution = (name: string, machine = 'approval') =>
    client.send(new DescribeExecutionCommand({ executionArn: executionArn(name, machine) }));
  const ended = async (name: string, machine = 'approval') => {
    await until(async () => (await describeExecution(name, machine)).status !== 'RUNNING', `${name} ends`);
    const { status, output, error, cause } = await describeExecution(name, machine);
    return { status, output: output === undefined ? undefined : JSON.parse(output), error, cause };
  };
  const invoked = (name: string, times = 1) =>
    until(() => invocations.filter((call) => call.name === name).length === times, `${times} calls of ${name}`);
  const token = (index = 0) => String(invocations.filter(({ name }) => name === 'notify')[index]?.event.token);
  const succeed = (taskToken: string, output: unknown = { approved: true }) =>
    client.send(new SendTaskSuccessCommand({ taskToken, output: JSON.stringify(output) }));
  /** Resolves after every timer that is due by now has run: the clock runs them in order. */
  const turn = () => new Promise<void>((done) => clock.at(clock.now(), done));
  const machine = (first: object, others: Record<string, object> = {}) => ({
    StartAt: 'First',
    States: { First: first, ...others },
  });
  async function run(definition: object, data: object = input()) {
    definitions = { m: definition };
    await open();
    await start('e', data, 'm');
  }

  it('waits at a task token and continues when the token is completed', async () => {
    await open();
    const data = input();
    await start('a-1', data);
    await invoked('notify');
    expect(invocations[0]?.event).toEqual({
      kind: 'notify',
      token: expect.any(String),
      retryCount: 0,
      approval: 'a-1',
      requester: 'Ana',
    });
    expect((await describeExecution('a-1')).status).toBe('RUNNING');
    await succeed(token());
    expect(await ended('a-1')).toMatchObject({ status: 'SUCCEEDED', output: data });
  });

  it('keeps a pending token across a restart, invokes nothing again, and accepts the completion', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    await reopen();
    await succeed(token());
    expect((await ended('a-1')).status).toBe('SUCCEEDED');
    expect(invocations).toHaveLength(1);
  });

  const timed = () =>
    machine(
      {
        ...askWithToken,
        TimeoutSecondsPath: '$.seconds',
        Catch: [{ ErrorEquals: ['States.Timeout'], ResultPath: null, Next: 'Late' }],
        End: true,
      },
      { Late: task('late') },
    );

  it('a token that is completed before the timeout ends the task', async () => {
    await run(timed(), { ...input(), seconds: 3_600 });
    await invoked('notify');
    clock.advance(3_599 * SECOND_MS);
    await turn();
    await succeed(token());
    expect((await ended('e', 'm')).status).toBe('SUCCEEDED');
    expect(invocations.map(({ name }) => name)).toEqual(['notify']);
  });

  it('a task ends at its timeout, which a restart does not postpone, and its token is refused then', async () => {
    await run(timed(), { ...input(), seconds: 3_600 });
    await invoked('notify');
    clock.advance(3_000 * SECOND_MS);
    await reopen();
    clock.advance(601 * SECOND_MS);
    expect((await ended('e', 'm')).status).toBe('SUCCEEDED');
    expect(invocations.map(({ name }) => name)).toEqual(['notify', 'late']);
    await expect(succeed(token())).rejects.toMatchObject({
      name: expect.stringMatching(/^Task(TimedOut|DoesNotExist)$/),
    });
  });

  it('the timeouts of several states have passed after one jump of the clock', async () => {
    const [first, second] = [timed().States.First, timed().States.First];
    const next = { ...first, Catch: [{ ErrorEquals: ['States.Timeout'], ResultPath: null, Next: 'Second' }] };
    await run(machine(next, { Second: second, Late: task('late') }), { ...input(), seconds: 3_600 });
    await invoked('notify');
    clock.advance(7_201 * SECOND_MS);
    expect((await ended('e', 'm')).status).toBe('SUCCEEDED');
    expect(invocations.map(({ name }) => name)).toEqual(['notify', 'notify', 'late']);
  });

  it.each([0, 1.5, '60', undefined])('a timeout of %s fails the execution', async (seconds) => {
    await run(timed(), { ...input(), seconds });
    expect(await ended('e', 'm')).toMatchObject({ status: 'FAILED', error: 'States.Runtime' });
  });

  it('accepts a completion in the moment in which the data folder is opened again', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    await close();
    const opening = open();
    const completed = service.call('SendTaskSuccess', { taskToken: token(), output: '{"approved":true}' });
    await opening;
    await completed;
    expect((await ended('a-1')).status).toBe('SUCCEEDED');
  });

  it('invokes a function again, with the same token, if a crash interrupted the invocation', async () => {
    handlers.notify = () => new Promise(() => {});
    await open();
    await start('a-1');
    await invoked('notify');
    handlers.notify = () => null;
    await reopen();
    await invoked('notify', 2);
    expect(token(1)).toBe(token(0));
  });

  it('ends a stage when the clock reaches its time, then waits for the next time', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    clock.advance(3_000 * SECOND_MS);
    await turn();
    expect((await history('a-1')).filter((type) => type === 'WaitStateEntered')).toHaveLength(1);
    clock.advance(600 * SECOND_MS);
    await until(async () => (await history('a-1')).includes('FailStateEntered'), 'the stage ends');
    await turn();
    await expect(succeed(token())).rejects.toMatchObject({ name: 'TaskTimedOut' });
    expect((await describeExecution('a-1')).status).toBe('RUNNING');
    clock.advance(600 * SECOND_MS);
    await invoked('expire');
    expect((await ended('a-1')).status).toBe('SUCCEEDED');
  });

  it('keeps the original times across a restart', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    clock.advance(3_000 * SECOND_MS);
    await reopen();
    clock.advance(600 * SECOND_MS);
    await until(async () => (await history('a-1')).includes('FailStateEntered'), 'the stage ends');
    await turn();
    clock.advance(400 * SECOND_MS);
    await reopen();
    expect((await describeExecution('a-1')).status).toBe('RUNNING');
    clock.advance(200 * SECOND_MS);
    expect((await ended('a-1')).status).toBe('SUCCEEDED');
    expect(invocations.map(({ name }) => name)).toEqual(['notify', 'expire']);
  });

  it('reaches its times while the host is stopped', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    await close();
    clock.advance(DAY_MS);
    await open();
    await invoked('expire');
    await expect(succeed(token())).rejects.toMatchObject({ name: 'TaskTimedOut' });
  });

  it('refuses a second completion, an unknown token, an output that is not JSON, and a completion after the end', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    const malformed = new SendTaskSuccessCommand({ taskToken: token(), output: '{' });
    await expect(client.send(malformed)).rejects.toMatchObject({ name: 'InvalidOutput' });
    await succeed(token());
    await expect(succeed(token())).rejects.toMatchObject({ name: 'TaskTimedOut' });
    await expect(succeed('bm9uc2Vuc2U=')).rejects.toMatchObject({ name: 'InvalidToken' });
    await ended('a-1');
    await expect(succeed(token())).rejects.toMatchObject({ name: 'TaskTimedOut' });
  });

  it('accepts a completion before the function returns', async () => {
    await open();
    handlers.notify = ({ token: given }) => succeed(String(given)).then(() => new Promise(() => {}));
    await start('a-1');
    expect((await ended('a-1')).status).toBe('SUCCEEDED');
  });

  it('waits longer than a timer of the platform can', async () => {
    await open();
    await start('a-1', { ...input(), remindAt: inSeconds(YEAR_SECONDS), expiresAt: inSeconds(0) });
    await invoked('notify');
    clock.advance((YEAR_SECONDS - 60) * SECOND_MS);
    await turn();
    expect((await describeExecution('a-1')).status).toBe('RUNNING');
    clock.advance(60 * SECOND_MS);
    await invoked('expire');
  });

  it('starts once per name: a repeated start succeeds while the execution runs and is refused otherwise', async () => {
    await open();
    const data = input();
    const first = await start('a-1', data);
    const again = await start('a-1', data);
    expect([again.executionArn, again.startDate]).toEqual([first.executionArn, first.startDate]);
    await expect(start('a-1', { ...data, approval: 'other' })).rejects.toMatchObject({
      name: 'ExecutionAlreadyExists',
    });
    await invoked('notify');
    await succeed(token());
    await ended('a-1');
    await expect(start('a-1', data)).rejects.toMatchObject({ name: 'ExecutionAlreadyExists' });
    expect(invocations).toHaveLength(1);
    await expect(start('x', {}, 'nowhere')).rejects.toMatchObject({ name: 'StateMachineDoesNotExist' });
    await expect(start('not valid')).rejects.toMatchObject({ name: 'InvalidName' });
    const malformed = new StartExecutionCommand({ stateMachineArn: machineArn('approval'), input: '{' });
    await expect(client.send(malformed)).rejects.toMatchObject({ name: 'InvalidExecutionInput' });
  });

  it('lists executions newest first, with their status', async () => {
    await open();
    for (const name of ['a', 'b', 'c']) await start(name);
    await invoked('notify', 3);
    await succeed(token(1));
    await ended('b');
    const { executions } = await client.send(new ListExecutionsCommand({ stateMachineArn: machineArn('approval') }));
    expect(executions?.map(({ name, status }) => [name, status])).toEqual([
      ['c', 'RUNNING'],
      ['b', 'SUCCEEDED'],
      ['a', 'RUNNING'],
    ]);
  });

  async function history(name: string, machineName = 'approval'): Promise<(string | undefined)[]> {
    const command = new GetExecutionHistoryCommand({ executionArn: executionArn(name, machineName) });
    return ((await client.send(command)).events ?? []).map(({ type }) => type);
  }

  it('records each event once, after any number of restarts', async () => {
    await run(machine({ ...askWithToken, Next: 'Done' }, { Done: { Type: 'Succeed' } }));
    await invoked('notify');
    await reopen();
    await reopen();
    await succeed(token());
    await ended('e', 'm');
    expect(await history('e', 'm')).toEqual([
      'ExecutionStarted',
      'TaskStateEntered',
      'TaskScheduled',
      'TaskSucceeded',
      'TaskStateExited',
      'SucceedStateEntered',
      'SucceedStateExited',
      'ExecutionSucceeded',
    ]);
  });

  it('fails a task with the error of its function, with and without a token', async () => {
    handlers.notify = () => {
      throw new FunctionError('SlackDown', 'no answer');
    };
    handlers.work = handlers.notify;
    const caught = { ErrorEquals: ['SlackDown'], ResultPath: null, Next: 'Caught' };
    await run(machine({ ...askWithToken, Catch: [caught], End: true }, { Caught: task('work') }));
    const { status, error, cause } = await ended('e', 'm');
    expect([status, error]).toEqual(['FAILED', 'SlackDown']);
    expect(JSON.parse(String(cause))).toEqual({ errorType: 'SlackDown', errorMessage: 'no answer' });
    await expect(succeed(token())).rejects.toMatchObject({ name: 'TaskTimedOut' });
  });

  it('fails an execution whose role may not invoke the function, and names the grant', async () => {
    handlers.work = () => {
      throw new AwsError('AccessDeniedException', 'lambda:InvokeFunction is not granted', 403);
    };
    await run(machine(task('work')));
    expect(await ended('e', 'm')).toMatchObject({
      status: 'FAILED',
      error: 'Lambda.AccessDeniedException',
      cause: 'lambda:InvokeFunction is not granted',
    });
  });

  it('fails an execution whose input lacks a field that a payload needs', async () => {
    await run(machine(task('work')), {});
    expect(await ended('e', 'm')).toMatchObject({ status: 'FAILED', error: 'States.ParameterPathFailure' });
  });

  it('retries on the clock with growing, bounded intervals, counts across a restart, then catches', async () => {
    handlers.work = () => {
      throw new FunctionError('Busy', 'later');
    };
    const retry = { IntervalSeconds: 10, BackoffRate: 3, MaxAttempts: 2, MaxDelaySeconds: 20 };
    const Retry = [
      { ErrorEquals: ['Closed'], MaxAttempts: 0 },
      { ErrorEquals: ['States.ALL'], ...retry },
    ];
    const Catch = [{ ErrorEquals: ['States.ALL'], ResultPath: null, Next: 'Caught' }];
    await run(machine(task('work', { Retry, Catch }), { Caught: { Type: 'Succeed' } }));
    await invoked('work', 1);
    await turn();
    clock.advance(10 * SECOND_MS);
    await invoked('work', 2);
    await turn();
    await reopen();
    clock.advance(10 * SECOND_MS);
    await turn();
    expect(invocations).toHaveLength(2);
    clock.advance(10 * SECOND_MS);
    expect((await ended('e', 'm')).status).toBe('SUCCEEDED');
    expect(invocations).toHaveLength(3);
  });

  it('does not retry an error whose rule has no attempts', async () => {
    handlers.work = () => {
      throw new FunctionError('Closed', 'decided');
    };
    const Retry = [
      { ErrorEquals: ['Closed'], MaxAttempts: 0 },
      { ErrorEquals: ['States.ALL'], MaxAttempts: 9 },
    ];
    await run(machine(task('work', { Retry })));
    expect(await ended('e', 'm')).toMatchObject({ status: 'FAILED', error: 'Closed' });
    expect(invocations).toHaveLength(1);
  });

  it('runs branches at the same time, stops the others when one fails, and continues them after a restart', async () => {
    const both = {
      Type: 'Parallel',
      Branches: [branch('Ask', { Ask: { ...askWithToken, End: true } }), branch('Work', { Work: task('work') })],
      ResultPath: null,
      End: true,
    };
    definitions = { m: machine(both), approval };
    await open();
    await start('e', input(), 'm');
    await start('f');
    await invoked('notify', 2);
    await turn();
    await reopen();
    await succeed(token(0), 'yes');
    expect((await ended('e', 'm')).status).toBe('SUCCEEDED');
    clock.advance(3_600 * SECOND_MS);
    await turn();
    await reopen();
    await expect(succeed(token(1))).rejects.toMatchObject({ name: 'TaskTimedOut' });
    clock.advance(600 * SECOND_MS);
    expect((await ended('f')).status).toBe('SUCCEEDED');
    expect(invocations.map(({ name }) => name).sort()).toEqual(['expire', 'notify', 'notify', 'work']);
  });

  it('does not run a race of branches again after a restart', async () => {
    handlers.work = () => {
      throw new FunctionError('Busy', 'later');
    };
    const retrying = task('work', { Retry: [{ ErrorEquals: ['Busy'], IntervalSeconds: 20 }] });
    const race = {
      Type: 'Parallel',
      Branches: [
        branch('Work', { Work: retrying }),
        branch('Until', {
          Until: { Type: 'Wait', TimestampPath: '$.raceEndsAt', Next: 'Over' },
          Over: { Type: 'Fail', Error: 'Over', Cause: '' },
        }),
      ],
      ResultPath: null,
      Catch: [{ ErrorEquals: ['Over'], ResultPath: null, Next: 'Later' }],
      End: true,
    };
    const data = { approval: 'x', raceEndsAt: inSeconds(10), later: inSeconds(70) };
    await run(machine(race, { Later: { Type: 'Wait', TimestampPath: '$.later', End: true } }), data);
    await invoked('work', 1);
    clock.advance(10 * SECOND_MS);
    await turn();
    // By now the branch that lost would try again.
    clock.advance(30 * SECOND_MS);
    await reopen();
    await turn();
    clock.advance(30 * SECOND_MS);
    expect((await ended('e', 'm')).status).toBe('SUCCEEDED');
    expect(invocations).toHaveLength(1);
  });

  it('finishes an execution with the definition with which it started', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    definitions = { approval: machine({ Type: 'Fail', Error: 'New', Cause: '' }) };
    await reopen();
    await succeed(token());
    expect((await ended('a-1')).status).toBe('SUCCEEDED');
  });

  it('refuses an operation or a parameter that it does not support, by name', async () => {
    await open();
    const stop = new StopExecutionCommand({ executionArn: executionArn('a-1') });
    await expect(client.send(stop)).rejects.toThrow('does not support StopExecution');
    const paged = new ListExecutionsCommand({ stateMachineArn: machineArn('approval'), maxResults: 1 });
    await expect(client.send(paged)).rejects.toThrow('ListExecutions does not support the parameter maxResults');
  });
});
