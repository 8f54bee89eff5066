import { Problem } from '../../entry/http.ts';
import { type Clock, isoNow } from '../../entry/ports.ts';
import { NoSlotForCaller, type RunStarter, repeatedRequest, requestRun } from '../../intake/request-run.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { checkedCall } from '../../proposal/checked-call.ts';
import { hashOf } from '../../run/canonical-json.ts';
import { deliveryKey } from '../../run/idempotency.ts';
import { REQUESTED_EVENT } from '../../run/run.ts';
import type { RunStore } from '../../run/run-store.ts';
import { ACTIONS_PER_MINUTE_DEFAULT, callerCounter } from '../../run/settings/caps.ts';
import { counted, METRICS } from '../../telemetry/metrics.ts';
import { DIRECT_ACTION } from '../../workflow/action-workflow.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { Action } from '../contract/runs/actions.ts';
import { actionView } from './action-view.ts';
import { mustLoadAction } from './list-actions.ts';

/** `2026-11-18T02:30` */
const MINUTE_CHARACTERS = 16;
const MINUTE_MS = 60_000;

export type DirectPorts = RunStarter & {
  runs: Pick<RunStore, 'ingest' | 'idempotencyRecord' | 'load'>;
  definitions: Pick<Definitions, 'settings'>;
};

const minuteOf = (clock: Clock): string => isoNow(clock).slice(0, MINUTE_CHARACTERS);

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
  const { caps } = await ports.definitions.settings(tenant);
  const max = caps.maxActionsPerMinute ?? ACTIONS_PER_MINUTE_DEFAULT;
  const cap = { kind: 'count_start' as const, minute: minuteOf(ports.clock), max, workflow: callerCounter(person) };
  const requested = requestRun(ports, {
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
    cap,
  });
  const { isNew, run } = await requested.catch((error: unknown) => {
    throw error instanceof NoSlotForCaller ? tooMany(ports, { tenant, person }, max) : error;
  });
  return { status: isNew ? 201 : 200, body: actionView(await mustLoadAction(ports, tenant, run.runId)) };
}

/** A program that calls endlessly: what it may still call, it may call in the next minute. */
function tooMany(
  { clock, log, telemetry }: DirectPorts,
  caller: { tenant: string; person: string },
  max: number,
): Problem {
  log.warn('an action was refused', { ...caller, because: 'rate_exceeded' });
  telemetry?.record(counted(METRICS.actionsRefused, { result: 'rate_exceeded' }));
  const seconds = Math.ceil((MINUTE_MS - (clock.now() % MINUTE_MS)) / 1000);
  const detail = `you may propose ${max} actions a minute, and have; try again in ${seconds} s`;
  return new Problem(429, 'RATE_EXCEEDED', detail, { retryAfterSeconds: seconds }, { 'retry-after': String(seconds) });
}
