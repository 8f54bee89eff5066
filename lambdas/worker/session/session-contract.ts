import type { Access } from '../../connectors/connector.ts';
import type { SessionContract } from '../../connectors/session/session-provider.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import { CountersignError } from '../../run/errors.ts';
import { later } from '../../run/lease.ts';
import { sealSessionToken } from '../../run-changes/session/session-token.ts';
import type { ClaimedStep, Worker } from '../worker.ts';

/**
 * What the session gets with its prompt. It depends only on the step and on when its start was first intended, so that an
 * attempt after a crash sends the same: one session, one prompt, one token, one completion.
 */
export async function sessionContract(
  { sessionSecret, ownUrl: ofStage }: Pick<Worker, 'sessionSecret' | 'ownUrl'>,
  { tenant, runId }: { tenant: string; runId: string },
  { step, receipt }: Pick<ClaimedStep, 'step' | 'receipt'>,
  { ownUrl = ofStage }: Pick<Access, 'ownUrl'>,
): Promise<SessionContract> {
  if (!sessionSecret || ownUrl === undefined) {
    throw new CountersignError('CONNECTION_MISSING', 'this stage has no secret or no URL for sessions');
  }
  const until = sessionUntil(step, receipt);
  const token = sealSessionToken({ tenant, runId, stepIndex: step.index, expiresAt: until }, await sessionSecret());
  return {
    ...{ tenant, runId, stepId: step.id, token, until, ownUrl },
    sessionKey: `run:${runId}:session:${step.id}:${receipt.openSince}`,
    promptKey: `run:${runId}:prompt:v1:${step.id}:${receipt.openSince}`,
    completionId: completionIdOf(runId, step.id, until),
  };
}

export const sessionUntil = ({ input }: ClaimedStep['step'], { openSince }: ClaimedStep['receipt']): string =>
  later(openSince, (input as { timeoutSeconds: number }).timeoutSeconds * 1000);

export const completionIdOf = (runId: string, stepId: string, until: string): string =>
  `cmp_${sha256Hex(JSON.stringify([runId, stepId, until])).slice(0, 32)}`;
