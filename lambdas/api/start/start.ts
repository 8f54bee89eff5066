import type { HttpEvent } from '../../entry/http.ts';
import type { RequestedRun } from '../../intake/request-run.ts';
import { repeatedRequest } from '../../intake/request-run.ts';
import { type Given, requestedTrigger } from '../../intake/requested-trigger.ts';
import {
  automationOfWorkflow,
  type Starter,
  startAutomation,
  startableAutomation,
} from '../../intake/start-automation.ts';
import { hashOf } from '../../run/canonical-json.ts';
import { deliveryKey, type StartedRun } from '../../run/idempotency.ts';
import type { RunStore } from '../../run/run-store.ts';
import type { Caller } from '../authorizer/caller.ts';
import { startRoutes } from '../contract/start.ts';
import { router } from '../router.ts';
import { requestIdOf } from './idempotency-key.ts';
import { replayOf, rerunOf } from './repeat-run.ts';

export interface StartPorts extends Starter {
  runs: Pick<RunStore, 'ingest' | 'idempotencyRecord' | 'load' | 'receipts' | 'runIdsStartingWith'>;
}

export const handleStart = router<StartPorts, typeof startRoutes>(startRoutes, {
  startRun: (ports, { caller, headers, body }) =>
    once(ports, { caller, headers, asked: ['startRun', body] }, apiKey, async () => {
      const automation = await automationOfWorkflow(ports, caller.tenant, body);
      return { automation, ...requestedBy(caller, 'api', automation.name, body) };
    }),

  runAutomation(ports, { caller, headers, params: { name }, body }) {
    const key = (client: string, requestId: string) => deliveryKey.manual({ automation: name, client, requestId });
    return once(ports, { caller, headers, asked: ['runAutomation', name, body] }, key, async () => {
      const automation = await startableAutomation(ports, caller.tenant, name);
      return { automation, ...requestedBy(caller, 'manual', name, body) };
    });
  },

  rerunRun: (ports, { caller, headers, params: { id }, body }) =>
    once(ports, { caller, headers, asked: ['rerunRun', id, body] }, apiKey, () => rerunOf(ports, caller, id, body)),

  replayRun: (ports, { caller, headers, params: { id }, body }) =>
    once(ports, { caller, headers, asked: ['replayRun', id, body] }, apiKey, () => replayOf(ports, caller, id, body)),
});

const apiKey = (client: string, requestId: string) => deliveryKey.api({ client, requestId });

function requestedBy({ person }: Caller, source: 'api' | 'manual', automation: string, given: Given) {
  const { inputs, subject } = given;
  return {
    trigger: requestedTrigger(source, { person, automation }, given),
    request: { actor: person },
    ...(subject !== undefined && { subject }),
    ...(inputs && { inputs }),
  };
}

/** Starts what `prepare` describes, unless the same client sent the same request before. */
async function once(
  ports: StartPorts,
  { caller, headers, asked }: { caller: Caller; headers: HttpEvent['headers']; asked: unknown[] },
  keyOf: (client: string, requestId: string) => string,
  prepare: () => Promise<Omit<RequestedRun, 'tenant' | 'key' | 'requestHash'>>,
): Promise<{ status: 200 | 201; body: StartedRun }> {
  const { tenant, person: client } = caller;
  const requestId = requestIdOf(headers);
  const requestHash = hashOf(asked);
  const key = (runId: string) => keyOf(client, requestId ?? runId);
  // Before anything is checked: what could start then need not be able to start now.
  const earlier = requestId === undefined ? undefined : await repeatedRequest(ports, tenant, key(''), requestHash);
  if (earlier) return { status: 200, body: earlier };
  const { isNew, run } = await startAutomation(ports, { ...(await prepare()), tenant, key, requestHash });
  return { status: isNew ? 201 : 200, body: run };
}
