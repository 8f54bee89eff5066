import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type ToolPorts, toolAccess } from '../../../lambdas/api/mcp/tool-access.ts';
import { isoNow } from '../../../lambdas/entry/ports.ts';
import { checkReplay } from '../../../lambdas/evidence/verify/check-replay.ts';
import { checkRules } from '../../../lambdas/evidence/verify/rules/check-rules.ts';
import type { StoredConfiguration } from '../../../lambdas/pipeline/configuration.ts';
import type { CountersignError } from '../../../lambdas/run/errors.ts';
import { controlRun } from '../../../lambdas/run-changes/control/control-run.ts';
import { type Completion, completeSession } from '../../../lambdas/run-changes/session/complete-session.ts';
import { noteHeartbeat } from '../../../lambdas/run-changes/session/note-heartbeat.ts';
import { proposeAction } from '../../../lambdas/run-changes/session/propose-action.ts';
import { openSessionToken } from '../../../lambdas/run-changes/session/session-token.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { isGenuine } from '../../evidence/verify/second-verifier.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { GovernedWorkshop, needsApproval } from '../governance/governed-workshop.ts';
import { die, eventTypes, ISSUE, SESSION_SECRET, statuses, survived } from '../workshop.ts';

const MINUTE_MS = 60_000;
const TRIAGE = `
name: triage
steps:
  - id: triage
    tool: agent.session
    with:
      configuration: triage-bot
      prompt: Label the issue.
      timeoutSeconds: 5400
      actions:
        - { tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7 } }
  - { id: done, tool: transform, with: { said: "{% steps.triage.output.summary %}" } }
`;
const START = 'POST sessions';

let shop: GovernedWorkshop;
let message: StepMessage;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  shop.policy.decision = () => ALLOWED;
  vi.stubGlobal('fetch', shop.outside.fetch);
  await shop.definitions.saveConfiguration('acme', {
    name: 'triage-bot',
    session: { provider: 'a2a', url: 'http://sessions/agent', connection: 'sessions' },
    instructions: 'Be careful.',
    revision: 1,
  });
  message = await shop.begin(TRIAGE);
});
afterEach(() => vi.unstubAllGlobals());

const tasks = () => shop.outside.sessions.tasks;
const contract = (task = 0) => tasks()[task]?.messages[0]?.data as Record<string, string>;
const target = () => ({ ...message, stepIndex: 0 });
const completion = (differing: Partial<Completion> = {}): Completion => ({
  completionId: contract().completion_id ?? '',
  outcome: 'succeeded',
  summary: 'labelled',
  ...differing,
});
const complete = (differing: Partial<Completion> = {}) => completeSession(shop.worker, target(), completion(differing));
const refusal = (acting: Promise<unknown>) =>
  acting.then(
    () => 'accepted',
    (error: CountersignError) => error.code,
  );
const started = async () => {
  await shop.work(message);
  expect((await shop.now(message)).run.status).toBe('waiting_external');
};

describe('6.4 execution: a session', () => {
  it('is started once and prompted once; the prompt carries the completion contract', async () => {
    await started();
    const [task] = tasks();
    expect(task?.contextId).toMatch(new RegExp(`^run:${message.runId}:session:triage`));
    expect(task?.messages).toHaveLength(1);
    expect(task?.messages[0]?.messageId).toMatch(new RegExp(`^run:${message.runId}:prompt:v1`));
    expect(task?.messages[0]?.text).toContain('Be careful.\n\nLabel the issue.');
    expect(contract()).toMatchObject({ run_id: message.runId, completion_id: expect.stringMatching(/^cmp_/) });
    const token = openSessionToken(contract().token ?? '', SESSION_SECRET, isoNow(shop.clock));
    expect(token).toMatchObject({ ...message, stepIndex: 0, expiresAt: contract().expires_at });
  });

  it('whose start was answered but not recorded is found again: an existing session suppresses another', async () => {
    shop.outside.next(START, 'lost_answer');
    await shop.work(message);
    const first = structuredClone(contract());
    for (let look = 0; look < 20 && (await shop.now(message)).run.status !== 'waiting_external'; look += 1) {
      shop.clock.advance(MINUTE_MS);
      await shop.work(message);
    }
    const [step] = (await shop.now(message)).steps;
    expect(step).toMatchObject({ status: 'waiting_external', session: { sessionId: 'task-1' } });
    expect(tasks()).toHaveLength(1);
    // What the first prompt said still holds.
    expect(step?.session?.completionId).toBe(first.completion_id);
    await complete();
    expect((await shop.finish(message)).run.status).toBe('succeeded');
  });

  it('survives a worker that dies at any call: one session, one prompt, and the run ends', async () => {
    for (let point = 1; point <= 12; point += 1) {
      shop = await new GovernedWorkshop().open();
      shop.policy.decision = () => ALLOWED;
      vi.stubGlobal('fetch', shop.outside.fetch);
      const session = { provider: 'a2a' as const, url: 'http://sessions/agent', connection: 'sessions' };
      await shop.definitions.saveConfiguration('acme', { name: 'triage-bot', session, revision: 1 });
      message = await shop.begin(TRIAGE);
      let calls = 0;
      shop.disturb(async (_name, run) => {
        calls += 1;
        if (calls !== point) return run();
        await run();
        return die();
      });
      await survived(() => shop.work(message));
      shop.disturb((_name, run) => run());
      for (let look = 0; look < 20 && (await shop.now(message)).run.status !== 'waiting_external'; look += 1) {
        shop.clock.advance(MINUTE_MS);
        await shop.work(message);
      }
      expect(tasks(), `point ${point}`).toHaveLength(1);
      await complete();
      expect((await shop.finish(message)).run.status, `point ${point}`).toBe('succeeded');
    }
  });

  it('that no configuration names is not started, and the run says so', async () => {
    message = await shop.begin(TRIAGE.replace('name: triage', 'name: other').replace('triage-bot', 'unknown'));
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'CONFIGURATION_UNRESOLVED' } });
    expect(tasks().filter(({ contextId }) => contextId.includes(message.runId))).toEqual([]);
  });

  it('needs an approval to start where policy requires one', async () => {
    shop.policy.decision = () => needsApproval();
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('waiting_approval');
    expect(tasks()).toEqual([]);
    await shop.say(await shop.openApproval(message), 'olivia');
    await started();
    expect(tasks()).toHaveLength(1);
  });

  it('does what the author of its configuration has decided, so they approve neither its start nor its actions', async () => {
    const stored = await shop.definitions.configuration('acme', 'triage-bot');
    await shop.definitions.saveConfiguration('acme', {
      ...stored,
      revision: 2,
      author: 'olivia',
    } as StoredConfiguration);
    message = await shop.begin(TRIAGE);
    shop.policy.decision = () => needsApproval();
    await shop.work(message);
    expect((await shop.openApproval(message)).makers).toContain('olivia');
    shop.policy.decision = () => ALLOWED;
    message = await shop.begin(TRIAGE);
    await started();
    shop.policy.decision = () => needsApproval();
    const label = { key: 'label-1', tool: 'github.labels.add', input: { labels: ['triage'] } };
    const { action } = await proposeAction(shop.worker, target(), label);
    const ofAction = { tenant: 'acme', runId: action.run.runId };
    await shop.work(ofAction);
    expect((await shop.openApproval(ofAction)).makers).toContain('olivia');
  });

  it('gets the credential of its connection only at the origin of the connection', async () => {
    await shop.definitions.saveConfiguration('acme', {
      name: 'triage-bot',
      session: { provider: 'a2a', url: 'http://github/agent', connection: 'sessions' },
      revision: 2,
    });
    message = await shop.begin(TRIAGE);
    expect((await shop.finish(message)).run.status).toBe('failed_terminal');
    expect(shop.outside.calls).toEqual([]);
  });
});

describe('6.5 completion', () => {
  beforeEach(started);

  it('ends the step in one commit with the run, its event and its outbox entries; the session is ended afterwards', async () => {
    await complete({ output: { label: 'bug' } });
    const done = await shop.finish(message);
    expect(done.run.status).toBe('succeeded');
    expect(done.steps.map(({ status }) => status)).toEqual(['succeeded', 'succeeded']);
    expect(done.steps[1]).toMatchObject({ output: { said: 'labelled' } });
    const commit = done.commits.find(({ events }) => events.some(({ type }) => type === 'session.completed'));
    expect(commit?.events.map(({ type }) => type)).toEqual(expect.arrayContaining(['step.succeeded']));
    // It may end by itself first; then it is asked, without a read of the run.
    expect(tasks()[0]?.state).toBe('TASK_STATE_WORKING');
    shop.clock.advance(10_000);
    const reads: string[] = [];
    shop.disturb(async (name, run) => {
      if (!name.startsWith('POST ') && !name.startsWith('GET ')) reads.push(name);
      return run();
    });
    await shop.finish(message);
    expect(tasks()[0]?.state).toBe('TASK_STATE_CANCELED');
    expect(reads).toEqual([]);
    expect(
      shop.outside.calls.filter(({ body }) => (body as { method?: string })?.method === 'SendMessage'),
    ).toHaveLength(1);
  });

  it('that is repeated with the same id and payload changes nothing, also after the end of the run', async () => {
    expect(await complete()).toEqual({ outcome: 'succeeded', isRepeated: false });
    const seq = (await shop.now(message)).run.seq;
    expect(await complete()).toEqual({ outcome: 'succeeded', isRepeated: true });
    expect((await shop.now(message)).run.seq).toBe(seq);
    await shop.finish(message);
    expect(await complete()).toEqual({ outcome: 'succeeded', isRepeated: true });
  });

  it('with the same id and another payload is refused', async () => {
    await complete();
    expect(await refusal(complete({ summary: 'something else' }))).toBe('COMPLETION_MISMATCH');
    expect(await refusal(complete({ outcome: 'failed' }))).toBe('COMPLETION_MISMATCH');
  });

  it('of another session is refused', async () => {
    expect(await refusal(complete({ completionId: 'cmp_other' }))).toBe('COMPLETION_MISMATCH');
    expect((await shop.now(message)).run.status).toBe('waiting_external');
  });

  it('is accepted once of several at the same time', async () => {
    const both = await Promise.all([refusal(complete()), refusal(complete({ summary: 'another' }))]);
    expect(both.toSorted()).toEqual(['COMPLETION_MISMATCH', 'accepted']);
    expect(eventTypes(await shop.now(message)).filter((type) => type === 'session.completed')).toHaveLength(1);
  });

  it.each([
    ['failed', 'failed_terminal', 'SESSION_FAILED'],
    ['needs_human', 'needs_human', 'SESSION_NEEDS_HUMAN'],
  ] as const)('as %s ends the run as %s', async (outcome, status, code) => {
    await complete({ outcome });
    expect((await shop.finish(message)).run).toMatchObject({ status, error: { code } });
  });

  it('leaves a bundle that verifies, rules included, and that names the runs of the actions', async () => {
    const proposal = { key: 'k', tool: 'github.labels.add', input: { labels: ['triage'] } };
    const { action } = await proposeAction(shop.worker, target(), proposal);
    await shop.finish({ tenant: 'acme', runId: action.run.runId });
    expect(shop.outside.issueLabels.get(ISSUE)).toContain('triage');
    await complete();
    await shop.finish(message);
    const publicKey = String(shop.signer.publicKey.export({ type: 'spki', format: 'pem' }));
    for (const { runId } of [message, action.run]) {
      const stored = (name: string) => String(shop.evidence.file(runId, name));
      const document = JSON.parse(stored('bundle.json'));
      expect(checkReplay(document)).toBeUndefined();
      expect(checkRules(document).broken).toEqual([]);
      expect(isGenuine(stored('bundle.json'), stored('bundle.dsse.json'), publicKey)).toBe(true);
    }
    const proposed = (await shop.now(message)).commits.flatMap(({ events }) => events);
    expect(proposed).toContainEqual(
      expect.objectContaining({ type: 'session.action_proposed', actionRunId: action.run.runId }),
    );
  });
});

describe('a person cancels one session', () => {
  const cancel = (step?: string) =>
    controlRun(
      shop.worker,
      message,
      { kind: 'cancel_session', reason: 'works too long', ...(step !== undefined && { step }) },
      'oscar',
    );
  const restart = async (workflow: string) => {
    message = await shop.begin(workflow.replace('name: triage', 'name: another'));
    await started();
  };

  it('the step fails, the event names the person, the agent is asked at once, and a later completion is refused', async () => {
    await started();
    await cancel('triage');
    expect(await refusal(complete())).toBe('RUN_TERMINAL_STATE');
    const { run, steps, commits } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'SESSION_CANCELED' } });
    expect(steps).toMatchObject([{ status: 'failed_terminal', by: { initiator: 'user', actor: 'oscar' } }]);
    expect(commits.flatMap(({ events }) => events)).toContainEqual({
      type: 'session.canceled',
      ...{ step: 'triage', index: 0, actor: 'oscar', reason: 'works too long' },
    });
    expect(tasks()).toMatchObject([{ state: 'TASK_STATE_CANCELED', cancelRequests: 1 }]);
  });

  it('a run that pauses on failures continues: a retry starts another session, which completes', async () => {
    await restart(TRIAGE.replace('steps:', 'onFailure: pause\nsteps:'));
    await cancel();
    expect((await shop.now(message)).run.status).toBe('paused');
    expect(await refusal(complete())).toBe('SESSION_CLOSED');
    shop.clock.advance(1);
    await controlRun(shop.worker, message, { kind: 'retry', step: 'triage' }, 'oscar');
    await shop.work(message);
    expect(tasks().map(({ state }) => state)).toEqual(['TASK_STATE_WORKING', 'TASK_STATE_WORKING']);
    const second = tasks()[1]?.messages[0]?.data as Record<string, string>;
    await complete({ completionId: second.completion_id ?? '' });
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    // The message that ends the first session does not end the second one.
    expect(tasks()[0]?.state).toBe('TASK_STATE_CANCELED');
  });

  it('the token of a canceled session is not for the session that a retry has started', async () => {
    await restart(TRIAGE.replace('steps:', 'onFailure: pause\nsteps:'));
    const tokenOf = (task: number) => {
      const { token = '' } = contract(task);
      const opened = openSessionToken(token, SESSION_SECRET, isoNow(shop.clock));
      if (!opened) throw new Error('the token is not valid');
      return opened;
    };
    await cancel();
    shop.clock.advance(1);
    await controlRun(shop.worker, message, { kind: 'retry', step: 'triage' }, 'oscar');
    await shop.work(message);
    const label = { key: 'label-1', tool: 'github.labels.add', input: { labels: ['triage'] } };
    const completionId = contract(1).completion_id ?? '';
    const act = (session: ReturnType<typeof tokenOf>) => [
      () => proposeAction(shop.worker, session, label),
      () => noteHeartbeat(shop.worker, session),
      () => noteHeartbeat(shop.worker, session, { hasEnded: true }),
      () => toolAccess(shop.worker as unknown as ToolPorts, { session }).tools(),
      () => completeSession(shop.worker, session, completion({ completionId })),
    ];
    const { seq } = (await shop.now(message)).run;
    for (const each of act(tokenOf(0))) expect(await refusal(each())).toBe('SESSION_CLOSED');
    expect((await shop.now(message)).run.seq).toBe(seq);
    for (const each of act(tokenOf(1))) expect(await refusal(each())).toBe('accepted');
  });

  it('is refused without an open session, for another step, and if several are open and none is named', async () => {
    expect(await refusal(cancel())).toBe('RUN_INVALID_TRANSITION');
    const other = TRIAGE.split('\n').slice(3, 11).join('\n').replace('id: triage', 'id: second\n    needs: []');
    await restart(TRIAGE.replace('  - { id: done', `${other}\n  - { id: done`));
    expect(tasks()).toHaveLength(2);
    expect(await refusal(cancel())).toBe('INPUT_INVALID');
    expect(await refusal(cancel('done'))).toBe('RUN_INVALID_TRANSITION');
    const { seq } = (await shop.now(message)).run;
    await cancel('second');
    expect((await shop.now(message)).run.seq).toBe(seq + 1);
  });

  it('and a cancellation after the completion changes nothing', async () => {
    await started();
    await complete();
    expect(await refusal(cancel('triage'))).toBe('RUN_INVALID_TRANSITION');
    expect((await shop.finish(message)).run.status).toBe('succeeded');
  });
});

describe('6.6 finalizer', () => {
  beforeEach(started);
  const ended = async () => (await shop.finish(message)).run;

  it('a session past its deadline times the run out, and its completion is late', async () => {
    for (let minutes = 0; minutes < 90; minutes += 10) {
      await noteHeartbeat(shop.worker, target());
      shop.clock.advance(10 * MINUTE_MS);
    }
    const late = await refusal(complete());
    expect(await ended()).toMatchObject({ status: 'timed_out', error: { code: 'SESSION_TIMED_OUT' } });
    expect([late, await refusal(complete())]).toEqual(['SESSION_CLOSED', 'RUN_TERMINAL_STATE']);
  });

  it.each([
    ['its provider does not know', 'missing', () => Object.assign(shop.outside.sessions, { knowsTasks: false })],
    ['ended without a completion', 'ended', () => setState('TASK_STATE_COMPLETED')],
    ['failed at its provider', 'dead', () => setState('TASK_STATE_FAILED')],
    ['was silent for 30 minutes', 'silent', () => undefined],
  ])('a session that %s fails the run', async (_name, because, happens) => {
    happens();
    shop.clock.advance(31 * MINUTE_MS);
    expect(await ended()).toMatchObject({ status: 'failed_terminal', error: { code: 'SESSION_LOST' } });
    const events = (await shop.now(message)).commits.flatMap(({ events: each }) => each);
    expect(events).toContainEqual(expect.objectContaining({ type: 'session.lost', because }));
  });

  it('leaves the run as it is while the provider cannot be asked, and asks again', async () => {
    shop.clock.advance(31 * MINUTE_MS);
    shop.outside.next('GET sessions', { status: 503 }, 'unreachable');
    await shop.work(message);
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('waiting_external');
    await complete();
    expect((await ended()).status).toBe('succeeded');
  });

  it('leaves a run whose session has completed as it is', async () => {
    await complete();
    setState('TASK_STATE_FAILED');
    shop.clock.advance(31 * MINUTE_MS);
    expect((await ended()).status).toBe('succeeded');
  });

  it('a session with heartbeats lives; each stored one is minutes apart', async () => {
    const { seq } = (await shop.now(message)).run;
    for (let minute = 0; minute < 60; minute += 1) {
      await noteHeartbeat(shop.worker, target());
      shop.clock.advance(MINUTE_MS);
      await shop.work(message);
    }
    const now = await shop.now(message);
    expect(now.run.status).toBe('waiting_external');
    expect(now.run.seq - seq).toBeLessThanOrEqual(12);
  });

  it('a provider that reports the end of a session makes the worker look soon', async () => {
    setState('TASK_STATE_FAILED');
    await noteHeartbeat(shop.worker, target(), { hasEnded: true });
    shop.clock.advance(2 * MINUTE_MS);
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('failed_terminal');
  });

  it('completion and finalizer at the same time: exactly one wins', async () => {
    shop.clock.advance(31 * MINUTE_MS);
    await Promise.all([shop.work(message), refusal(complete())]);
    const now = await shop.finish(message);
    const endings = eventTypes(now).filter((type) => type === 'session.completed' || type === 'session.lost');
    expect(endings).toHaveLength(1);
    expect(statuses(now).filter((status) => ['succeeded', 'failed_terminal'].includes(status))).toHaveLength(1);
  });

  it('a canceled run ends its session', async () => {
    await controlRun(shop.worker, message, { kind: 'cancel' }, 'oscar');
    expect((await ended()).status).toBe('canceled');
    expect(tasks()[0]?.state).toBe('TASK_STATE_CANCELED');
  });
});

function setState(state: string): void {
  const [task] = tasks();
  if (task) task.state = state;
}
