import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { assignRun, releaseRun } from '../../lambdas/run-changes/control/assign-run.ts';
import { controlRun } from '../../lambdas/run-changes/control/control-run.ts';
import { type Resolving, resolveRun } from '../../lambdas/run-changes/control/resolve-run.ts';
import { rollBackEndedRun } from '../../lambdas/run-changes/control/rollback-ended-run.ts';
import type { StepMessage } from '../../lambdas/run-changes/step-queue.ts';
import { ALLOWED } from '../fakes/fake-policy.ts';
import { GovernedWorkshop, needsApproval } from './governance/governed-workshop.ts';
import { eventTypes, ISSUE, type RunNow, SYS_ID } from './workshop.ts';

/** What people do with a run that has ended: assign it, resolve it, roll it back. */

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
  shop.policy.decision = () => ALLOWED;
});
afterEach(() => vi.unstubAllGlobals());

const incident = () => shop.outside.incidents.get(SYS_ID);
const labels = () => shop.outside.issueLabels.get(ISSUE);

const HOOK = (name = 'hook') => `
name: ${name}
steps:
  - { id: call, tool: http.request, with: { method: POST, url: "https://hooks.example.com/start", body: { of: "{% trigger.number %}" } } }
`;
const WRITES = `
name: writes
steps:
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: network } } }
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [triage] } }
`;
const NOTE = `
name: note
steps:
  - { id: note, retry: { attempts: 1 }, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: hello } }
`;

/** Uses up the faults that are left. */
async function worksAgain(url: string): Promise<void> {
  while ((await fetch(url)).status === 503);
}

/** A run that ended because it is unknown whether its note was written. */
async function unknownNote(fault: 'lost_answer' | 'lost_request'): Promise<StepMessage> {
  const message = await shop.begin(NOTE);
  shop.outside.next('PATCH servicenow', fault);
  shop.outside.next('GET servicenow', ...Array(9).fill({ status: 503 }));
  expect((await shop.finish(message)).run.status).toBe('needs_human');
  await worksAgain(`http://servicenow/api/now/table/incident/${SYS_ID}`);
  return message;
}

const resolve = (message: StepMessage, resolving: Partial<Resolving> = {}, actor = 'olivia') =>
  resolveRun(
    shop.worker,
    message,
    { outcome: 'failed', reason: 'I looked', writes: { note: 'did_not' }, ...resolving },
    actor,
  );
const rollBack = (message: StepMessage, actor = 'oscar') =>
  rollBackEndedRun(shop.worker, message, {
    actor,
    reason: 'not wanted',
    rollbackRunId: `run_f${message.runId.slice(5)}`,
  });
const rollbackOf = ({ tenant, runId }: StepMessage): StepMessage => ({ tenant, runId: `run_f${runId.slice(5)}` });
const notesWritten = () => shop.outside.callsOf('PATCH servicenow').length;
const immutable = ({ run }: RunNow) => {
  const {
    seq: _seq,
    headHash: _head,
    updatedAt: _at,
    resolution: _resolution,
    assignee: _a,
    rolledBackBy: _r,
    ...rest
  } = run;
  return rest;
};

describe('6.11 resolving', () => {
  it('records what a person found, and does not change the status', async () => {
    const message = await unknownNote('lost_answer');
    const before = await shop.now(message);
    await resolve(message, { outcome: 'succeeded', writes: { note: 'happened' } });
    const after = await shop.now(message);
    expect(after.run).toMatchObject({
      status: 'needs_human',
      resolution: { outcome: 'succeeded', actor: 'olivia', reason: 'I looked', writes: { note: 'happened' } },
    });
    expect(immutable(after)).toEqual(immutable(before));
    expect(after.steps).toEqual(before.steps);
    expect(eventTypes(after).at(-1)).toBe('run.resolved');
  });

  it('a write as made: an identical write reuses it', async () => {
    const message = await unknownNote('lost_answer');
    await resolve(message, { outcome: 'succeeded', writes: { note: 'happened' } });
    const writes = notesWritten();
    const next = await shop.finish(await shop.beginPublished('note'));
    expect(next.run.status).toBe('succeeded');
    expect(eventTypes(next)).toContain('write.reused');
    expect(notesWritten()).toBe(writes);
    expect(incident()?.workNotes).toHaveLength(1);
  });

  it('a write as not made: a run that waits for its key makes it, once', async () => {
    const message = await unknownNote('lost_request');
    const waiting = await shop.beginPublished('note');
    await shop.work(waiting);
    expect((await shop.now(waiting)).steps[0]).toMatchObject({
      status: 'failed_retryable',
      error: { code: 'CONFLICT' },
    });
    await resolve(message);
    const { run } = await shop.finish(waiting);
    expect(run.status).toBe('succeeded');
    expect(incident()?.workNotes).toHaveLength(1);
  });

  it('again with the same values changes nothing; with others it is refused, and the error says who resolved it', async () => {
    const message = await unknownNote('lost_request');
    await resolve(message);
    const { commits } = await shop.now(message);
    await resolve(message, {}, 'ben');
    expect((await shop.now(message)).commits).toEqual(commits);
    await expect(resolve(message, { outcome: 'succeeded' }, 'ben')).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('olivia resolved this run as failed'),
    });
  });

  it('needs a finding for each unknown write, and for nothing else', async () => {
    const message = await unknownNote('lost_request');
    const { commits } = await shop.now(message);
    await expect(resolve(message, { writes: {} })).rejects.toMatchObject({
      code: 'INPUT_INVALID',
      message: expect.stringMatching(/happened or did_not for each of: note \(servicenow:/),
    });
    await expect(resolve(message, { writes: { note: 'happened', nota: 'did_not' } })).rejects.toMatchObject({
      code: 'INPUT_INVALID',
      message: expect.stringContaining('did you mean "note"?'),
    });
    expect((await shop.now(message)).commits).toEqual(commits);
  });

  it('is only for runs that ended without success, and only after they are sealed', async () => {
    const running = await shop.begin(WRITES);
    await expect(resolve(running, { writes: {} })).rejects.toMatchObject({ code: 'RUN_INVALID_TRANSITION' });
    await shop.work(running);
    await expect(resolve(running, { writes: {} })).rejects.toMatchObject({ code: 'RUN_INVALID_TRANSITION' });
    const failing = await shop.begin(NOTE);
    shop.outside.next('PATCH servicenow', { status: 403 });
    await shop.work(failing);
    expect((await shop.now(failing)).run.status).toBe('failed_terminal');
    await expect(resolve(failing, { writes: {} })).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('not sealed yet'),
    });
    await shop.finish(failing);
    expect(await resolve(failing, { writes: {} })).toMatchObject({ resolution: { outcome: 'failed' } });
  });

  it('6.1 is possible after needs_human, failed and timed_out, and after no other end', async () => {
    const waits = (name: string) =>
      `name: ${name}\ndeadlineSeconds: 60\nsteps:\n  - { id: hook, tool: wait.external, with: { event: go } }\n`;
    const canceled = await shop.begin(waits('canceled'));
    await shop.work(canceled);
    await controlRun(shop.worker, canceled, { kind: 'cancel' }, 'olivia');
    const late = await shop.begin(waits('late'));
    await shop.work(late);
    shop.clock.advance(3 * 60 * 60_000);
    const succeeded = await shop.begin(WRITES);
    const failing = await shop.begin(NOTE);
    shop.outside.next('PATCH servicenow', { status: 403 });
    const ended = [failing, canceled, late, succeeded];
    const statuses: string[] = [];
    for (const message of ended) {
      const { run } = await shop.finish(message);
      const resolved = await resolve(message, { writes: {} }).then(
        ({ resolution }) => resolution?.outcome,
        ({ code }) => code,
      );
      statuses.push(`${run.status}: ${resolved}`);
    }
    expect(statuses).toEqual([
      'failed_terminal: failed',
      'canceled: RUN_INVALID_TRANSITION',
      'timed_out: failed',
      'succeeded: RUN_INVALID_TRANSITION',
    ]);
    const events = (await shop.now(late)).commits.flatMap((commit) => commit.events);
    expect(events).toContainEqual(expect.objectContaining({ type: 'run.resolved', actor: 'olivia' }));
  });

  it('a run of another tenant is not found', async () => {
    const { runId } = await unknownNote('lost_request');
    await expect(resolve({ tenant: 'globex', runId })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it.each([
    ['happened', 'reversed', ['bug']],
    ['did_not', 'succeeded', ['bug', 'triage']],
  ] as const)(
    'of an undo that %s: the receipt of its write is %s and blocks nothing',
    async (finding, outcome, there) => {
      const message = await shop.begin(
        `${WRITES.replace('name: writes', 'name: undone\nonFailure: rollback')}  - { id: gone, tool: servicenow.incident.update, with: { sysId: "${'f'.repeat(32)}", fields: { state: "6" } } }\n`,
      );
      shop.disturb((name, run) => {
        if (name === 'DELETE github') shop.outside.next('GET github', ...Array(20).fill({ status: 503 }));
        return run();
      });
      shop.outside.next('DELETE github', finding === 'happened' ? 'lost_answer' : 'lost_request');
      expect((await shop.finish(message)).run.status).toBe('needs_human');
      shop.disturb((_name, run) => run());
      await resolve(message, { writes: { undo_label: finding } });
      const { receipts } = await shop.now(message);
      expect(receipts.find(({ stepId }) => stepId === 'label')).toMatchObject({ outcome });
      expect(receipts.find(({ stepId }) => stepId === 'label')).not.toHaveProperty('undoBegunAt');
      expect(labels()).toEqual(there);
      await worksAgain('http://github/repos/octo-org/payments/issues/7');
      const again = await shop.finish(await shop.begin(WRITES));
      expect(again.run.status).toBe('succeeded');
      expect(labels()).toEqual(['bug', 'triage']);
    },
  );
});

describe('rolling back a run that has ended', () => {
  it('undoes its writes, newest first, in a new run; the ended run does not change', async () => {
    const message = await shop.begin(WRITES);
    const ended = await shop.finish(message);
    await rollBack(message);
    const { run, steps, receipts } = await shop.finish(rollbackOf(message));
    expect(run).toMatchObject({
      status: 'succeeded',
      rollbackOf: { runId: message.runId, steps: ['assign', 'label'] },
      compensation: [
        { step: 'label', outcome: 'reversed' },
        { step: 'assign', outcome: 'reversed' },
      ],
    });
    expect(steps.map(({ id, status }) => `${id} ${status}`)).toEqual(['undo_assign succeeded', 'undo_label succeeded']);
    expect(receipts.map(({ outcome }) => outcome)).toEqual(['succeeded', 'succeeded']);
    expect(incident()?.fields).toMatchObject({ category: '' });
    expect(labels()).toEqual(['bug']);
    const after = await shop.now(message);
    expect(after.run).toMatchObject({ status: 'succeeded', rolledBackBy: run.runId });
    expect(immutable(after)).toEqual(immutable(ended));
    expect(after.steps).toEqual(ended.steps);
    expect(after.receipts.map(({ outcome }) => outcome)).toEqual(['reversed', 'reversed']);
  });

  it('frees the keys: the same writes may be made again', async () => {
    const message = await shop.begin(WRITES);
    await shop.finish(message);
    await rollBack(message);
    await shop.finish(rollbackOf(message));
    const again = await shop.finish(await shop.beginPublished('writes'));
    expect(again.run.status).toBe('succeeded');
    expect(eventTypes(again)).not.toContain('write.reused');
    expect(labels()).toEqual(['bug', 'triage']);
  });

  it('happens once: a second request names the same run and changes nothing', async () => {
    const message = await shop.begin(WRITES);
    await shop.finish(message);
    const both = await Promise.all([
      rollBack(message),
      rollBackEndedRun(shop.worker, message, { actor: 'ben', rollbackRunId: 'run_0b' }),
    ]);
    expect(new Set(both.map(({ rolledBackBy }) => rolledBackBy)).size).toBe(1);
    const started = eventTypes(await shop.now(message)).filter((type) => type === 'run.rollback_started');
    expect(started).toHaveLength(1);
  });

  it('does not undo a value that somebody changed since, and fails with a list of what remains', async () => {
    const message = await shop.begin(WRITES);
    await shop.finish(message);
    const fields = incident()?.fields;
    if (fields) fields.category = 'a third party';
    await rollBack(message);
    const { run } = await shop.finish(rollbackOf(message));
    expect(run).toMatchObject({
      status: 'failed_terminal',
      error: { code: 'ROLLBACK_INCOMPLETE', message: '1 of 2 writes remain: assign (drifted)' },
    });
    expect(incident()?.fields).toMatchObject({ category: 'a third party' });
    expect(labels()).toEqual(['bug']);
  });

  it('needs a policy decision and, if required, an approval for each undo; the person who requested it may not approve', async () => {
    const message = await shop.begin(WRITES);
    await shop.finish(message);
    shop.policy.decision = ({ action }) => (action.undo ? needsApproval() : ALLOWED);
    await rollBack(message, 'ana');
    const rollback = rollbackOf(message);
    for (const step of ['undo_label', 'undo_assign']) {
      await shop.work(rollback);
      const approval = await shop.openApproval(rollback);
      expect(approval).toMatchObject({ stepId: step, action: { undo: true } });
      await expect(shop.say(approval, 'ana')).rejects.toMatchObject({ code: 'APPROVAL_SELF' });
      await shop.say(approval, 'ben');
    }
    expect((await shop.finish(rollback)).run.status).toBe('succeeded');
    expect(labels()).toEqual(['bug']);
  });

  it('can be canceled; what is not undone yet stays', async () => {
    const message = await shop.begin(WRITES);
    await shop.finish(message);
    await rollBack(message);
    await shop.command(rollbackOf(message), { kind: 'cancel' });
    const { run } = await shop.finish(rollbackOf(message));
    expect(run).toMatchObject({ status: 'canceled', compensation: [{ outcome: 'kept' }, { outcome: 'kept' }] });
    expect(labels()).toEqual(['bug', 'triage']);
  });

  it('whose response is lost needs a human, who resolves it', async () => {
    const message = await shop.begin(WRITES);
    await shop.finish(message);
    await rollBack(message);
    shop.disturb((name, run) => {
      if (name === 'DELETE github') shop.outside.next('GET github', ...Array(9).fill({ status: 503 }));
      return run();
    });
    shop.outside.next('DELETE github', 'lost_answer');
    const rollback = rollbackOf(message);
    expect((await shop.finish(rollback)).run.status).toBe('needs_human');
    await resolve(rollback, { outcome: 'succeeded', writes: { undo_label: 'happened' } });
    const { receipts } = await shop.now(message);
    expect(receipts.map(({ outcome }) => outcome)).toEqual(['reversed', 'reversed']);
  });

  it('is refused while it is unknown whether a write was made, and where nothing was written', async () => {
    const unknown = await unknownNote('lost_request');
    await expect(rollBack(unknown)).rejects.toMatchObject({
      code: 'RUN_INVALID_TRANSITION',
      message: expect.stringContaining('resolve the run first'),
    });
    await resolve(unknown);
    await expect(rollBack(unknown)).rejects.toMatchObject({ message: expect.stringContaining('nothing to undo') });
  });
});

describe('6.11 assigning', () => {
  it('gives a run one person at a time, active or ended', async () => {
    const message = await shop.begin(HOOK());
    expect(await assignRun(shop.worker, message, 'ana', 'ana')).toMatchObject({ assignee: 'ana' });
    await expect(assignRun(shop.worker, message, 'ben', 'ben')).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('this run is assigned to ana'),
    });
    const { run } = await shop.finish(message);
    expect(run.assignee).toBe('ana');
    expect((await releaseRun(shop.worker, message, 'ben')).assignee).toBeUndefined();
    expect(await assignRun(shop.worker, message, 'ben', 'olivia')).toMatchObject({
      assignee: 'ben',
      status: run.status,
    });
  });

  it('again to the same person, or releasing again, changes nothing', async () => {
    const message = await shop.begin(HOOK());
    await assignRun(shop.worker, message, 'ana', 'ana');
    await assignRun(shop.worker, message, 'ana', 'ben');
    await releaseRun(shop.worker, message, 'ana');
    await releaseRun(shop.worker, message, 'ana');
    expect(eventTypes(await shop.now(message))).toEqual(['run.accepted', 'run.assigned', 'run.released']);
  });

  it('does not disturb a worker: the run continues and writes once', async () => {
    const message = await shop.begin(WRITES);
    let assigned = false;
    shop.disturb(async (name, run) => {
      const result = await run();
      if (name === 'PATCH servicenow' && !assigned) {
        assigned = true;
        await assignRun(shop.worker, message, 'ana', 'ana');
      }
      return result;
    });
    const now = await shop.finish(message);
    expect(now.run).toMatchObject({ status: 'succeeded', assignee: 'ana' });
    expect(notesWritten()).toBe(1);
  });

  it('works on a run whose workflow is gone', async () => {
    const message = await shop.beginPublished('never-published');
    await shop.finish(message);
    expect(await assignRun(shop.worker, message, 'ana', 'ana')).toMatchObject({ error: { code: 'CONTEXT_MISSING' } });
  });
});
