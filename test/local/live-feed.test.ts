import { DynamoDBClient, PutItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { livePartition, watcherKey } from '../../lambdas/run/dynamo/dynamo-keys.ts';
import { ask, enrolledAgent, publishCommand, startCommand } from './harness/agent-story.ts';
import { incident } from './harness/deliveries.ts';
import { eventually } from './harness/eventually.ts';
import { ACME_KEY, GLOBEX_KEY } from './harness/host-client.ts';
import { LiveWatcher, liveTicket } from './harness/live-watcher.ts';
import { startTestHost, type TestHost } from './harness/test-host.ts';

let host: TestHost;
let dynamo: DynamoDBClient;
let watchers: LiveWatcher[] = [];
let incidents = 0;

beforeAll(async () => {
  host = await startTestHost();
  dynamo = new DynamoDBClient(host.clientConfig());
});
afterEach(async () => {
  for (const watcher of watchers) watcher.close();
  watchers = [];
  await host.clearFaults();
});
afterAll(async () => {
  dynamo.destroy();
  await host.stop();
});

async function watcher(key = ACME_KEY): Promise<LiveWatcher> {
  const opened = await LiveWatcher.with(host, key);
  watchers.push(opened);
  return opened;
}

async function gatedRun(): Promise<string> {
  incidents += 1;
  const runId = await host.fileIncident(incident(`watched ${incidents}`));
  await host.waitForRun(runId, ({ status }) => status === 'waiting_approval');
  return runId;
}

const rowsOfTenant = async (tenant: string) => {
  const { Items = [] } = await dynamo.send(
    new QueryCommand({
      TableName: host.tableName,
      KeyConditionExpression: 'pk = :pk',
      ExpressionAttributeValues: marshall({ ':pk': livePartition(tenant) }),
    }),
  );
  return Items.map((item) => unmarshall(item).sk as string);
};

describe('who watches a run', () => {
  it('acceptance: gets a decision over the socket within 2 s, with all events in order, in the envelope of source 001, each commit completely', {
    retry: 2,
  }, async () => {
    const runId = await gatedRun();
    const ana = await watcher();
    const everything = await watcher();
    expect(await ana.subscribe(runId, `${runId}:0:0`)).toMatchObject({ type: 'subscribed', run_id: runId });
    await everything.subscribe();
    const decidedStep = (await host.run(runId)).steps.findIndex(({ status }) => status === 'waiting_approval') + 1;
    await host.approve(runId);
    const decidedAt = performance.now();
    const decided = await ana.has('approval.resolved');
    expect(performance.now() - decidedAt).toBeLessThan(2_000);
    expect(decided).toMatchObject({
      session_id: runId,
      run_id: runId,
      step_number: decidedStep,
      payload: { type: 'approval.decided' },
      meta: { commit: expect.any(Number), index: expect.any(Number) },
    });
    await ana.has('session.completed');
    await everything.has('session.completed');
    const { commits } = await host.waitForRun(runId);
    const ids = ana.events.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const received = ana.events.map(({ meta }) => ('commit' in meta ? meta.commit : 0));
    expect(received).toEqual(received.toSorted((a, b) => a - b));
    const endOfRun = commits.find(({ events }) => events.some((each) => 'to' in each && each.to === 'succeeded'));
    expect([...new Set(received)].slice(0, endOfRun?.seq)).toEqual(
      Array.from({ length: endOfRun?.seq ?? 0 }, (_, index) => index + 1),
    );
    expect(ana.events[0]).toMatchObject({ id: `${runId}:1:0`, event: 'session.created', step_number: null });
  });

  it('gets the output of commands; the feed of the tenant has none', async () => {
    await publishCommand(host);
    const agent = await enrolledAgent(host, 'watched-1');
    const runId = await startCommand(host);
    const [one, all] = [await watcher(), await watcher()];
    await one.subscribe(runId);
    await all.subscribe();
    const assignment = await agent.take();
    await agent.print(assignment, 0, 'first line\n');
    await agent.print(assignment, 1, 'second line\n');
    await agent.complete(assignment, 2);
    await one.has('session.completed');
    await all.has('session.completed');
    const output = await eventually('both chunks', async () => {
      const chunks = one.events.filter(({ event }) => event === 'execution.step.output');
      return chunks.length >= 2 ? chunks : undefined;
    });
    expect(output.map(({ payload }) => payload)).toEqual([
      { stream_seq: 0, chunk_type: 'stdout', data: 'first line\n' },
      { stream_seq: 1, chunk_type: 'stdout', data: 'second line\n' },
    ]);
    expect(all.eventNames).not.toContain('execution.step.output');
    // What follows the last events that a client has is sent again: commits and output.
    const late = await watcher();
    await late.subscribe(runId, [`${runId}:2:99`, output[0]?.id ?? '']);
    const ids = late.events.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining([`${runId}:3:0`, output[1]?.id]));
    expect(ids).not.toContain(output[0]?.id);
    expect(ids).not.toContain(`${runId}:2:0`);
  });
});

describe('a person who is removed', () => {
  const wandaWatches = async () => {
    await ask(host, 'PUT', '/people/wanda', { body: { name: 'Wanda', role: 'member', identities: ['github:wanda'] } });
    const body = { name: 'wanda-1', person: 'wanda', role: 'member' };
    const { key } = await ask<{ key: string }>(host, 'POST', '/api-keys', { body });
    const { url, ticket } = await liveTicket(host, key);
    const [wanda, ana] = [await watcher(key), await watcher()];
    for (const each of [wanda, ana]) await each.subscribe();
    return { wanda, ana, key, unused: `${url}?ticket=${ticket}` };
  };

  it('is disconnected at once, without another event, and cannot connect with a ticket from before', async () => {
    const [before, after] = [await gatedRun(), await gatedRun()];
    const { wanda, ana, key, unused } = await wandaWatches();
    await host.approve(before);
    await wanda.has('session.completed');
    await ask(host, 'DELETE', '/people/wanda');
    await eventually('closed', async () => wanda.closedWith);
    expect((await rowsOfTenant('acme')).filter((sk) => sk.startsWith('ALL#'))).toHaveLength(1);
    expect(await LiveWatcher.open(unused)).toBe(401);
    expect((await host.command('/live/ticket', {}, key)).status).toBe(401);
    await host.approve(after);
    await eventually('the end of the run', async () =>
      ana.events.find(({ run_id, event }) => run_id === after && event === 'session.completed'),
    );
    expect(wanda.events.filter(({ run_id }) => run_id === after)).toEqual([]);
  });
});

describe('another tenant', () => {
  it('gets nothing: neither by subscription nor through its own feed', async () => {
    const runId = await gatedRun();
    const mallory = await watcher(GLOBEX_KEY);
    expect(await mallory.subscribe(runId)).toMatchObject({ type: 'error', code: 'NOT_FOUND' });
    expect(await mallory.subscribe(runId, `${runId}:0:0`)).toMatchObject({ type: 'error', code: 'NOT_FOUND' });
    expect(await mallory.subscribe()).toEqual({ type: 'subscribed' });
    const forged = { action: 'subscribe', run_id: runId, tenant: 'acme' };
    expect(await mallory.ask(forged, 'error')).toMatchObject({ code: 'BAD_REQUEST' });
    const ana = await watcher();
    await ana.subscribe(runId);
    await host.approve(runId);
    await ana.has('session.completed');
    expect(mallory.events).toEqual([]);
  });

  it('cannot subscribe with the event of another run', async () => {
    const [runId, other] = [await gatedRun(), await gatedRun()];
    const ana = await watcher();
    expect(await ana.subscribe(runId, `${other}:0:0`)).toMatchObject({ type: 'error', code: 'BAD_REQUEST' });
    expect(ana.events).toEqual([]);
  });
});

describe('a connection', () => {
  it('is refused without a ticket, with a used one, with an expired one and with an invented one', async () => {
    const { url, ticket } = await liveTicket(host);
    expect(await LiveWatcher.open(url)).toBe(401);
    expect(await LiveWatcher.open(`${url}?ticket=invented`)).toBe(401);
    const first = await LiveWatcher.open(`${url}?ticket=${ticket}`);
    expect(first).toBeInstanceOf(LiveWatcher);
    expect(await LiveWatcher.open(`${url}?ticket=${ticket}`)).toBe(401);
    (first as LiveWatcher).close();
    const late = await liveTicket(host);
    await host.advance(60_001);
    expect(await LiveWatcher.open(`${url}?ticket=${late.ticket}`)).toBe(401);
    const { status } = await host.command('/live/ticket', {}, 'no-such-key');
    expect(status).toBe(401);
  });

  it('says what it does not understand, answers a ping, and is closed by a frame that is too large', async () => {
    const ana = await watcher();
    expect(await ana.ask({ action: 'ping' }, 'pong')).toEqual({ type: 'pong' });
    expect(await ana.ask('no JSON', 'error')).toMatchObject({ code: 'BAD_REQUEST' });
    expect(await ana.ask({ action: 'subscribe', run_id: 7 }, 'error')).toMatchObject({ code: 'BAD_REQUEST' });
    ana.send({ action: 'subscribe', run_id: 'x'.repeat(33_000) });
    await eventually('closed', async () => ana.closedWith);
    expect(ana.closedWith).toBe(1009);
  });

  it('may subscribe only so often, and to so many runs', async () => {
    const runId = await gatedRun();
    const ana = await watcher();
    for (let sent = 0; sent < 61; sent += 1) await ana.subscribe(runId);
    expect(ana.messages.at(-1)).toMatchObject({ type: 'error', code: 'RATE_LIMITED' });
    expect((await rowsOfTenant('acme')).filter((sk) => sk.includes(runId))).toHaveLength(1);
  });

  it('that is gone is forgotten with the next event', async () => {
    const runId = await gatedRun();
    const endsAt = new Date((await host.now()) + 60_000).toISOString();
    const gone = { connectionId: 'goneGoneGoneGo=', person: 'olivia', machine: false, endsAt, subscription: { runId } };
    const connection = { ...gone, tenant: 'acme', subscriptions: [{ runId }], subscribed: { since: endsAt, count: 1 } };
    for (const [key, doc] of [
      [watcherKey('acme', gone.connectionId, runId), gone],
      [
        { pk: `CONN#${gone.connectionId}`, sk: 'CONN' },
        { ...connection, revision: 1 },
      ],
    ] as const) {
      const Item = marshall({ ...key, doc: JSON.stringify(doc) });
      await dynamo.send(new PutItemCommand({ TableName: host.tableName, Item }));
    }
    await host.approve(runId);
    await eventually('forgotten', async () =>
      (await rowsOfTenant('acme')).some((sk) => sk.includes(runId)) ? undefined : true,
    );
  });

  it('that was closed is forgotten with the next event', async () => {
    const runId = await gatedRun();
    const ana = await LiveWatcher.with(host);
    await ana.subscribe(runId);
    ana.close();
    await host.approve(runId);
    await eventually('forgotten', async () =>
      (await rowsOfTenant('acme')).some((sk) => sk.includes(runId)) ? undefined : true,
    );
  });
});

describe('the fan-out', () => {
  it('reads once for all rows of a batch, and nothing more if nobody watches', async () => {
    const runId = await gatedRun();
    await host.idle();
    await host.resetRequests();
    await host.approve(runId);
    await host.waitForRun(runId);
    await host.idle();
    const { functions } = await host.requests();
    const [, fanOut = {}] = Object.entries(functions).find(([name]) => name.startsWith('LiveFeedFanOut')) ?? [];
    expect(Object.keys(fanOut)).toEqual(['dynamodb']);
    expect(Object.keys(fanOut.dynamodb ?? {})).toEqual(['Query']);
    const { commits } = await host.run(runId);
    expect(fanOut.dynamodb?.Query).toBeLessThanOrEqual(commits.length);
  });

  it('that crashes gets the same rows again: nothing is lost, and each event has the same id', async () => {
    const runId = await gatedRun();
    const ana = await watcher();
    await ana.subscribe(runId);
    await host.fault({
      kind: 'crash_before',
      function: 'LiveFeedFanOut',
      service: 'dynamodb',
      operation: 'Query',
      times: 2,
    });
    await host.fault({ kind: 'crash_after', function: 'LiveFeedFanOut', service: 'execute-api', nth: 2, times: 1 });
    await host.approve(runId);
    await ana.has('session.completed');
    const { commits } = await host.waitForRun(runId);
    const seen = new Set(ana.events.map(({ meta }) => ('commit' in meta ? meta.commit : 0)));
    const decided = commits.find(({ events }) => events.some(({ type }) => type === 'approval.decided'))?.seq ?? 0;
    const end = commits.find(({ events }) => events.some((each) => 'to' in each && each.to === 'succeeded'))?.seq ?? 0;
    for (let seq = decided; seq <= end; seq += 1) expect([...seen]).toContain(seq);
  });
});
