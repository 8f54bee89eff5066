import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SDK, type SmallHost, startSmallHost } from './small-host.ts';
import { arnOf, functionWith, runsTable, template } from './small-template.ts';

const TABLE = 'Test-Runs';
const HOUR_MS = 3_600_000;
const TIMEOUT_SECONDS = 10;
const SHORT_TIMEOUT_SECONDS = 2;

const WRITER = `
  const { DynamoDBClient, PutItemCommand } = ${SDK('client-dynamodb')};
  const client = new DynamoDBClient({ maxAttempts: 1 });
  export const handler = async ({ pk }) => {
    await client.send(new PutItemCommand({ TableName: process.env.TABLE, Item: { pk: { S: pk }, sk: { S: '1' } } }));
    return { wrote: pk };
  };`;

const PROBE = `
  let calls = 0;
  const reader = {
    environment: () => ({ ...process.env }),
    clock: () => {
      const created = new Date();
      return {
        now: Date.now(), created: created.getTime(), fixed: new Date(2026, 0, 1) instanceof Date, utc: Date.UTC(2026, 0),
        parsed: Date.parse('2026-01-01T00:00:00Z'), explicit: new Date(5).getTime(), ctor: created.constructor === Date,
        text: typeof Date(), subclass: new (class extends Date {})().getTime(), real: performance.timeOrigin + performance.now(),
      };
    },
    count: () => ++calls,
    context: (event, context) => ({ ...context, remainingMs: context.getRemainingTimeInMillis() }),
    nothing: () => undefined,
    date: () => ({ at: new Date(0), gone: undefined }),
    bigAnswer: () => 'x'.repeat(6 * 1024 * 1024),
    fail: () => { throw new RangeError('too far'); },
    failOddly: () => { throw 'a string'; },
    exit: () => process.exit(3),
    unhandled: () => { Promise.reject(new Error('nobody listens')); return new Promise(() => {}); },
    hang: () => new Promise(() => {}),
    spin: () => { for (;;); },
    log: () => {
      console.log('first\\nsecond');
      console.error('third');
      console.log(JSON.stringify({ _aws: { CloudWatchMetrics: [{ Namespace: 'Countersign', Dimensions: [['tenant']], Metrics: [{ Name: 'Runs', Unit: 'Count' }] }] }, tenant: 'acme', Runs: 2 }));
    },
  };
  export const handler = async (event, context) => reader[event.read](event, context);`;

let host: SmallHost;

beforeAll(async () => {
  process.env.LEAKED_FROM_THE_HOST = 'yes';
  host = await startSmallHost({
    template: template({
      ...runsTable,
      ...functionWith('Writer', [{ Action: 'dynamodb:PutItem', Resource: arnOf('Runs') }], {
        Environment: { Variables: { TABLE: { Ref: 'Runs' } } },
        Timeout: TIMEOUT_SECONDS,
      }),
      ...functionWith('Probe', [], {
        Environment: { Variables: { GREETING: 'hello' } },
        Timeout: TIMEOUT_SECONDS,
        MemorySize: 512,
        ReservedConcurrentExecutions: 1,
      }),
      ...functionWith('Hasty', [], { Timeout: SHORT_TIMEOUT_SECONDS, ReservedConcurrentExecutions: 1 }),
      ...functionWith('Broken'),
    }),
    handlers: {
      Writer: WRITER,
      Probe: PROBE,
      Hasty: PROBE,
      Broken: `import './missing.mjs'; export const handler = () => 1;`,
    },
    concurrency: 2,
  });
});
afterAll(() => {
  delete process.env.LEAKED_FROM_THE_HOST;
  return host.stop();
});
beforeEach(() => {
  host.faults.clear();
  host.lines.length = 0;
});

const probe = (read: string) => host.functions.invoke('Probe', { read });
const exists = async (pk: string) => {
  const key = { pk: { S: pk }, sk: { S: '1' } };
  return (await host.dynamodbAs('host').send(new GetItemCommand({ TableName: TABLE, Key: key }))).Item !== undefined;
};

describe('a function', () => {
  it('calls AWS with its own credentials', async () => {
    host.requests.reset();
    const arn = host.stack.resources.get('Writer')?.arn ?? '';
    expect(await host.functions.invoke(`${arn}:live`, { pk: 'w1' })).toEqual({ wrote: 'w1' });
    expect(await exists('w1')).toBe(true);
    expect(host.requests.report().functions).toEqual({ Writer: { dynamodb: { PutItem: 1 } } });
  });

  it('has only its own environment variables and none of the host', async () => {
    expect(await probe('environment')).toEqual({
      GREETING: 'hello',
      AWS_REGION: 'us-east-1',
      AWS_DEFAULT_REGION: 'us-east-1',
      AWS_LAMBDA_FUNCTION_NAME: 'Test-Probe',
      AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '512',
      AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x',
      AWS_ACCESS_KEY_ID: expect.stringMatching(/^LOCALProbe\.\d+$/),
      AWS_SECRET_ACCESS_KEY: 'local',
      AWS_SESSION_TOKEN: 'local',
      AWS_ENDPOINT_URL: host.gateway.url,
      LAMBDA_TASK_ROOT: expect.stringMatching(/Probe$/),
      _HANDLER: 'index.handler',
      _X_AMZN_TRACE_ID: expect.stringMatching(/^Root=1-[0-9a-f]{24};Lineage=[0-9a-f]{8}:1$/),
      TZ: ':UTC',
    });
  });

  it('uses the host clock only for Date', async () => {
    const before = host.clock.now();
    host.clock.advance(HOUR_MS);
    const seen = (await probe('clock')) as Record<string, number>;
    for (const name of ['now', 'created', 'subclass']) {
      expect(seen[name]).toBeGreaterThanOrEqual(before + HOUR_MS);
      expect(seen[name]).toBeLessThanOrEqual(host.clock.now());
    }
    const untouched = {
      fixed: true,
      utc: Date.UTC(2026, 0),
      parsed: Date.UTC(2026, 0),
      explicit: 5,
      ctor: true,
      text: 'string',
    };
    expect(seen).toMatchObject(untouched);
    expect(seen.real).toBeLessThan(Date.now() + HOUR_MS / 2);
  });

  it('keeps its thread warm between invocations', async () => {
    const first = (await probe('count')) as number;
    expect(await probe('count')).toBe(first + 1);
  });

  it('gets a Lambda context', async () => {
    const context = (await host.functions.invoke('Probe', { read: 'context' }, { awsRequestId: 'r-1' })) as Record<
      string,
      unknown
    >;
    expect(context).toMatchObject({ awsRequestId: 'r-1', functionName: 'Test-Probe', memoryLimitInMB: '512' });
    expect(context.invokedFunctionArn).toBe(host.stack.resources.get('Probe')?.arn);
    expect(context.remainingMs).toBeGreaterThan(0);
    expect(context.remainingMs).toBeLessThanOrEqual(TIMEOUT_SECONDS * 1000);
  });

  it('returns JSON, as Lambda does', async () => {
    expect(await probe('nothing')).toBeNull();
    expect(await probe('date')).toEqual({ at: '1970-01-01T00:00:00.000Z' });
  });

  it('has the payload limits of Lambda', async () => {
    await expect(probe('bigAnswer')).rejects.toMatchObject({ errorType: 'Function.ResponseSizeTooLarge' });
    const large = host.functions.invoke('Probe', 'x'.repeat(6 * 1024 * 1024));
    await expect(large).rejects.toMatchObject({ errorType: 'RequestEntityTooLargeException' });
  });

  it('logs by line, and its embedded metrics are collected before it returns', async () => {
    await probe('log');
    await probe('log');
    expect(host.lines.slice(0, 3)).toEqual(['Probe: first', 'Probe: second', 'Probe: third']);
    expect(host.functions.metrics()).toEqual([
      {
        function: 'Probe',
        namespace: 'Countersign',
        name: 'Runs',
        unit: 'Count',
        dimensions: { tenant: 'acme' },
        count: 2,
        sum: 4,
        min: 2,
        max: 2,
      },
    ]);
  });
});

describe('a failing function', () => {
  it('rejects with the name and message of the thrown error, and continues', async () => {
    const before = (await probe('count')) as number;
    await expect(probe('fail')).rejects.toMatchObject({ errorType: 'RangeError', message: 'too far' });
    await expect(probe('failOddly')).rejects.toMatchObject({ errorType: 'string', message: 'a string' });
    expect(await probe('count')).toBe(before + 1);
  });

  it.each(['hang', 'spin'])('is ended with its thread when it exceeds its timeout (%s)', async (read) => {
    const timedOut = { errorType: 'Sandbox.Timedout', message: 'Task timed out after 2.00 seconds' };
    await expect(host.functions.invoke('Hasty', { read })).rejects.toMatchObject(timedOut);
    expect(await host.functions.invoke('Hasty', { read: 'count' })).toBe(1);
  });

  it.each(['exit', 'unhandled'])('reports an exited runtime and starts again (%s)', async (read) => {
    await expect(probe(read)).rejects.toMatchObject({ errorType: 'Runtime.ExitError' });
    expect(await probe('count')).toBe(1);
  });

  it('that cannot be loaded reports this for every invocation', async () => {
    for (const _attempt of [1, 2]) {
      await expect(host.functions.invoke('Broken', {})).rejects.toMatchObject({
        message: expect.stringContaining('missing.mjs'),
      });
    }
    await expect(host.functions.invoke('Absent', {})).rejects.toMatchObject({ errorType: 'ResourceNotFoundException' });
  });
});

describe('an injected crash', () => {
  it('before the call leaves no effect', async () => {
    host.faults.add({ function: 'writer', operation: 'PutItem', kind: 'crash_before' });
    await expect(host.functions.invoke('Writer', { pk: 'before' })).rejects.toMatchObject({
      errorType: 'Runtime.ExitError',
    });
    expect(await exists('before')).toBe(false);
    expect(await host.functions.invoke('Writer', { pk: 'before' })).toEqual({ wrote: 'before' });
  });

  it('after the call leaves the effect', async () => {
    host.faults.add({ function: 'writer', operation: 'PutItem', kind: 'crash_after' });
    await expect(host.functions.invoke('Writer', { pk: 'after' })).rejects.toMatchObject({
      errorType: 'Runtime.ExitError',
    });
    expect(await exists('after')).toBe(true);
  });

  it('ends only the thread that made the call', async () => {
    host.faults.add({ function: 'writer', operation: 'PutItem', nth: 2, kind: 'crash_before' });
    const both = await Promise.allSettled(['p1', 'p2'].map((pk) => host.functions.invoke('Writer', { pk })));
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });
});
