import { describe, expect, it } from 'vitest';
import type { Caller } from '../../../lambdas/api/authorizer/caller.ts';
import { runActions } from '../../../lambdas/api/runs/run-actions.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import type { Step } from '../../../lambdas/run/step.ts';

const caller = (role: Caller['role'], person = 'oscar'): Caller => ({ tenant: 'acme', person, role });
const actionsOf = (run: object, rows: object[] = [], by = caller('admin'), isSealed = true) =>
  runActions({ run: { runId: 'run_1', ...run } as Run, rows: rows as Step[], isSealed }, by);
const names = (...found: Parameters<typeof actionsOf>) => actionsOf(...found).map(({ action }) => action);
const written = { id: 'write', index: 0, status: 'succeeded', receiptKey: 'k1' };

describe('what can be done with a run', () => {
  it('a running run can be paused, canceled, rolled back and taken care of', () => {
    expect(names({ status: 'running' }, [written])).toEqual(['pause', 'cancel', 'rollback', 'assign']);
  });

  it('a paused run with a failed step is retried, and cannot be resumed', () => {
    const failed = { id: 'note', index: 1, status: 'failed_terminal', error: { code: 'X', message: '' } };
    const found = actionsOf({ status: 'paused' }, [written, failed]);
    expect(found).toContainEqual(expect.objectContaining({ action: 'retry', may: true, about: 'note' }));
    expect(found).toContainEqual(
      expect.objectContaining({ action: 'resume', may: false, why: expect.stringContaining('note has failed') }),
    );
  });

  it('a failed run can be resolved, repeated and rolled back once its evidence is sealed', () => {
    const ended = { status: 'failed_terminal' };
    expect(names(ended, [written])).toEqual(['rollback', 'resolve', 'rerun', 'replay', 'assign']);
    const early = actionsOf(ended, [written], caller('admin'), false);
    for (const action of ['rollback', 'resolve']) {
      expect(early).toContainEqual(
        expect.objectContaining({ action, may: false, why: expect.stringContaining('not sealed') }),
      );
    }
    expect(names({ ...ended, resolution: {}, rolledBackBy: 'run_2' }, [written])).toEqual([
      'rerun',
      'replay',
      'assign',
    ]);
  });

  it('people without the right read which right they lack', () => {
    const found = actionsOf({ status: 'running' }, [], caller('member'));
    expect(found).toContainEqual(
      expect.objectContaining({ action: 'cancel', may: false, why: 'your role member lacks the right runs:control' }),
    );
    expect(found).toContainEqual(expect.objectContaining({ action: 'assign', may: true }));
  });

  it('a run of somebody else says to whom it is assigned; its own assignee can release it', () => {
    expect(actionsOf({ status: 'running', assignee: 'ana' })).toContainEqual(
      expect.objectContaining({ action: 'assign', may: false, why: 'it is assigned to ana' }),
    );
    expect(names({ status: 'running', assignee: 'oscar' })).toContain('release');
  });

  it('each action names its command, with the signal that is waited for', () => {
    const waiting = { id: 'w', status: 'waiting_external', awaits: { kind: 'signal', event: 'deploy.finished' } };
    expect(actionsOf({ status: 'waiting_external' }, [waiting])).toContainEqual(
      expect.objectContaining({
        action: 'signal',
        command: 'npx countersign runs signal run_1 --event deploy.finished',
      }),
    );
  });
});
