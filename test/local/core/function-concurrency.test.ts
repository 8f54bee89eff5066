import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type SmallHost, startSmallHost } from './small-host.ts';
import { functionWith, template } from './small-template.ts';

/** Handlers call this server and wait for its response, so a test decides when each of them continues. */
const arrived: { name: string; goOn(): void }[] = [];
let onArrival = () => {};
const gate = createServer((request, response: ServerResponse) => {
  arrived.push({ name: request.url ?? '', goOn: () => response.end() });
  onArrival();
});

/** Resolves once that many handlers are waiting at the gate. */
const waiting = (count: number) =>
  new Promise<void>((resolve) => {
    onArrival = () => arrived.length >= count && resolve();
    onArrival();
  });

let host: SmallHost;

beforeAll(async () => {
  await new Promise<void>((resolve) => gate.listen(0, '127.0.0.1', resolve));
  const handler = `export const handler = async ({ name }) => {
    await fetch(process.env.GATE + '/' + name);
    return name;
  };`;
  const Environment = { Variables: { GATE: `http://127.0.0.1:${(gate.address() as AddressInfo).port}` } };
  host = await startSmallHost({
    template: template({
      ...functionWith('Two', [], { Environment, Timeout: 10 }),
      ...functionWith('One', [], { Environment, Timeout: 10, ReservedConcurrentExecutions: 1 }),
      ...functionWith('None', [], { Environment, ReservedConcurrentExecutions: 0 }),
    }),
    handlers: { Two: handler, One: handler },
    concurrency: 2,
    withDynamoDb: false,
  });
});
afterAll(async () => {
  gate.closeAllConnections();
  gate.close();
  await host.stop();
});

it('runs invocations up to its limit at the same time, and the others in their order', async () => {
  const invocations = ['a', 'b', 'c', 'd'].map((name) => host.functions.invoke('Two', { name }));
  await waiting(2);
  expect(host.functions.stats().Two).toMatchObject({ threads: 2, busy: 2, queued: 2 });
  arrived[0]?.goOn();
  await waiting(3);
  expect(arrived[2]?.name).toBe('/c');
  arrived[1]?.goOn();
  await waiting(4);
  for (const { goOn } of arrived) goOn();
  expect(await Promise.all(invocations)).toEqual(['a', 'b', 'c', 'd']);
  expect(host.functions.stats().Two).toMatchObject({
    threads: 2,
    busy: 0,
    queued: 0,
    peak: 2,
    invocations: 4,
    errors: 0,
  });
});

it('uses a smaller reservation of the template', async () => {
  arrived.length = 0;
  const invocations = ['a', 'b'].map((name) => host.functions.invoke('One', { name }));
  await waiting(1);
  expect(host.functions.stats().One).toMatchObject({ threads: 1, busy: 1, queued: 1 });
  arrived[0]?.goOn();
  await waiting(2);
  arrived[1]?.goOn();
  expect(await Promise.all(invocations)).toEqual(['a', 'b']);
  await expect(host.functions.invoke('None', {})).rejects.toMatchObject({ errorType: 'TooManyRequestsException' });
});

it('stops running and waiting invocations that would not end', async () => {
  arrived.length = 0;
  const invocations = Promise.allSettled(['a', 'b', 'c'].map((name) => host.functions.invoke('Two', { name })));
  await waiting(2);
  await host.functions.stop();
  expect((await invocations).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(host.functions.stats().Two).toMatchObject({ threads: 0 });
});
