import { type RequestedRun, repeatedRequest } from '../../intake/request-run.ts';
import { type Starter, startAutomation } from '../../intake/start-automation.ts';
import { hashOf } from '../../run/canonical-json.ts';
import type { StartedRun } from '../../run/idempotency.ts';
import type { RunStore } from '../../run/run-store.ts';
import type { Caller } from '../authorizer/caller.ts';

type OnceStarter = Starter & { runs: Pick<RunStore, 'idempotencyRecord'> };

/** What a client asks for: the same `asked` with the same `requestId` is the same request. */
export interface StartRequest {
  caller: Caller;
  requestId: string | undefined;
  asked: unknown[];
  /** The trace of the client. Not part of what is asked for. */
  traceparent?: string;
}

/** Starts what `prepare` describes, unless the same client sent the same request before. */
export async function startOnce(
  starter: OnceStarter,
  { caller, requestId, asked, traceparent }: StartRequest,
  keyOf: (client: string, requestId: string) => string,
  prepare: () => Promise<Omit<RequestedRun, 'tenant' | 'key' | 'requestHash'>>,
): Promise<{ status: 200 | 201; body: StartedRun }> {
  const { tenant, person: client } = caller;
  const requestHash = hashOf(asked);
  const key = (runId: string) => keyOf(client, requestId ?? runId);
  // Before anything is checked: what could start then need not be able to start now.
  const earlier = requestId === undefined ? undefined : await repeatedRequest(starter, tenant, key(''), requestHash);
  if (earlier) return { status: 200, body: earlier };
  const { isNew, run } = await startAutomation(starter, {
    ...(await prepare()),
    ...{ tenant, key, requestHash, traceparent },
  });
  return { status: isNew ? 201 : 200, body: run };
}
