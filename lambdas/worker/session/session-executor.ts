import { IN_PROCESS_LEASE } from '../../run/lease.ts';
import { hasOpenSession } from '../../run/session.ts';
import type { Executor } from '../5-executor.ts';
import { performStep } from '../in-process-executor.ts';
import { awaitSession } from './await-session.ts';
import { finalizeSession } from './finalize-session.ts';
import { resolveSession } from './resolve-session.ts';
import { sessionContract } from './session-contract.ts';

/** Starts a session like any other write, in this invocation. Then the step waits until the session completes. */
export const sessionExecutor: Executor = {
  lease: IN_PROCESS_LEASE,
  prepare: resolveSession,
  dispatch: (worker, run, claimed) =>
    performStep(worker, run, claimed, async (access) => ({
      session: await sessionContract(worker, run, claimed, access),
    })),
  awaitEnd: awaitSession,
  async checkWaiting(worker, draft, step) {
    if (hasOpenSession(step)) await finalizeSession(worker, draft, step);
  },
};
