import { beforeEach, describe, expect, it } from 'vitest';
import { redactArrived } from '../../../lambdas/agents/redact-arrived.ts';
import { appendOutput, finishOutput } from '../../../lambdas/agents/store-output.ts';
import { outputRoutes } from '../../../lambdas/api/contract/runs/steps.ts';
import { handleRuns } from '../../../lambdas/api/runs/runs.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { outputPorts } from '../../fakes/memory/memory-output.ts';
import { AgentWorkshop, RESTART, type TestAgent } from '../../worker/agent/agent-workshop.ts';
import { eventFor } from '../every-route.ts';

const WORKFLOW = `
name: restart
steps:
  - { id: restart, tool: agent.command, with: { command: ${RESTART}, args: [restart, web], environment: dev } }
`;

let shop: AgentWorkshop;
let agent: TestAgent;
let message: StepMessage;
let ports: ReturnType<typeof outputPorts>;
beforeEach(async () => {
  shop = new AgentWorkshop();
  [agent] = (await shop.openWithAgents('one')) as [TestAgent];
  message = await shop.start(WORKFLOW);
  ports = outputPorts(shop.clock);
});

const command = () => ({ ...message, stepIndex: 0, leaseVersion: 1 });
const print = (seq: number, data: string) =>
  appendOutput({ ...ports, redact: redactArrived }, command(), [
    { stream_seq: seq, chunk_type: 'stdout', at: '2026-01-02T03:04:05.000Z', data },
  ]);
const finish = (chunks: number) =>
  finishOutput({ ...ports, redact: redactArrived, log: shop.log }, command(), { chunks, droppedBytes: 0 });

async function read(index = '0', query: Record<string, string> = {}, tenant = 'acme') {
  const as = { tenant, person: 'mia', role: 'member' as const };
  const event = eventFor(outputRoutes.getStepOutput, as, { params: { id: message.runId, index } });
  const api = { ...ports, runs: shop.runs, definitions: shop.definitions, cursorSecret: async () => 'secret' };
  const { body } = await handleRuns(api, { ...event, queryStringParameters: query } as never);
  return JSON.parse(body ?? '');
}
const text = ({ chunks }: { chunks: { data: string }[] }) => chunks.map(({ data }) => data).join('');

describe('the output of a step', () => {
  it('is read while the command runs, from any chunk on, by number or id of the step', async () => {
    await agent.take();
    expect(await read()).toMatchObject({ chunks: [], next: 0, more: false, complete: false });
    await print(0, 'first\n');
    await print(1, 'second\n');
    expect(text(await read())).toBe('first\nsecond\n');
    expect(await read('restart', { since: '1' })).toMatchObject({
      ...{ step: 'restart', index: 0, leaseVersion: 1, next: 2, more: false, complete: false },
      chunks: [{ seq: 1, stream: 'stdout', data: 'second\n' }],
    });
  });

  it('is complete when the command has ended, also after its rows have expired', async () => {
    const statement = await agent.take();
    await print(0, '1\n');
    await finish(1);
    await agent.complete(statement);
    expect(await read()).toMatchObject({ complete: true, total: { bytes: 2, complete: true } });
    ports.output.expire(command());
    expect(await read()).toMatchObject({ chunks: [{ data: '1\n' }], complete: true, total: { bytes: 2 } });
    expect(await read('0', { since: '1' })).toMatchObject({ chunks: [], next: 1, complete: true });
  });

  it('of a lost agent ends with what arrived', async () => {
    await agent.take();
    await print(0, '1\n');
    await shop.pass(31);
    expect(await read()).toMatchObject({ chunks: [{ data: '1\n' }], complete: true });
  });

  it('comes in pages that are smaller than a response', async () => {
    await agent.take();
    for (let seq = 0; seq < 20; seq += 1) {
      await print(seq, `${seq}${'.'.repeat(60_000)}`);
      shop.clock.advance(1_000);
    }
    const first = await read();
    expect([first.more, first.complete]).toEqual([true, false]);
    expect(text(first).length).toBeLessThan(600_000);
    let all = text(first);
    for (let part = first; part.more; ) {
      part = await read('0', { since: String(part.next) });
      all += text(part);
    }
    expect(all.length).toBe(20 * 60_000 + 30);
  });

  it('of an unknown step, or of a run of another tenant, is not found', async () => {
    await expect(read('7')).rejects.toMatchObject({ status: 404 });
    await expect(read('0', {}, 'globex')).rejects.toMatchObject({ status: 404 });
    await expect(read('0', { since: '-1' })).rejects.toMatchObject({ status: 400 });
  });
});
