import type { HttpEvent } from '../../entry/http.ts';
import { type Given, requestedTrigger } from '../../intake/requested-trigger.ts';
import { automationOfWorkflow, type Starter, startableAutomation } from '../../intake/start-automation.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { deliveryKey, type StartedRun } from '../../run/idempotency.ts';
import type { RunStore } from '../../run/run-store.ts';
import { validTraceparent } from '../../telemetry/trace-context.ts';
import { proposeDirect } from '../actions/propose-direct.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { Contract } from '../contract/index.ts';
import { directActionRoutes } from '../contract/runs/actions.ts';
import { executionStartRoutes } from '../contract/runs/executions.ts';
import { startRoutes } from '../contract/runs/start.ts';
import { runbookOf } from '../executions/start-execution.ts';
import { router } from '../router.ts';
import { requestIdOf } from './idempotency-key.ts';
import { replayOf, rerunOf } from './repeat-run.ts';
import { type StartRequest, startOnce } from './start-once.ts';

export interface StartPorts extends Starter {
  definitions: Starter['definitions'] & Pick<Definitions, 'settings'>;
  runs: Pick<RunStore, 'ingest' | 'idempotencyRecord' | 'load' | 'receipts' | 'runIdsStartingWith' | 'listRuns'>;
}

const routes = { ...startRoutes, ...directActionRoutes, ...executionStartRoutes };

export const handleStart = router<StartPorts, Contract['start']>(routes, {
  startRun: (ports, { caller, headers, body }) =>
    startOnce(ports, request(caller, headers, ['startRun', body]), apiKey, async () => {
      const automation = await automationOfWorkflow(ports, caller.tenant, body);
      return { automation, ...requestedBy(caller, 'api', automation.name, body) };
    }),

  runAutomation(ports, { caller, headers, params: { name }, body }) {
    const key = (client: string, requestId: string) => deliveryKey.manual({ automation: name, client, requestId });
    return startOnce(ports, request(caller, headers, ['runAutomation', name, body]), key, async () => {
      const automation = await startableAutomation(ports, caller.tenant, name);
      return { automation, ...requestedBy(caller, 'manual', name, body) };
    });
  },

  proposeAction: (ports, { caller, headers, body }) => proposeDirect(ports, caller, requestIdOf(headers), body),

  async startExecution(ports, { caller, headers, body }) {
    const asked = request(caller, headers, ['startExecution', body]);
    const { status, body: started } = await startOnce(ports, asked, apiKey, async () => {
      const { name, version, workflow } = await runbookOf(ports, caller.tenant, body);
      const automation = await automationOfWorkflow(ports, caller.tenant, { workflow: { name, version } });
      const takesTicket = workflow.inputs?.ticket_id !== undefined;
      const inputs = takesTicket ? { ticket_id: body.ticket_id, ...body.inputs } : body.inputs;
      const given = { subject: body.ticket_id, ...(inputs && { inputs }) };
      const { request: by, ...requested } = requestedBy(caller, 'api', automation.name, given);
      const { validation_mode: validationMode, environment_profile: profile } = body;
      const demands = { ...(validationMode && { validationMode }), ...(profile && { profile }) };
      return { automation, ...requested, request: { ...by, ...demands } };
    });
    return { status, body: startedExecution(started) };
  },

  rerunRun: (ports, { caller, headers, params: { id }, body }) =>
    rerunOnce(ports, caller, requestIdOf(headers), id, body),

  replayRun: (ports, { caller, headers, params: { id }, body }) =>
    startOnce(ports, request(caller, headers, ['replayRun', id, body]), apiKey, () =>
      replayOf(ports, caller, id, body),
    ),
});

export const rerunOnce = (
  ports: StartPorts,
  caller: Caller,
  requestId: string | undefined,
  runId: string,
  body: Parameters<typeof rerunOf>[3],
) =>
  startOnce(ports, { caller, requestId, asked: ['rerunRun', runId, body] }, apiKey, () =>
    rerunOf(ports, caller, runId, body),
  );

const request = (caller: Caller, headers: HttpEvent['headers'], asked: unknown[]): StartRequest => ({
  caller,
  requestId: requestIdOf(headers),
  asked,
  traceparent: validTraceparent(headers.traceparent),
});

const startedExecution = ({
  runId,
  subject = '',
  workflow,
  request: { validationMode, profile },
  createdAt,
}: StartedRun) => ({
  session_id: runId,
  ticket_id: subject,
  runbook_id: `${workflow.name}@${workflow.version}`,
  validation_mode: validationMode ?? null,
  environment_profile: profile ?? null,
  created_at: createdAt,
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
