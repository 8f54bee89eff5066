import { type RunStarter, repeatedRequest, requestRun } from '../../intake/request-run.ts';
import { checkedCall } from '../../proposal/checked-call.ts';
import { hashOf } from '../../run/canonical-json.ts';
import { deliveryKey } from '../../run/idempotency.ts';
import { REQUESTED_EVENT } from '../../run/run.ts';
import type { RunStore } from '../../run/run-store.ts';
import { DIRECT_ACTION } from '../../workflow/action-workflow.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { Action } from '../contract/actions.ts';
import { actionView } from './action-view.ts';
import { mustLoadAction } from './list-actions.ts';

export type DirectPorts = RunStarter & { runs: Pick<RunStore, 'ingest' | 'idempotencyRecord' | 'load'> };

interface DirectCall {
  tool: string;
  input: Record<string, unknown>;
  title?: string;
}

/**
 * A person or program proposes one call. It is a run that starts like any other, and the caller is a maker. The same
 * request again returns the same action.
 */
export async function proposeDirect(
  ports: DirectPorts,
  { tenant, person }: Caller,
  requestId: string | undefined,
  { tool, input, title }: DirectCall,
): Promise<{ status: 200 | 201; body: Action }> {
  const requestHash = hashOf(['proposeAction', { tool, input, title: title ?? null }]);
  const key = (runId: string) => deliveryKey.api({ client: person, requestId: requestId ?? runId });
  const earlier = requestId === undefined ? undefined : await repeatedRequest(ports, tenant, key(''), requestHash);
  if (earlier) return { status: 200, body: actionView(await mustLoadAction(ports, tenant, earlier.runId)) };
  checkedCall(tool, input);
  const { isNew, run } = await requestRun(ports, {
    tenant,
    automation: { name: DIRECT_ACTION.name, workspace: 'default', workflow: DIRECT_ACTION },
    trigger: {
      source: 'api',
      event: REQUESTED_EVENT,
      fields: { title: title ?? `${tool}, proposed by ${person}`, actor: person },
      payload: { tool, ...(title !== undefined && { title }) },
      makers: [person],
      action: { tool, input, chosen: [] },
    },
    request: { actor: person, action: { tool, inputHash: hashOf(input) } },
    key,
    requestHash,
  });
  return { status: isNew ? 201 : 200, body: actionView(await mustLoadAction(ports, tenant, run.runId)) };
}
