import { type Agent, withAssignment } from '../../agents/agent.ts';
import { AGENT_PROTOCOL_VERSION } from '../../agents/agent-terms.ts';
import { ASSIGNMENT_SCHEMA_VERSION, type Assignment, assignmentIdOf } from '../../agents/assignment.ts';
import { findAgent } from '../../agents/find-agent.ts';
import type { AssignmentStatement } from '../../agents/protocol.ts';
import { signAssignment } from '../../agents/sign-assignment.ts';
import { type AssignedCommand, assignedCommand } from '../../connectors/agent/command.ts';
import { findOperation } from '../../connectors/registry.ts';
import { isoNow } from '../../entry/ports.ts';
import { actionHash } from '../../policy/action-hash.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import { CountersignError } from '../../run/errors.ts';
import { AGENT_HOLDS_MS, AGENT_LEASE, later } from '../../run/lease.ts';
import { sessionStdin } from '../../run-changes/session/session-stdin.ts';
import { counted, METRICS } from '../../telemetry/metrics.ts';
import { ACTION_STEP } from '../../workflow/action-workflow.ts';
import type { Dispatched, Executor } from '../5-executor.ts';
import { watchLease } from '../watch-lease.ts';
import type { ClaimedStep, Worker } from '../worker.ts';
import { endAssignment, isRenewed } from './end-assignment.ts';

/** Others change the row of the selected agent: its syncs, and workers that select it, too. */
const OFFERS_MAX = 5;

interface RunId {
  tenant: string;
  runId: string;
}

/**
 * Offers the step to an agent and does not wait for it. One claim is one assignment: the agent acknowledges it
 * (acknowledge-assignment.ts), renews its lease (sync-agent.ts) and reports the outcome (complete-assignment.ts).
 */
export const agentExecutor: Executor = { lease: AGENT_LEASE, dispatch, isRenewed, endLease: endAssignment };

async function dispatch(worker: Worker, run: RunId, claimed: ClaimedStep): Promise<Dispatched> {
  try {
    return await offerStep(worker, run, claimed);
  } catch (error) {
    // If the offer was stored nevertheless, its acknowledgement is refused, because this lease is settled.
    const { tenant, runId } = run;
    worker.log.warn('an assignment could not be offered', { tenant, runId, step: claimed.step.id, error });
    if (error instanceof CountersignError) {
      return { kind: 'unassigned', because: 'no_agent', reason: error.message, failsWith: error.code };
    }
    const reason = 'the assignment could not be signed or stored; the log of the worker says why';
    return { kind: 'unassigned', because: 'no_agent', reason };
  }
}

async function offerStep(worker: Worker, run: RunId, claimed: ClaimedStep): Promise<Dispatched> {
  const { step } = claimed;
  const command = assignedCommand(findOperation(step.tool)?.parse(step.input));
  const tried = step.unassigned?.agents ?? [];
  for (let offers = 1; offers <= OFFERS_MAX; offers += 1) {
    const at = isoNow(worker.clock);
    const after = worker.lastOffered?.get(run.tenant);
    const search = { at, tried, random: worker.random, ...(after !== undefined && { after }) };
    const found = await findAgent(worker.agents, run.tenant, command, search);
    if (!found.agent) return { kind: 'unassigned', because: 'no_agent', reason: found.reason };
    const { agent } = found;
    worker.lastOffered?.set(run.tenant, agent.agentId);
    const assignment = await newAssignment(worker, { ...run, at }, claimed, command, agent);
    const { assignmentId } = assignment;
    const held = { assignmentId, state: 'offered' as const, until: step.lease.expiresAt };
    if (await worker.agents.offer(assignment, agent, withAssignment(agent, held, at))) {
      worker.telemetry?.record(counted(METRICS.workerAssignments, { status: 'offered' }));
      await Promise.all([syncNow(worker, assignment), watchLease(worker, run, step)]);
      return { kind: 'dispatched' };
    }
  }
  const reason = 'the available agents were assigned other commands at the same moment';
  return { kind: 'unassigned', because: 'no_agent', reason };
}

/** Without the hint, the agent gets the assignment with its next sync. */
async function syncNow({ hints, log }: Worker, { tenant, runId, agentId }: Assignment): Promise<void> {
  try {
    await hints.syncNow(tenant, agentId);
  } catch (error) {
    log.warn('an agent could not be asked to sync', { tenant, runId, agentId, error });
  }
}

async function newAssignment(
  worker: Worker,
  { tenant, runId, at }: RunId & { at: string },
  claimed: ClaimedStep,
  command: AssignedCommand,
  agent: Agent,
): Promise<Assignment> {
  const { step, receipt, traceparent } = claimed;
  const { index: stepIndex, id: stepId, leaseVersion } = step;
  const assignmentId = assignmentIdOf({ runId, stepIndex, leaseVersion });
  const stdin = stepId === ACTION_STEP ? await stdinOf(worker, { tenant, runId }) : undefined;
  const unsigned = statementOf({ tenant, runId, at, assignmentId }, claimed, command, agent);
  const statement = { ...unsigned, ...(stdin !== undefined && { stdin_sha256: sha256Hex(stdin) }) };
  const { envelope, statementHash } = await signAssignment(worker.assignmentSigner, statement);
  return {
    schemaVersion: ASSIGNMENT_SCHEMA_VERSION,
    ...{ assignmentId, tenant, runId, stepIndex, stepId, leaseVersion },
    agentId: agent.agentId,
    agentName: agent.name,
    status: 'offered',
    revision: 1,
    idempotencyKey: receipt.key,
    environment: command.environment,
    profile: command.profile,
    credentials: [...command.credentials],
    ...{ envelope, statementHash, traceparent },
    offeredAt: at,
    acknowledgeBy: step.lease.expiresAt,
  };
}

/** Only commands that are a session read something. They are actions: the only step of their run. */
async function stdinOf({ runs, sessionSecret }: Worker, { tenant, runId }: RunId): Promise<string | undefined> {
  const loaded = await runs.load(tenant, runId);
  return loaded && sessionStdin(sessionSecret, loaded.run, loaded.trigger);
}

/** What the agent verifies before it runs anything: signed for this agent, this lease and a time that has not passed. */
function statementOf(
  { tenant, runId, at, assignmentId }: RunId & { at: string; assignmentId: string },
  { step, receipt, salt }: ClaimedStep,
  { command, environment, profile, segment, capabilities, timeoutSeconds, credentials }: AssignedCommand,
  { agentId }: Agent,
): AssignmentStatement {
  const { governed } = step;
  if (!governed) throw new Error(`the step ${step.id} was claimed without a decision of policy`);
  const { request, decision, approvalId = null } = governed;
  return {
    version: AGENT_PROTOCOL_VERSION,
    tenant,
    agent_id: agentId,
    assignment_id: assignmentId,
    session_id: runId,
    step_number: step.index + 1,
    step_id: step.id,
    lease_version: step.leaseVersion,
    idempotency_key: receipt.key,
    action_hash: actionHash(request.action, step.input, decision.policyHash, request.workflow, salt),
    approval_id: approvalId,
    environment,
    sandbox_profile: profile,
    network_segment: segment ?? null,
    capabilities: [...capabilities],
    command,
    rollback: step.undoes !== undefined,
    timeout_seconds: timeoutSeconds,
    credentials,
    issued_at: at,
    // A lease that is acknowledged lasts longer than this, so a command that starts in time starts under its lease.
    start_before: later(at, AGENT_HOLDS_MS),
  };
}
