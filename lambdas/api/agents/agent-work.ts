import { INTERVALS } from '../../agents/agent-terms.ts';
import type { Assignment } from '../../agents/assignment.ts';
import { redactArrived } from '../../agents/redact-arrived.ts';
import { type ArchivePorts, appendOutput, finishOutput } from '../../agents/store-output.ts';
import { type HttpEvent, type HttpResponse, Problem } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import { counted, METRICS } from '../../telemetry/metrics.ts';
import { acknowledgeAssignment } from '../../worker/agent/acknowledge-assignment.ts';
import { type AgentPorts, assignmentOf } from '../../worker/agent/agent-ports.ts';
import { completeAssignment } from '../../worker/agent/complete-assignment.ts';
import { syncAgent } from '../../worker/agent/sync-agent.ts';
import { agentWorkRoutes } from '../contract/agents.ts';
import { routeKey } from '../contract/route.ts';
import { router } from '../router.ts';
import { type AuthenticatedAgent, authenticateAgent } from './authenticate-agent.ts';

export type AgentWorkPorts = AgentPorts & Omit<ArchivePorts, 'redact'>;
/** Per request: who sent it. */
type Signed = AgentWorkPorts & { caller: AuthenticatedAgent };

const handle = router<Signed, typeof agentWorkRoutes>(agentWorkRoutes, {
  async syncAgent(ports, { body }) {
    if (body.boot_id !== ports.caller.bootId) {
      throw new Problem(400, 'BAD_REQUEST', 'boot_id: the nonce of the signature has another one');
    }
    const synced = await syncAgent(ports, ports.caller, body);
    for (const { rule } of body.violations) {
      logViolation(ports, rule);
      // No commit says so: the agent refused the assignment, or it was not for this agent.
      ports.telemetry?.record(counted(METRICS.profileViolations, {}));
    }
    return { status: 200, body: { server_time: isoNow(ports.clock), ...synced, intervals: INTERVALS } };
  },

  async acknowledgeAssignment(ports, { body }) {
    const acknowledged = await acknowledgeAssignment(ports, ports.caller, body);
    return { status: 200, body: acknowledged };
  },

  async appendOutput(ports, { body }) {
    const assignment = await assignmentOf(ports, ports.caller, body);
    if (!mayHaveRun(assignment) || assignment.bootId !== ports.caller.bootId) throw notRunning(assignment);
    const appended = await appendOutput({ ...ports, redact: redactArrived }, assignment, body.chunks);
    noteOutput(ports, assignment, body.chunks);
    return { status: 200, body: appended };
  },

  async completeStep(ports, { body }) {
    const assignment = await assignmentOf(ports, ports.caller, body);
    const isOfAssignment =
      assignment.idempotencyKey === body.idempotency_key && assignment.profile === body.sandbox_profile;
    const isValid = isOfAssignment && mayHaveRun(assignment);
    // The digest in receipt and evidence is of what is stored, not of what the agent claims. A process that was restarted
    // reports the result of the one before.
    const output = isValid ? await storedOutput(ports, assignment, body.output) : body.output;
    const completed = await completeAssignment(ports, ports.caller, { ...body, output });
    if (completed.result === 'accepted') for (const rule of body.violations) logViolation(ports, rule);
    return { status: 200, body: completed };
  },
});

const SYNC = routeKey(agentWorkRoutes.syncAgent);

/** Handles what agents do with commands: they sync, acknowledge assignments, send output and report results. */
export async function handleAgentWork(ports: AgentWorkPorts, event: HttpEvent): Promise<HttpResponse> {
  const caller = await authenticateAgent(ports, event, event.routeKey === SYNC ? 'ordered' : 'idempotent');
  return handle({ ...ports, caller }, event);
}

/** A command runs only after it was confirmed. */
const mayHaveRun = ({ status }: Assignment): boolean => ['acknowledged', 'completed', 'lost'].includes(status);

const notRunning = ({ assignmentId, status }: Assignment): Problem =>
  new Problem(409, 'CONFLICT', `this process does not run ${assignmentId}, which is ${status}; send no output for it`);

async function storedOutput(
  ports: AgentWorkPorts,
  assignment: Assignment,
  { chunks, dropped_bytes: droppedBytes }: { chunks: number; dropped_bytes: number },
) {
  const stored = await finishOutput({ ...ports, redact: redactArrived }, assignment, { chunks, droppedBytes });
  return { sha256: stored.sha256, bytes: stored.bytes, chunks: stored.chunks, dropped_bytes: stored.droppedBytes };
}

/** For debugging how output arrives: its size, never its text. */
function noteOutput(
  { telemetry, clock }: Signed,
  { tenant, runId, stepIndex, agentId }: Assignment,
  chunks: readonly { stream_seq: number; data: string }[],
): void {
  telemetry?.note({
    level: 'DEBUG',
    fields: {
      ...{ timestamp: isoNow(clock), event_type: 'step.output', tenant_id: tenant, session_id: runId },
      ...{ step_number: stepIndex + 1, worker_id: agentId, stream_seq: chunks[0]?.stream_seq, chunks: chunks.length },
      bytes: chunks.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0),
    },
    measurements: [],
  });
}

/** The rule is in the log, not a dimension: an agent chooses its name. */
function logViolation({ log, caller }: Signed, rule: string): void {
  const { tenant, agentId } = caller.agent;
  log.warn('a command violated its profile', { rule, tenant, agentId });
}
