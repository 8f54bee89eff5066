import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DynamoDefinitions } from '../../../lambdas/pipeline/dynamo-definitions.ts';
import { PoliciesUnavailable, type PolicyDecision } from '../../../lambdas/policy/policy.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { eventTypes, SYS_ID } from '../workshop.ts';
import { ASSIGN, FAILED, GovernedWorkshop, needsApproval } from './governed-workshop.ts';

/** Policies that cannot be read do not deny: nothing is written, and the step tries again. */
const UNREADABLE: PolicyDecision = { ...FAILED, retryable: true };

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());
const group = () => shop.outside.incidents.get(SYS_ID)?.fields.category;
const decidedIn = (events: { type: string }[]) => events.filter(({ type }) => type === 'policy.decided');

/** The first decisions fail, because the policies cannot be read. */
function unreadable(times: number, then: PolicyDecision = ALLOWED): void {
  let asked = 0;
  shop.policy.decision = () => {
    asked += 1;
    return asked <= times ? UNREADABLE : then;
  };
}

describe('a step whose policies cannot be read', () => {
  it('waits half a minute, and is performed once they can be', async () => {
    unreadable(3);
    const message = await shop.begin(ASSIGN());
    await shop.work(message);
    const waiting = await shop.now(message);
    expect(waiting.run.status).toBe('failed_retryable');
    expect(waiting.steps).toMatchObject([{ status: 'failed_retryable', attempt: 0, error: { code: 'POLICY_ERROR' } }]);
    expect(shop.outside.calls).toEqual([]);

    const done = await shop.finish(message);
    expect(done.run).toMatchObject({ status: 'succeeded', writes: 1 });
    expect(group()).toBe('network');
    expect(shop.writes()).toHaveLength(1);
    expect(decidedIn(done.commits.flatMap(({ events }) => events))).toMatchObject([{ verdict: 'allow' }]);
    expect(eventTypes(done).filter((type) => type === 'step.retry_scheduled')).toHaveLength(3);
  });

  it('ends with its run’s deadline if they can never be read, and nothing is written', async () => {
    unreadable(Number.POSITIVE_INFINITY);
    const { run } = await shop.finish(await shop.begin(ASSIGN('deadlineSeconds: 600')));
    expect(run.status).toBe('timed_out');
    expect(shop.writes()).toEqual([]);
  });

  it('does not lose the outcome of the step before it', async () => {
    let asked = 0;
    shop.policy.decision = () => {
      asked += 1;
      return asked === 2 ? UNREADABLE : ALLOWED;
    };
    const note = `{ id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: hello } }`;
    const { run } = await shop.finish(await shop.begin(`${ASSIGN()}  - ${note}\n`));
    expect(run.status).toBe('succeeded');
    expect(shop.writes()).toHaveLength(2);
  });

  it('keeps its approval: people are not asked again', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN());
    await shop.say(approval, 'olivia');
    unreadable(2, needsApproval());
    const { run, commits } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
    const asked = commits.flatMap(({ events }) => events.filter(({ type }) => type === 'approval.requested'));
    expect(asked).toHaveLength(1);
  });

  it('does not need a human although an earlier attempt may have written: it is probed later', async () => {
    shop.policy.decision = () => ALLOWED;
    const message = await shop.begin(ASSIGN());
    shop.outside.next('PATCH servicenow', 'lost_answer');
    await shop.work(message);
    unreadable(1);
    const { run, receipts } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
    expect(receipts).toMatchObject([{ outcome: 'succeeded' }]);
  });

  it('is still logged as unknown when the run is canceled before the probe', async () => {
    shop.policy.decision = () => ALLOWED;
    const message = await shop.begin(ASSIGN());
    shop.outside.next('PATCH servicenow', 'lost_answer');
    await shop.work(message);
    unreadable(Number.POSITIVE_INFINITY);
    shop.clock.advance(10 * 60_000);
    await shop.work(message);
    await shop.command(message, { kind: 'cancel' });
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'canceled', compensation: [{ step: 'assign', outcome: 'unknown' }] });
  });
});

describe('reading policies from DynamoDB', () => {
  const answers = {
    ProvisionedThroughputExceededException: 400,
    ThrottlingException: 400,
    InternalServerError: 500,
    AccessDeniedException: 400,
    ResourceNotFoundException: 400,
  };
  const read = async (respond: (() => [status: number, body: string]) | undefined) => {
    const server = createServer((request, response) => {
      if (!respond) return request.destroy();
      const [status, body] = respond();
      response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
    const client = new DynamoDBClient({ endpoint, region: 'us-east-1', credentials, maxAttempts: 1 });
    try {
      return await new DynamoDefinitions(client, 'runs').policies('acme').catch((error: unknown) => error);
    } finally {
      client.destroy();
      server.close();
    }
  };

  it.each(Object.entries(answers))('%s (%i)', async (code, status) => {
    const error = await read(() => [
      status,
      JSON.stringify({ __type: `com.amazonaws.dynamodb#${code}`, message: 'no' }),
    ]);
    const passes = !['AccessDeniedException', 'ResourceNotFoundException'].includes(code);
    expect(error instanceof PoliciesUnavailable).toBe(passes);
    expect((passes ? (error as Error).cause : error) as Error).toMatchObject({ name: code });
  });

  it('that is cut off is retried later; a row that is no document is not', async () => {
    expect(await read(undefined)).toBeInstanceOf(PoliciesUnavailable);
    const broken = JSON.stringify({ Item: { doc: { S: '{' } } });
    expect(await read(() => [200, broken])).toBeInstanceOf(SyntaxError);
  });
});
