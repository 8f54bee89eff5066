import {
  DescribeExecutionCommand,
  GetExecutionHistoryCommand,
  ListExecutionsCommand,
  SendTaskFailureCommand,
  SendTaskHeartbeatCommand,
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

const askWithToken = {
  Type: 'Task',
  Resource: 'arn:aws:states:::lambda:invoke.waitForTaskToken',
  Parameters: {
    FunctionName: functionArn('notify'),
    Payload: {
      'token.$': '$$.Task.Token',
      'approval.$': '$.approval',
      'execution.$': '$$.Execution.Name',
      'state.$': '$$.State.Name',
      'entered.$': '$$.State.EnteredTime',
      'started.$': '$$.Execution.StartTime',
    },
  },
};
const approval = {
  StartAt: 'Ask',
  States: {
    Ask: {
      ...askWithToken,
      TimeoutSecondsPath: '$.slaSeconds',
      ResultPath: '$.decision',
      Catch: [{ ErrorEquals: ['States.Timeout'], ResultPath: '$.failure', Next: 'Escalate' }],
      Next: 'Decided',
    },
    Escalate: { Type: 'Task', Resource: functionArn('escalate'), ResultPath: '$.escalated', Next: 'Grace' },
    Grace: { Type: 'Wait', SecondsPath: '$.graceSeconds', Next: 'Expired' },
    Expired: { Type: 'Pass', Result: 'expired', ResultPath: '$.outcome', End: true },
    Decided: {
      Type: 'Choice',
      Choices: [{ Variable: '$.decision.approved', BooleanEquals: true, Next: 'Approved' }],
      Default: 'Rejected',
    },
    Approved: { Type: 'Pass', Result: 'approved', ResultPath: '$.outcome', End: true },
    Rejected: { Type: 'Fail', Error: 'Rejected', CausePath: '$.decision.reason' },
  },
};
const input = { approval: 'a-1', slaSeconds: 3_600, graceSeconds: 600 };

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

  const start = (name: string, data: object = input, machine = 'approval') =>
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
  const fail = (taskToken: string, error: string, cause?: string) =>
    client.send(new SendTaskFailureCommand({ taskToken, error, cause }));
  /** Resolves after every timer that is due by now has run: the clock runs them in order. */
  const turn = () => new Promise<void>((done) => clock.at(clock.now(), done));
  const task = (name: string, more: object = {}) => ({ Type: 'Task', Resource: functionArn(name), End: true, ...more });
  const machine = (first: object, others: Record<string, object> = {}) => ({
    StartAt: 'First',
    States: { First: first, ...others },
  });
  async function run(definition: object, data: object = {}) {
    definitions = { m: definition };
    await open();
    await start('e', data, 'm');
  }

  it('waits at a task token and goes on with the answer', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    expect(invocations[0]?.event).toMatchObject({
      approval: 'a-1',
      execution: 'a-1',
      state: 'Ask',
      entered: expect.stringMatching(/^\d{4}-.*Z$/),
      started: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect((await describeExecution('a-1')).status).toBe('RUNNING');
    await succeed(token());
    expect(await ended('a-1')).toMatchObject({
      status: 'SUCCEEDED',
      output: { ...input, decision: { approved: true }, outcome: 'approved' },
    });
  });

  it('fails with the reason in the answer', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    await succeed(token(), { approved: false, reason: 'not today' });
    expect(await ended('a-1')).toMatchObject({ status: 'FAILED', error: 'Rejected', cause: 'not today' });
  });

  it('keeps a pending token across reopening, calls nobody again, and takes the answer then', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    await reopen();
    await succeed(token());
    expect(await ended('a-1')).toMatchObject({ status: 'SUCCEEDED', output: { outcome: 'approved' } });
    expect(invocations).toHaveLength(1);
  });

  it('takes an answer in the same moment in which the data folder is opened again', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    await close();
    const opening = open();
    const answered = service.call('SendTaskSuccess', { taskToken: token(), output: '{"approved":true}' });
    await opening;
    await answered;
    expect((await ended('a-1')).status).toBe('SUCCEEDED');
  });

  it('calls a function again, with the same token, if a crash cut the call off', async () => {
    handlers.notify = () => new Promise(() => {});
    await open();
    await start('a-1');
    await invoked('notify');
    handlers.notify = () => null;
    await reopen();
    await invoked('notify', 2);
    expect(token(1)).toBe(token(0));
  });

  it('times out when the clock passes the deadline, runs the Catch, then the wait', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    clock.advance(3_000 * SECOND_MS);
    await turn();
    expect(invocations).toHaveLength(1);
    clock.advance(600 * SECOND_MS);
    await invoked('escalate');
    await expect(succeed(token())).rejects.toMatchObject({ name: 'TaskTimedOut' });
    expect((await describeExecution('a-1')).status).toBe('RUNNING');
    clock.advance(600 * SECOND_MS);
    expect(await ended('a-1')).toMatchObject({
      status: 'SUCCEEDED',
      output: { outcome: 'expired', failure: { Error: 'States.Timeout' } },
    });
  });

  it('keeps the original deadlines across reopening', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    clock.advance(3_000 * SECOND_MS);
    await reopen();
    clock.advance(600 * SECOND_MS);
    await invoked('escalate');
    await until(async () => (await history('a-1')).includes('WaitStateEntered'), 'the wait begins');
    clock.advance(400 * SECOND_MS);
    await reopen();
    expect((await describeExecution('a-1')).status).toBe('RUNNING');
    clock.advance(200 * SECOND_MS);
    expect((await ended('a-1')).output).toMatchObject({ outcome: 'expired' });
    expect(invocations.map(({ name }) => name)).toEqual(['notify', 'escalate']);
  });

  it('expires while nobody runs it', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    await close();
    clock.advance(DAY_MS);
    await open();
    await expect(succeed(token())).rejects.toMatchObject({ name: 'TaskTimedOut' });
    await invoked('escalate');
  });

  it('refuses an answer in the very moment of the deadline, so that a race has one outcome', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    clock.advance(3_600 * SECOND_MS);
    const late = service.call('SendTaskSuccess', { taskToken: token(), output: '{"approved":true}' });
    await expect(late).rejects.toMatchObject({ code: 'TaskTimedOut' });
    await invoked('escalate');
  });

  it('refuses a second answer, a token it never gave, an answer that is no JSON, and any after the end', async () => {
    await open();
    await start('a-1');
    await start('a-2');
    await invoked('notify', 2);
    const malformed = new SendTaskSuccessCommand({ taskToken: token(), output: '{' });
    await expect(client.send(malformed)).rejects.toMatchObject({ name: 'InvalidOutput' });
    await succeed(token());
    await expect(succeed(token())).rejects.toMatchObject({ name: 'TaskTimedOut' });
    await expect(fail(token(), 'Late')).rejects.toMatchObject({ name: 'TaskTimedOut' });
    await expect(succeed('bm9uc2Vuc2U=')).rejects.toMatchObject({ name: 'InvalidToken' });
    await client.send(
      new StopExecutionCommand({ executionArn: executionArn('a-2'), error: 'Withdrawn', cause: 'by owner' }),
    );
    expect(await ended('a-2')).toMatchObject({ status: 'ABORTED', error: 'Withdrawn', cause: 'by owner' });
    await expect(succeed(token(1))).rejects.toMatchObject({ name: 'TaskTimedOut' });
  });

  it('accepts an answer that comes before the function returns', async () => {
    await open();
    handlers.notify = ({ token: given }) => succeed(String(given)).then(() => new Promise(() => {}));
    await start('a-1');
    expect((await ended('a-1')).status).toBe('SUCCEEDED');
  });

  it('holds a task open by heartbeats and ends it when one is missed', async () => {
    const caught = { ErrorEquals: ['States.HeartbeatTimeout'], ResultPath: '$.failure', Next: 'Lost' };
    const Lost = { Type: 'Succeed' };
    const first = { ...askWithToken, HeartbeatSeconds: 60, TimeoutSeconds: 86_400, Catch: [caught], End: true };
    await run(machine(first, { Lost }), { approval: 'x' });
    await invoked('notify');
    const beat = () => client.send(new SendTaskHeartbeatCommand({ taskToken: token() }));
    for (let beats = 0; beats < 3; beats++) {
      clock.advance(50 * SECOND_MS);
      await beat();
    }
    await reopen();
    expect((await describeExecution('e', 'm')).status).toBe('RUNNING');
    clock.advance(60 * SECOND_MS);
    expect((await ended('e', 'm')).output).toMatchObject({ failure: { Error: 'States.HeartbeatTimeout' } });
    await expect(beat()).rejects.toMatchObject({ name: 'TaskTimedOut' });
  });

  it('waits longer than a timer of the platform can', async () => {
    await open();
    await start('a-1', { ...input, slaSeconds: YEAR_SECONDS });
    await invoked('notify');
    clock.advance((YEAR_SECONDS - 60) * SECOND_MS);
    await turn();
    expect((await describeExecution('a-1')).status).toBe('RUNNING');
    clock.advance(60 * SECOND_MS);
    await invoked('escalate');
  });

  it('starts once per name: the same start while running, a refusal otherwise', async () => {
    await open();
    const first = await start('a-1');
    const again = await start('a-1');
    expect([again.executionArn, again.startDate]).toEqual([first.executionArn, first.startDate]);
    await expect(start('a-1', { ...input, approval: 'other' })).rejects.toMatchObject({
      name: 'ExecutionAlreadyExists',
    });
    await invoked('notify');
    await succeed(token());
    await ended('a-1');
    await expect(start('a-1')).rejects.toMatchObject({ name: 'ExecutionAlreadyExists' });
    expect(invocations).toHaveLength(1);
    await expect(start('x', {}, 'nowhere')).rejects.toMatchObject({ name: 'StateMachineDoesNotExist' });
    await expect(start('not valid')).rejects.toMatchObject({ name: 'InvalidName' });
    const malformed = new StartExecutionCommand({ stateMachineArn: machineArn('approval'), input: '{' });
    await expect(client.send(malformed)).rejects.toMatchObject({ name: 'InvalidExecutionInput' });
  });

  it('lists executions newest first, by status and page by page', async () => {
    await open();
    for (const name of ['a', 'b', 'c']) await start(name);
    await client.send(new StopExecutionCommand({ executionArn: executionArn('b') }));
    const stateMachineArn = machineArn('approval');
    const list = (more: object) => client.send(new ListExecutionsCommand({ stateMachineArn, ...more }));
    const names = (page: { executions?: { name?: string }[] }) => page.executions?.map(({ name }) => name);
    expect(names(await list({ statusFilter: 'RUNNING' }))).toEqual(['c', 'a']);
    const page = await list({ maxResults: 2 });
    expect(names(page)).toEqual(['c', 'b']);
    expect(names(await list({ maxResults: 2, nextToken: page.nextToken }))).toEqual(['a']);
  });

  async function history(name: string, machineName = 'approval'): Promise<(string | undefined)[]> {
    const command = new GetExecutionHistoryCommand({ executionArn: executionArn(name, machineName) });
    return ((await client.send(command)).events ?? []).map(({ type }) => type);
  }

  it('tells what happened, once, however often it was reopened', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    await reopen();
    await reopen();
    await succeed(token());
    await ended('a-1');
    expect(await history('a-1')).toEqual([
      'ExecutionStarted',
      'TaskStateEntered',
      'TaskScheduled',
      'TaskSucceeded',
      'TaskStateExited',
      'ChoiceStateEntered',
      'ChoiceStateExited',
      'PassStateEntered',
      'PassStateExited',
      'ExecutionSucceeded',
    ]);
  });

  it('fails a task by the error of its function, token or not', async () => {
    handlers.notify = () => {
      throw new FunctionError('SlackDown', 'no answer');
    };
    const caught = { ErrorEquals: ['SlackDown'], Next: 'Caught' };
    const Caught = { Type: 'Pass', End: true };
    await run(machine({ ...askWithToken, Catch: [caught], End: true }, { Caught }), { approval: 'x' });
    const { output } = await ended('e', 'm');
    expect(output.Error).toBe('SlackDown');
    expect(JSON.parse(output.Cause)).toEqual({ errorType: 'SlackDown', errorMessage: 'no answer' });
    await expect(succeed(token())).rejects.toMatchObject({ name: 'TaskTimedOut' });
  });

  it('fails an execution whose role may not invoke the function, naming the grant', async () => {
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

  it('retries on the clock with growing intervals, goes on counting after reopening, then catches', async () => {
    handlers.work = () => {
      throw new FunctionError('Busy', 'later');
    };
    const Retry = [{ ErrorEquals: ['Busy'], IntervalSeconds: 10, BackoffRate: 3, MaxAttempts: 2 }];
    const Catch = [{ ErrorEquals: ['States.TaskFailed'], ResultPath: '$.failure', Next: 'Caught' }];
    await run(machine(task('work', { Retry, Catch }), { Caught: { Type: 'Succeed' } }));
    await invoked('work', 1);
    await turn();
    clock.advance(10 * SECOND_MS);
    await invoked('work', 2);
    await turn();
    await reopen();
    clock.advance(15 * SECOND_MS);
    await turn();
    expect(invocations).toHaveLength(2);
    clock.advance(15 * SECOND_MS);
    expect((await ended('e', 'm')).output).toMatchObject({ failure: { Error: 'Busy' } });
    expect(invocations).toHaveLength(3);
  });

  it('shapes data with paths, templates, selectors and intrinsic functions', async () => {
    handlers.work = (event) => ({ echoed: event, extra: 1 });
    const first = {
      Type: 'Task',
      Resource: 'arn:aws:states:::lambda:invoke',
      InputPath: '$.order',
      Parameters: {
        FunctionName: functionArn('work'),
        Payload: {
          'id.$': "States.Format('{}-{}', $.id, $$.Execution.Name)",
          'first.$': "$.lines[0]['sku']",
          'json.$': 'States.JsonToString($.lines)',
          constant: [1, { 'deep.$': '$.id' }],
        },
      },
      ResultSelector: { 'got.$': '$.Payload.echoed', 'status.$': '$.StatusCode' },
      ResultPath: '$.results.work',
      OutputPath: '$.results',
      End: true,
    };
    await run(machine(first), { order: { id: 7, lines: [{ sku: 'a' }] } });
    expect((await ended('e', 'm')).output).toEqual({
      work: { got: { id: '7-e', first: 'a', json: '[{"sku":"a"}]', constant: [1, { deep: 7 }] }, status: 200 },
    });
  });

  it('runs branches side by side, stops the others when one fails, and resumes them after reopening', async () => {
    const branch = (name: string, first: object) => ({ StartAt: name, States: { [name]: first } });
    const wait = { Type: 'Wait', Timestamp: '2199-01-01T00:00:00Z', End: true };
    const Branches = [
      branch('Ask', { ...askWithToken, End: true }),
      branch('Work', task('work', { Resource: functionArn('work') })),
    ];
    handlers.work = () => ({ done: true });
    const parallel = { Type: 'Parallel', Branches, End: true };
    definitions = {
      m: machine(parallel),
      failing: machine(
        {
          Type: 'Parallel',
          Branches: [branch('Wait', wait), branch('Ask', { ...askWithToken, End: true })],
          Catch: [{ ErrorEquals: ['No'], ResultPath: '$.failure', Next: 'Caught' }],
          End: true,
        },
        { Caught: { Type: 'Wait', Seconds: 60, End: true } },
      ),
    };
    await open();
    await start('e', { approval: 'x' }, 'm');
    await start('f', { approval: 'y' }, 'failing');
    await invoked('notify', 2);
    await turn();
    await reopen();
    await succeed(token(0), 'yes');
    expect((await ended('e', 'm')).output).toEqual(['yes', { done: true }]);
    await fail(token(1), 'No', 'refused');
    await reopen();
    clock.advance(60 * SECOND_MS);
    expect((await ended('f', 'failing')).output).toMatchObject({ failure: { Error: 'No', Cause: 'refused' } });
    expect(invocations).toHaveLength(3);
  });

  it('a race of branches that is over is not run again after reopening', async () => {
    handlers.work = () => {
      throw new FunctionError('Busy', 'later');
    };
    const branch = (name: string, first: object, more: object = {}) => ({
      StartAt: name,
      States: { [name]: first, ...more },
    });
    const retrying = task('work', { Retry: [{ ErrorEquals: ['Busy'], IntervalSeconds: 20 }] });
    const clockBranch = branch(
      'Until',
      { Type: 'Wait', Seconds: 10, Next: 'Over' },
      { Over: { Type: 'Fail', Error: 'Over' } },
    );
    const race = {
      Type: 'Parallel',
      Branches: [branch('Work', retrying), clockBranch],
      Catch: [{ ErrorEquals: ['Over'], ResultPath: '$.lost', Next: 'Later' }],
      End: true,
    };
    await run(machine(race, { Later: { Type: 'Wait', Seconds: 60, End: true } }));
    await invoked('work', 1);
    clock.advance(10 * SECOND_MS);
    await turn();
    // By now the branch that lost would try again.
    clock.advance(30 * SECOND_MS);
    await reopen();
    await turn();
    clock.advance(30 * SECOND_MS);
    expect((await ended('e', 'm')).output).toMatchObject({ lost: { Error: 'Over' } });
    expect(invocations).toHaveLength(1);
  });

  it('ends an execution that outlives its machine', async () => {
    await run({ ...machine({ Type: 'Wait', Seconds: 600, End: true }), TimeoutSeconds: 60 });
    clock.advance(60 * SECOND_MS);
    expect(await ended('e', 'm')).toMatchObject({ status: 'TIMED_OUT', error: 'States.Timeout' });
  });

  it('finishes an execution by the definition with which it began', async () => {
    await open();
    await start('a-1');
    await invoked('notify');
    definitions = { approval: machine({ Type: 'Succeed' }) };
    await reopen();
    await succeed(token());
    expect((await ended('a-1')).output).toMatchObject({ outcome: 'approved' });
  });
});
