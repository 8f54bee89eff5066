import { beforeEach, describe, expect, it } from 'vitest';
import { later } from '../../../lambdas/run/lease.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { needsApproval } from '../governance/governed-workshop.ts';
import { eventTypes, statuses } from '../workshop.ts';
import { AgentWorkshop, RESTART, SHA, type TestAgent } from './agent-workshop.ts';

const DEV = `command: ${RESTART}, args: [restart, web], environment: dev`;
const UNDOABLE = `${DEV}, rollback: { command: /opt/undo, args: [web] }`;
const workflow = (input = DEV, more = '', step = '') => `
name: restart
${more}
steps:
  - { id: restart, tool: agent.command, with: { ${input} } ${step} }
`;

let shop: AgentWorkshop;
let one: TestAgent;
let two: TestAgent;
beforeEach(async () => {
  shop = new AgentWorkshop();
  [one, two] = (await shop.openWithAgents('one')) as [TestAgent, TestAgent];
});

const step = async (message: StepMessage, id = 'restart') => {
  const { steps } = await shop.now(message);
  return steps.find((each) => each.id === id);
};

describe('acceptance: a session progresses end to end through the distributed worker path', () => {
  it('an agent gets a signed assignment, acknowledges it, and its result settles the step', async () => {
    const message = await shop.start(workflow());
    const statement = await one.offer();
    expect(statement).toMatchObject({
      ...{ tenant: 'acme', agent_id: 'agt_one', session_id: message.runId, step_number: 1, lease_version: 1 },
      ...{ environment: 'dev', sandbox_profile: 'dev-flex', rollback: false, approval_id: null, timeout_seconds: 60 },
      command: { executable: RESTART, args: ['restart', 'web'] },
      start_before: later(statement.issued_at, 30_000),
    });
    const { confirmed, expires_at } = await one.ack(statement);
    expect({ confirmed, expires_at }).toEqual({ confirmed: true, expires_at: later(statement.issued_at, 30_000) });
    expect(await step(message)).toMatchObject({
      status: 'running',
      assigned: { agentId: 'agt_one', bootId: 'boot-one-1', profile: 'dev-flex' },
      lease: { expiresAt: expires_at },
    });
    expect(await one.complete(statement)).toEqual({ result: 'accepted' });
    const { run, steps, receipts, sealed } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
    expect(steps[0]).toMatchObject({
      status: 'succeeded',
      output: { exitCode: 0, durationMs: 1_200, agent: 'agt_one', profile: 'dev-flex', outputSha256: SHA },
    });
    expect(receipts[0]).toMatchObject({
      outcome: 'succeeded',
      reversal: { irreversible: 'the command has no rollback' },
      response: { exitCode: 0, outputSha256: SHA, outputBytes: 42 },
      command: { agentId: 'agt_one', statementHash: shop.assignments()[0]?.statementHash, status: 'succeeded' },
    });
    expect(sealed).toBe(true);
    expect(shop.assignments()).toMatchObject([{ status: 'completed', result: { output: { sha256: SHA } } }]);
  });

  it('the receipt names credentials by id with the audit id of the vault, and the chain proves it', async () => {
    const message = await shop.start(workflow(`${DEV}, credentials: [db-primary]`));
    const statement = await one.take();
    expect(statement.credentials).toEqual(['db-primary']);
    const used = { id: 'db-primary', source: 'vault', audit_id: 'req-7', ttl_seconds: 300, revoked: true, fetch_ms: 5 };
    await one.complete(statement, { credentials_used: [{ ...used, source: 'vault' }] });
    const now = await shop.finish(message);
    expect(now.receipts[0]?.command?.credentialsUsed).toEqual([
      { id: 'db-primary', source: 'vault', auditId: 'req-7', ttlSeconds: 300, revoked: true },
    ]);
    const ended = now.commits.flatMap(({ events }) => events).find(({ type }) => type === 'step.command_ended');
    expect(ended).toMatchObject({ credentials: ['db-primary'], outputSha256: SHA, exitCode: 0 });
  });

  it('policy and approvers decide on the command as on any write, and a statement names the approval', async () => {
    shop.policy.decision = () => needsApproval();
    const { message, approval } = await shop.upToGate(workflow());
    expect(approval.action?.fields).toEqual({
      ...{ command: RESTART, args: ['restart', 'web'], environment: 'dev', profile: 'dev-flex', timeoutSeconds: 60 },
    });
    expect(await one.offers()).toEqual([]);
    await shop.say(approval, 'ben');
    await shop.work(message);
    const statement = await one.take();
    expect(statement).toMatchObject({ approval_id: approval.approvalId, action_hash: approval.actionHash });
  });
});

describe('an assignment', () => {
  it('that is not acknowledged is withdrawn: an agent that acknowledges it later may not run it', async () => {
    const message = await shop.start(workflow());
    const statement = await one.offer();
    await shop.pass(12);
    expect(await one.ack(statement)).toMatchObject({ confirmed: false, reason: 'the assignment was withdrawn' });
    expect(shop.assignments()).toMatchObject([{ status: 'withdrawn' }]);
    expect(await step(message)).toMatchObject({ status: 'failed_retryable', attempt: 0, unassigned: { count: 1 } });
  });

  it('is acknowledged or withdrawn, never both: the withdrawal that comes second changes nothing', async () => {
    const message = await shop.start(workflow());
    const statement = await one.offer();
    shop.clock.advance(12_000);
    expect(await one.ack(statement)).toMatchObject({ confirmed: true });
    await shop.work(message);
    expect(await step(message)).toMatchObject({ status: 'running', assigned: { agentId: 'agt_one' } });
  });

  it('goes to another agent after 5, 15 and 45 s, and then the step fails with ASSIGNMENT_FAILED', async () => {
    two = await shop.enrol('two');
    const message = await shop.start(workflow());
    const offered: { agent: string; at: string }[] = [];
    for (let second = 0; second < 140; second += 1) {
      for (const agent of [one, two]) {
        const [statement] = await agent.offers();
        const known = offered.some(({ at }) => at === statement?.issued_at);
        if (statement && !known) offered.push({ agent: statement.agent_id, at: statement.issued_at });
      }
      await shop.pass(1);
    }
    const waits = offered.slice(1).map(({ at }, index) => Date.parse(at) - Date.parse(offered[index]?.at ?? ''));
    expect(waits).toEqual([12_000 + 5_000, 12_000 + 15_000, 12_000 + 45_000]);
    expect(new Set(offered.slice(0, 2).map(({ agent }) => agent))).toEqual(new Set(['agt_one', 'agt_two']));
    const { run, steps, receipts } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'ASSIGNMENT_FAILED' } });
    expect(steps[0]).toMatchObject({ status: 'failed_terminal', unassigned: { count: 4 } });
    expect(receipts[0]).toMatchObject({ outcome: 'failed', neverSent: true });
  });

  it('needs an agent: without one the step says why, and is assigned as soon as one is there', async () => {
    await shop.runs.agents.update(await one.row(), { ...(await one.row()), draining: { at: '', by: 'oscar' } });
    const message = await shop.start(workflow());
    expect(await step(message)).toMatchObject({
      status: 'failed_retryable',
      error: { code: 'ASSIGNMENT_FAILED', message: 'one is draining' },
    });
    two = await shop.enrol('two');
    await shop.pass(5);
    expect((await two.offer()).agent_id).toBe('agt_two');
  });

  it('that an agent refuses goes to another one; a violation of its profile fails the step at once', async () => {
    two = await shop.enrol('two');
    const message = await shop.start(workflow());
    const [first, second] = (await one.offers()).length > 0 ? [one, two] : [two, one];
    const refusal = { accepted: false, refusal: 'unable', reason: 'no bubblewrap' };
    expect(await first.ack(await first.offer(), refusal)).toMatchObject({ confirmed: false });
    await shop.pass(5);
    const statement = await second.offer();
    const violation = { accepted: false, refusal: 'violation', reason: 'local deny list' };
    await second.ack(statement, violation);
    const { run, steps } = await shop.finish(message);
    expect(run).toMatchObject({ error: { code: 'COMMAND_NOT_ALLOWED' } });
    expect(steps[0]?.unassigned).toEqual({ count: 2, agents: [first.agentId, second.agentId] });
    expect(shop.assignments().map(({ status }) => status)).toEqual(['refused', 'refused']);
  });

  it('that could not be started after its acknowledgement goes to another agent, under the same approval', async () => {
    shop.policy.decision = () => needsApproval();
    const { message, approval } = await shop.upToGate(workflow());
    await shop.say(approval, 'ben');
    await shop.work(message);
    const statement = await one.take();
    const never = { status: 'never_started' as const, exit_code: null, reason: 'the vault did not answer' };
    expect(await one.complete(statement, never)).toEqual({ result: 'accepted' });
    await shop.pass(5);
    expect(await one.take()).toMatchObject({ lease_version: 2, approval_id: approval.approvalId });
    expect(await step(message)).toMatchObject({ status: 'running', attempt: 1 });
  });

  it('is run by one process: another one with the same identity is not confirmed, the same one is, again', async () => {
    await shop.start(workflow());
    const statement = await one.offer();
    const other = await shop.process(one, 'boot-one-2').register();
    expect(await one.ack(statement)).toMatchObject({ confirmed: true });
    expect(await one.ack(statement)).toMatchObject({ confirmed: true });
    expect(await other.ack(statement)).toMatchObject({ confirmed: false });
    const { leases } = await other.sync([statement]);
    expect(leases).toEqual([{ assignment_id: statement.assignment_id, expires_at: null }]);
  });

  it('belongs to its agent: for another agent it does not exist', async () => {
    two = await shop.enrol('two', { draining: undefined });
    await shop.start(workflow());
    const holder = (await one.offers()).length > 0 ? one : two;
    const statement = await holder.offer();
    const other = holder === one ? two : one;
    await expect(other.ack(statement)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(other.complete(statement)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('takes a slot of the agent until it ends, and no longer', async () => {
    await one.register({ slots: 1 });
    const message = await shop.start(workflow());
    const statement = await one.take();
    const second = await shop.beginPublished('restart');
    await shop.work(second);
    expect(await step(second)).toMatchObject({ error: { message: 'one has no free slot' } });
    await one.complete(statement);
    expect((await one.row()).assignments).toEqual([]);
    await shop.pass(5);
    expect((await one.offer()).session_id).toBe(second.runId);
    expect((await step(message))?.status).toBe('succeeded');
  });
});

describe('a command that runs', () => {
  it('is renewed by each sync of its process, for as long as it takes; its run is not orphaned', async () => {
    const message = await shop.start(workflow(`${DEV}, timeoutSeconds: 3600`));
    const statement = await one.take();
    await shop.pass(50 * 60, [one, statement]);
    expect(shop.queue.delaysMs()).toHaveLength(1);
    expect(await step(message)).toMatchObject({ status: 'running', leaseVersion: 1 });
    expect(await one.complete(statement)).toEqual({ result: 'accepted' });
    const now = await shop.finish(message);
    expect(now.run.status).toBe('succeeded');
    expect(eventTypes(now)).not.toContain('run.resumed');
  });

  it('is lost within 30 s when its agent is silent; without a rollback the run needs a human', async () => {
    const message = await shop.start(workflow());
    await one.take();
    await shop.pass(29);
    expect(await step(message)).toMatchObject({ status: 'running' });
    await shop.pass(1);
    const { run, steps, receipts } = await shop.now(message);
    expect(run.status).toBe('needs_human');
    expect(steps[0]).toMatchObject({ status: 'failed_terminal', error: { code: 'AGENT_LOST' } });
    expect(receipts[0]).toMatchObject({ outcome: 'unknown' });
    expect(shop.assignments()).toMatchObject([{ status: 'lost' }]);
  });

  it('is not lost if its agent renews the lease after a slow worker has read it', async () => {
    const message = await shop.start(workflow());
    const statement = await one.take();
    shop.clock.advance(29_000);
    const load = shop.runs.load.bind(shop.runs);
    let isFirst = true;
    shop.runs.load = async (...args) => {
      const read = await load(...args);
      if (!isFirst) return read;
      isFirst = false;
      await one.sync([statement]);
      shop.clock.advance(2_000);
      return read;
    };
    await shop.work(message);
    shop.runs.load = load;
    expect(await step(message)).toMatchObject({ status: 'running', leaseVersion: 1 });
    await shop.pass(10, [one, statement]);
    expect(await one.complete(statement)).toEqual({ result: 'accepted' });
    expect((await shop.finish(message)).run.status).toBe('succeeded');
  });

  it('that is lost has an outbox entry that stores its output, after the agent had 10 minutes to send the rest', async () => {
    const message = await shop.start(workflow());
    await one.take();
    await shop.pass(30);
    const entries = () => [...shop.runs.inside.outbox()].filter(({ kind }) => kind === 'store_output');
    const { updatedAt } = (await shop.now(message)).run;
    expect(entries()).toMatchObject([
      { runId: message.runId, stepIndex: 0, leaseVersion: 1, dueAt: later(updatedAt, 600_000) },
    ]);
    expect(shop.outbox.receiveSeals().map(({ kind }) => kind)).not.toContain('store_output');
    shop.clock.advance(600_000);
    await shop.sweep();
    expect(shop.outbox.receiveSeals()).toContainEqual(
      expect.objectContaining({ kind: 'store_output', stepIndex: 0, leaseVersion: 1 }),
    );
  });

  it('is lost as soon as its agent reports that it was restarted while the command ran', async () => {
    const message = await shop.start(workflow());
    const statement = await one.take();
    expect(await one.complete(statement, { status: 'unknown', exit_code: null })).toEqual({ result: 'accepted' });
    const { run, steps, receipts } = await shop.finish(message);
    expect(run.status).toBe('needs_human');
    expect(steps[0]).toMatchObject({ status: 'failed_terminal', error: { code: 'AGENT_LOST' } });
    expect(receipts[0]).toMatchObject({ outcome: 'unknown' });
    expect(shop.assignments()).toMatchObject([{ status: 'lost', reason: expect.stringContaining('restarted') }]);
    expect(await one.complete(statement, { status: 'unknown', exit_code: null })).toEqual({ result: 'duplicate' });
  });

  it('that is lost is rolled back by another agent if it has a rollback, and is not assigned again', async () => {
    const message = await shop.start(workflow(UNDOABLE));
    await one.take();
    two = await shop.enrol('two');
    await shop.pass(30);
    const undo = await two.take();
    expect(undo).toMatchObject({
      ...{ rollback: true, step_id: 'undo_restart', command: { executable: '/opt/undo', args: ['web'] } },
    });
    await two.complete(undo);
    const { run, steps, receipts } = await shop.finish(message);
    expect(run).toMatchObject({
      status: 'failed_terminal',
      error: { code: 'AGENT_LOST' },
      compensation: [{ step: 'restart', outcome: 'reversed' }],
    });
    expect(steps.map(({ status }) => status)).toEqual(['failed_terminal', 'succeeded']);
    expect(receipts.map(({ outcome }) => outcome)).toEqual(['reversed', 'succeeded']);
    expect(shop.assignments()).toHaveLength(2);
  });

  it('that is lost is assigned again only after a person has confirmed it, with a new approval from blast radius medium on', async () => {
    const message = await shop.start(workflow(UNDOABLE, 'onFailure: pause\nblastRadius: medium'));
    const lost = await one.take();
    await shop.pass(60);
    expect((await shop.now(message)).run.status).toBe('paused');
    expect(shop.assignments()).toHaveLength(1);
    await shop.command(message, { kind: 'retry' });
    two = await shop.enrol('two');
    await shop.pass(60, two);
    const approval = await shop.openApproval(message);
    expect(approval.asks).toBe('retry');
    expect(shop.assignments()).toHaveLength(1);
    await shop.say(approval, 'ana');
    await shop.pass(1);
    const again = await two.take();
    expect(again).toMatchObject({ lease_version: 2, approval_id: approval.approvalId });
    expect(again.assignment_id).not.toBe(lost.assignment_id);
    await two.complete(again);
    expect((await shop.finish(message)).run.status).toBe('succeeded');
  });

  it('that fails fails its step, with its output in the receipt', async () => {
    const message = await shop.start(workflow());
    await one.complete(await one.take(), { status: 'failed', exit_code: 3 });
    const { run, receipts } = await shop.finish(message);
    expect(run).toMatchObject({
      error: { code: 'COMMAND_FAILED', message: 'the command ended with exit code 3; see its output' },
    });
    expect(receipts[0]).toMatchObject({
      outcome: 'failed',
      command: { exitCode: 3, output: { sha256: SHA, bytes: 42 } },
    });
    expect(receipts[0]).not.toHaveProperty('neverSent');
  });

  it('succeeds with exit code 0 only, also if the agent reports a success', async () => {
    const message = await shop.start(workflow());
    await one.complete(await one.take(), { status: 'succeeded', exit_code: 1 });
    expect((await shop.finish(message)).run).toMatchObject({ error: { code: 'COMMAND_FAILED' } });
  });

  it('acceptance: rollback executes automatically on step failure for runbooks with rollback definitions', async () => {
    const message = await shop.start(workflow(UNDOABLE));
    await one.complete(await one.take(), { status: 'timed_out', exit_code: null, signal: 'SIGKILL' });
    await shop.deliver();
    const undo = await one.take();
    expect(undo).toMatchObject({ rollback: true, command: { executable: '/opt/undo', args: ['web'] } });
    await one.complete(undo);
    const now = await shop.finish(message);
    expect(now.run).toMatchObject({
      status: 'failed_terminal',
      error: { code: 'COMMAND_FAILED' },
      compensation: [{ step: 'restart', outcome: 'reversed' }],
    });
    expect(statuses(now)).toContain('rolling_back');
  });

  it('that succeeded is undone with its rollback command when a later step fails, newest first', async () => {
    const message = await shop.start(`
name: two
onFailure: rollback
steps:
  - { id: first, tool: agent.command, with: { ${DEV}, rollback: { command: /opt/undo, args: [first] } } }
  - { id: second, tool: agent.command, with: { ${DEV}, rollback: { command: /opt/undo, args: [second] } } }
  - { id: third, tool: agent.command, with: { ${DEV} } }
`);
    for (const status of ['succeeded', 'succeeded', 'failed'] as const) {
      await one.complete(await one.take(), { status, exit_code: status === 'failed' ? 1 : 0 });
      await shop.deliver();
    }
    const undone: string[][] = [];
    for (let undo = await one.offers(); undo[0]; undo = await one.offers()) {
      undone.push(undo[0].command.args);
      await one.ack(undo[0]);
      await one.complete(undo[0]);
      await shop.deliver();
    }
    expect(undone).toEqual([['second'], ['first']]);
    const { run } = await shop.finish(message);
    expect(run.compensation?.map(({ outcome }) => outcome)).toEqual(['reversed', 'reversed']);
  });

  it('is tried once; a check is tried a second time, and needs a new approval for it', async () => {
    shop.policy.decision = () => needsApproval();
    const { message, approval } = await shop.upToGate(workflow(`${DEV}, check: true`));
    await shop.say(approval, 'ben');
    await shop.work(message);
    await one.complete(await one.take(), { status: 'failed', exit_code: 1 });
    await shop.pass(10);
    const second = await shop.openApproval(message);
    expect(second.approvalId).not.toBe(approval.approvalId);
    await shop.say(second, 'ben');
    await shop.work(message);
    await one.complete(await one.take(), { status: 'failed', exit_code: 1 });
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({ error: { code: 'COMMAND_FAILED' } });
    expect(shop.assignments()).toHaveLength(2);
  });
});

describe('a result', () => {
  it('that comes twice is dropped', async () => {
    const message = await shop.start(workflow());
    const statement = await one.take();
    expect(await one.complete(statement)).toEqual({ result: 'accepted' });
    const before = await shop.now(message);
    expect(await one.complete(statement)).toEqual({ result: 'duplicate' });
    expect((await shop.now(message)).run.seq).toBe(before.run.seq);
  });

  it('of a lease that has ended is recorded once, and changes nothing', async () => {
    const message = await shop.start(workflow(UNDOABLE));
    const statement = await one.take();
    await shop.pass(30);
    const before = await shop.now(message);
    expect(await one.complete(statement)).toEqual({ result: 'lease_lost' });
    expect(await one.complete(statement)).toEqual({ result: 'lease_lost' });
    const after = await shop.now(message);
    expect(after.steps).toEqual(before.steps);
    const late = after.commits.flatMap(({ events }) => events).filter(({ type }) => type === 'step.late_result');
    expect(late).toMatchObject([{ agent: 'agt_one', leaseVersion: 1, status: 'succeeded', outputSha256: SHA }]);
  });

  it('without an acknowledgement settles nothing', async () => {
    const message = await shop.start(workflow());
    const statement = await one.offer();
    expect(await one.complete(statement)).toEqual({ result: 'lease_lost' });
    expect(await step(message)).toMatchObject({ status: 'running' });
  });

  it('with another idempotency key is refused', async () => {
    await shop.start(workflow());
    const statement = await one.take();
    const other = { ...statement, idempotency_key: 'another' };
    await expect(one.complete(other)).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    expect(await one.complete(statement)).toEqual({ result: 'accepted' });
  });

  it('with another profile, or with a credential that was not assigned, is refused', async () => {
    await shop.start(workflow(`${DEV}, credentials: [db-primary]`));
    const statement = await one.take();
    await expect(one.complete(statement, { sandbox_profile: 'prod-critical' })).rejects.toMatchObject({
      code: 'INPUT_INVALID',
    });
    const used = {
      id: 'db-root',
      source: 'vault' as const,
      audit_id: null,
      ttl_seconds: 1,
      revoked: true,
      fetch_ms: 1,
    };
    await expect(one.complete(statement, { credentials_used: [used] })).rejects.toMatchObject({
      code: 'INPUT_INVALID',
      message: expect.stringContaining('db-root, which was not assigned'),
    });
    expect(await one.complete(statement, { credentials_used: [{ ...used, id: 'db-primary' }] })).toEqual({
      result: 'accepted',
    });
  });
});

describe('a person who cancels', () => {
  it('stops the command with the next sync, and the run is canceled with what is known', async () => {
    const message = await shop.start(workflow(UNDOABLE));
    const statement = await one.take();
    await shop.command(message, { kind: 'cancel', reason: 'wrong host' });
    const { cancels, leases } = await one.sync([statement]);
    expect(cancels).toEqual([{ assignment_id: statement.assignment_id, reason: 'wrong host' }]);
    expect(leases[0]?.expires_at).not.toBeNull();
    await one.complete(statement, { status: 'canceled', exit_code: null, signal: 'SIGTERM' });
    const { run, steps } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'canceled', compensation: [{ step: 'restart', outcome: 'kept' }] });
    expect(steps[0]).toMatchObject({ error: { code: 'COMMAND_CANCELED' } });
  });

  it('before the acknowledgement prevents it: the run ends and nothing has run', async () => {
    const message = await shop.start(workflow());
    const statement = await one.offer();
    await shop.command(message, { kind: 'cancel' });
    expect(await one.ack(statement)).toMatchObject({ confirmed: false, reason: 'the run is being stopped' });
    await shop.pass(12);
    const { run, receipts } = await shop.now(message);
    expect(run).toMatchObject({ status: 'canceled' });
    expect(receipts[0]).toMatchObject({ outcome: 'failed', neverSent: true });
  });

  it('by a rollback stops the command and runs its rollback', async () => {
    const message = await shop.start(workflow(UNDOABLE));
    const statement = await one.take();
    await shop.command(message, { kind: 'rollback' });
    expect((await one.sync([statement])).cancels).toHaveLength(1);
    await one.complete(statement, { status: 'canceled', exit_code: null });
    await shop.deliver();
    await one.complete(await one.take());
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'canceled', compensation: [{ outcome: 'reversed' }] });
  });
});

describe('acceptance: feature flag toggling reverts without data corruption', () => {
  const turn = (on: boolean) =>
    shop.definitions.saveSettings('acme', {
      ...{ caps: {}, workspaces: {}, counterShards: 1 },
      features: { 'worker_orchestration.enabled': on },
    });

  it('off: no new assignments, commands in flight are canceled with reason backout, agents drain; on again works', async () => {
    const message = await shop.start(workflow());
    const statement = await one.take();
    await turn(false);
    const waiting = await shop.beginPublished('restart');
    await shop.work(waiting);
    expect(await step(waiting)).toMatchObject({ status: 'failed_retryable', error: { code: 'AGENTS_DISABLED' } });
    expect(await one.sync([statement])).toMatchObject({
      drain: true,
      assignments: [],
      cancels: [{ reason: 'backout' }],
    });
    await one.complete(statement, { status: 'canceled', exit_code: null });
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'canceled', cancellation: { reason: 'backout' } });
    await turn(true);
    const [again] = await shop.openWithAgents('again');
    await shop.pass(60, again as TestAgent);
    one = again as TestAgent;
    await one.complete(await one.take());
    expect((await shop.finish(waiting)).run.status).toBe('succeeded');
  });

  it('off after an offer: the agent does not get it, and may not acknowledge it', async () => {
    const message = await shop.start(workflow());
    const statement = await one.offer();
    await turn(false);
    expect(await one.offers()).toEqual([]);
    expect(await one.ack(statement)).toMatchObject({ confirmed: false });
    await shop.pass(60);
    expect(await step(message)).toMatchObject({ status: 'failed_retryable', error: { code: 'AGENTS_DISABLED' } });
  });
});

describe('a profile', () => {
  it('that does not allow a command fails its step before anybody is asked', async () => {
    shop.policy.decision = () => needsApproval();
    const input = 'command: /usr/bin/rm, args: ["-rf", /], environment: staging';
    const message = await shop.start(workflow(input));
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({ error: { code: 'COMMAND_NOT_ALLOWED' } });
    expect(JSON.stringify(run)).toContain('the allow list does not have /usr/bin/rm');
    expect(shop.policy.asked).toEqual([]);
  });

  it('that is changed after the approval is checked again before the assignment', async () => {
    shop.policy.decision = () => needsApproval();
    const { message, approval } = await shop.upToGate(workflow(DEV.replace('dev', 'staging')));
    await shop.definitions.saveProfile('acme', { name: 'staging-standard', allow: [], deny: [] });
    await shop.say(approval, 'ben');
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({ error: { code: 'COMMAND_NOT_ALLOWED' } });
    expect(shop.assignments()).toEqual([]);
  });

  it('of prod needs a rollback, which its lists must allow, too', async () => {
    const prod = DEV.replace('dev', 'prod');
    await expect(shop.start(workflow(prod))).rejects.toThrow(/rollback/);
    const message = await shop.start(workflow(`${prod}, rollback: { command: /usr/bin/rm }`));
    const { run } = await shop.finish(message);
    expect(JSON.stringify(run)).toContain('its rollback may not run');
  });
});
