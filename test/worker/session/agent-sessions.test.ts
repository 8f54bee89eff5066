import { beforeEach, describe, expect, it } from 'vitest';
import { isoNow } from '../../../lambdas/entry/ports.ts';
import type { StoredConfiguration } from '../../../lambdas/pipeline/configuration.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { completeSession } from '../../../lambdas/run-changes/session/complete-session.ts';
import { openSessionToken } from '../../../lambdas/run-changes/session/session-token.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { AgentWorkshop, RESTART, type TestAgent } from '../agent/agent-workshop.ts';
import { DENIED } from '../governance/governed-workshop.ts';
import { die, SESSION_SECRET, survived } from '../workshop.ts';

const TRIAGE = `
name: triage
steps:
  - { id: triage, tool: agent.session, with: { configuration: hosts, prompt: Label the issue., timeoutSeconds: 900 } }
`;

let shop: AgentWorkshop;
let agent: TestAgent;
let message: StepMessage;
beforeEach(() => opened());

async function opened(): Promise<void> {
  shop = new AgentWorkshop();
  [agent] = (await shop.openWithAgents('one')) as [TestAgent];
  const session = { provider: 'agent' as const, command: RESTART, environment: 'dev' as const, capabilities: [] };
  await shop.definitions.saveConfiguration('acme', { name: 'hosts', session, instructions: 'Be brief.', revision: 1 });
  message = await shop.begin(TRIAGE);
}

const commandRuns = () => [...shop.runs.inside.runs()].filter(({ request }) => request?.action !== undefined);
const commandRun = async () => {
  const [run, ...others] = commandRuns();
  if (!run || others.length > 0) throw new Error(`${others.length + (run ? 1 : 0)} commands`);
  return shop.now({ tenant: 'acme', runId: run.runId });
};
const parent = async () => (await shop.now(message)).run;

/** The session is at work: an agent runs its command. */
async function atWork() {
  await shop.work(message);
  await shop.deliver();
  const statement = await agent.offer();
  const { confirmed, stdin = '' } = await agent.ack(statement);
  expect(confirmed).toBe(true);
  const { text, data } = JSON.parse(stdin) as { text: string; data: Record<string, string> };
  return { statement, stdin, text, data };
}
const complete = (completionId = '') =>
  completeSession(shop.worker, { ...message, stepIndex: 0 }, { completionId, outcome: 'succeeded', summary: 'done' });

describe('6.4 a session on an agent', () => {
  it('runs a command that the author of its configuration chose, so they do not approve it', async () => {
    const stored = await shop.definitions.configuration('acme', 'hosts');
    await shop.definitions.saveConfiguration('acme', {
      ...stored,
      revision: 2,
      author: 'olivia',
    } as StoredConfiguration);
    await shop.work(message);
    expect((await commandRun()).run.makers).toContain('olivia');
  });

  it('is a signed command that reads its prompt and its token, which is not stored', async () => {
    const { statement, stdin, text, data } = await atWork();
    expect((await shop.now(message)).steps[0]).toMatchObject({
      status: 'waiting_external',
      session: { configuration: 'hosts', isCommand: true, sessionId: commandRuns()[0]?.runId },
    });
    expect(statement).toMatchObject({
      stdin_sha256: sha256Hex(stdin),
      command: { executable: RESTART, args: [] },
      timeout_seconds: 900,
    });
    expect(text).toMatch(/^Be brief\.\n\nLabel the issue\./);
    expect(data).toMatchObject({
      run_id: message.runId,
      urls: { complete: expect.stringMatching(/^https:\/\/api\./) },
    });
    const opened = openSessionToken(data.token ?? '', SESSION_SECRET, isoNow(shop.clock));
    expect(opened).toMatchObject({ ...message, stepIndex: 0 });
    const command = await shop.runs.load('acme', commandRuns()[0]?.runId ?? '');
    const stored = JSON.stringify([command, await shop.now(message), shop.assignments(), shop.log]);
    expect(stored).toContain('Label the issue.');
    expect(stored).not.toContain('cst_');
  });

  it('is decided on like any command, and the session is a maker of it', async () => {
    await atWork();
    const { run, steps } = await commandRun();
    expect(run.request?.action).toMatchObject({ tool: 'agent.command', of: { runId: message.runId, step: 'triage' } });
    expect(steps[0]?.governed?.request.action).toMatchObject({
      tool: 'agent.command',
      makers: expect.arrayContaining(['session:hosts']),
    });
  });

  it('survives a worker that dies at any call: one command, one assignment that an agent takes', async () => {
    for (let point = 1; point <= 25; point += 1) {
      await opened();
      let calls = 0;
      shop.disturb((_name, run) => {
        calls += 1;
        return calls === point ? die() : run();
      });
      await survived(() => shop.work(message));
      shop.disturb((_name, run) => run());
      for (let minutes = 0; minutes < 4; minutes += 1) {
        shop.clock.advance(60_000);
        await agent.sync();
        await shop.sweep();
        await shop.deliver();
      }
      expect([point, commandRuns().length]).toEqual([point, 1]);
    }
  });
});

describe('6.5 the completion of a session on an agent', () => {
  it('ends the step; its command is left to end by itself', async () => {
    const { statement, data } = await atWork();
    await complete(data.completion_id);
    await shop.deliver();
    expect((await parent()).status).toBe('succeeded');
    expect((await commandRun()).run.stopRequest).toBeUndefined();
    expect(await agent.complete(statement)).toEqual({ result: 'accepted' });
    expect((await commandRun()).run.status).toBe('succeeded');
  });
});

describe('6.6 the finalizer ends the run of a session on an agent', () => {
  it.each([
    ['ended', 'succeeded', {}],
    ['dead', 'failed', { exit_code: 1 }],
  ] as const)('at once if its command has %s without a completion', async (because, status, differing) => {
    const { statement, data } = await atWork();
    await agent.complete(statement, { status, ...differing });
    await shop.deliver();
    expect(await parent()).toMatchObject({ status: 'failed_terminal', error: { code: 'SESSION_LOST' } });
    const events = (await shop.now(message)).commits.flatMap((commit) => commit.events);
    expect(events).toContainEqual(expect.objectContaining({ type: 'session.lost', because }));
    await expect(complete(data.completion_id)).rejects.toMatchObject({ code: 'RUN_TERMINAL_STATE' });
  });

  it('at once if policy denies its command: nothing is offered', async () => {
    shop.policy.decision = (request) => (request.action.tool === 'agent.command' ? DENIED : ALLOWED);
    await shop.work(message);
    await shop.deliver();
    expect(await agent.offers()).toEqual([]);
    expect(await parent()).toMatchObject({ status: 'failed_terminal', error: { code: 'SESSION_LOST' } });
  });

  it('not while its command works; one that is canceled with its run is stopped', async () => {
    const { statement } = await atWork();
    await shop.work(message);
    expect((await parent()).status).toBe('waiting_external');
    await shop.command(message, { kind: 'cancel' });
    await shop.deliver();
    expect((await parent()).status).toBe('canceled');
    const { cancels } = await agent.sync([statement]);
    expect(cancels).toMatchObject([{ assignment_id: statement.assignment_id }]);
  });

  it('after its deadline, and stops the command', async () => {
    const { statement } = await atWork();
    for (let minutes = 0; minutes < 16; minutes += 1) {
      shop.clock.advance(20_000);
      await agent.sync([statement]);
      shop.clock.advance(20_000);
      await agent.sync([statement]);
      shop.clock.advance(20_000);
      await agent.sync([statement]);
      await shop.sweep();
      await shop.deliver();
    }
    expect(await parent()).toMatchObject({ status: 'timed_out', error: { code: 'SESSION_TIMED_OUT' } });
    expect((await agent.sync([statement])).cancels).toMatchObject([{ assignment_id: statement.assignment_id }]);
  });
});
