import type * as z from 'zod';
import type { AgentCaller, CompleteAssignment } from '../../agents/agent-requests.ts';
import type { Assignment, CommandResult } from '../../agents/assignment.ts';
import type { CompleteRequest, CompleteResponse } from '../../agents/protocol.ts';
import { CountersignError, recordedError } from '../../run/errors.ts';
import type { CommandRecord } from '../../run/receipt.ts';
import type { RunningStep } from '../../run/step.ts';
import type { StepOutcome } from '../5-executor.ts';
import { reportOutcome } from '../6-report-outcome.ts';
import { type AgentPorts, assignmentOf, freeSlot } from './agent-ports.ts';
import { HOW_FAR_IS_UNKNOWN, lostOutcome, reversalOf } from './end-assignment.ts';
import { recordLateResult } from './record-late-result.ts';

/**
 * An agent reports the end of a command. The result settles the step under the lease of its assignment. The same result
 * again changes nothing; a result under a lease that has ended is recorded and changes nothing.
 */
export const completeAssignment: CompleteAssignment<AgentPorts> = async (ports, caller, request) => {
  const assignment = await assignmentOf(ports, caller, request);
  const { tenant, runId, stepIndex, leaseVersion, assignmentId } = assignment;
  assertBelongsTogether(assignment, request);
  if (request.status === 'unknown') return reportLost(ports, caller, assignment);
  const result = resultOf({ ...request, status: request.status });
  // A command that nobody confirmed must not have run: its result settles nothing.
  if (assignment.status === 'acknowledged') {
    const reported = await reportOutcome(ports, {
      ...{ tenant, runId, stepIndex, leaseVersion },
      outcome: ({ step }) => outcomeOf(step, assignment, result),
      assignment: { read: assignment, ending: { status: 'completed', result } },
    });
    if (reported.result === 'accepted') {
      await freeSlot(ports, caller.agent, assignmentId);
      return { result: 'accepted' };
    }
  }
  return { result: await recordLateResult(ports, assignment, result) };
};

/** The result becomes evidence, so it cannot claim what was not assigned. */
function assertBelongsTogether(
  { assignmentId, idempotencyKey, profile, credentials }: Assignment,
  { idempotency_key, sandbox_profile, credentials_used }: z.infer<typeof CompleteRequest>,
): void {
  if (idempotencyKey !== idempotency_key) {
    throw new CountersignError(
      'IDEMPOTENCY_CONFLICT',
      `the result of ${assignmentId} names another idempotency key than its assignment`,
    );
  }
  if (profile !== sandbox_profile) {
    throw new CountersignError(
      'INPUT_INVALID',
      `${assignmentId} was assigned with the profile ${profile}, but its result names ${sandbox_profile}`,
    );
  }
  const wrong = credentials_used.find(({ id }) => !credentials.includes(id));
  if (wrong) {
    throw new CountersignError(
      'INPUT_INVALID',
      `the result of ${assignmentId} names the credential ${wrong.id}, which was not assigned`,
    );
  }
}

/** The agent was restarted while the command ran. That is the end of the lease, known before its time. */
async function reportLost(
  ports: AgentPorts,
  { agent }: AgentCaller,
  assignment: Assignment,
): Promise<z.infer<typeof CompleteResponse>> {
  const { tenant, runId, stepIndex, leaseVersion, assignmentId, agentName } = assignment;
  if (assignment.status === 'completed' || assignment.status === 'lost') return { result: 'duplicate' };
  if (assignment.status !== 'acknowledged') return { result: 'lease_lost' };
  const reason = `agent ${agentName} was restarted while the command ran; ${HOW_FAR_IS_UNKNOWN}`;
  const { result } = await reportOutcome(ports, {
    ...{ tenant, runId, stepIndex, leaseVersion },
    outcome: ({ step }) => lostOutcome(step, reason),
    assignment: { read: assignment, ending: { status: 'lost', reason } },
  });
  if (result !== 'accepted') return { result: 'lease_lost' };
  await freeSlot(ports, agent, assignmentId);
  return { result: 'accepted' };
}

type EndedRequest = z.infer<typeof CompleteRequest> & { status: CommandResult['status'] };

function resultOf(request: EndedRequest): CommandResult {
  const { status, exit_code: exitCode, signal, execution_ms: durationMs, sandbox_profile: profile } = request;
  const { output, violations, reason } = request;
  return {
    // A command succeeds with exit code 0 only.
    status: status === 'succeeded' && exitCode !== 0 ? 'failed' : status,
    ...{ exitCode, signal, durationMs, profile, violations },
    output: {
      ...{ sha256: output.sha256, bytes: output.bytes, chunks: output.chunks },
      droppedBytes: output.dropped_bytes,
    },
    credentialsUsed: request.credentials_used.map((used) => ({
      ...{ id: used.id, source: used.source, revoked: used.revoked },
      ...{ auditId: used.audit_id, ttlSeconds: used.ttl_seconds, fetchMs: used.fetch_ms },
    })),
    ...(reason !== undefined && { reason }),
  };
}

function outcomeOf(step: RunningStep, assignment: Assignment, result: CommandResult): StepOutcome {
  const { agentId, agentName, assignmentId } = assignment;
  const { status, reason } = result;
  if (status === 'never_started') {
    const why = `agent ${agentName} could not start the command: ${reason ?? 'it gave no reason'}`;
    return { kind: 'unassigned', because: 'never_started', reason: why, agentId, assignmentId };
  }
  const command = commandRecord(assignment, result);
  const reversal = reversalOf(step);
  if (status !== 'succeeded') {
    const error = recordedError(status === 'canceled' ? 'COMMAND_CANCELED' : 'COMMAND_FAILED', failure(result));
    return { kind: 'refused', error, retryable: status !== 'canceled', command, reversal };
  }
  const { exitCode, durationMs, profile, output } = command;
  const { sha256: outputSha256, bytes: outputBytes, droppedBytes: outputDroppedBytes } = output;
  return {
    kind: 'done',
    result: {
      output: {
        ...{ exitCode, durationMs, agent: agentId, profile },
        ...{ outputSha256, outputBytes, outputDroppedBytes },
      },
      reversal,
      response: { exitCode: exitCode ?? 0, durationMs, agent: agentId, profile, outputSha256, outputBytes },
      command,
    },
  };
}

function failure({ status, exitCode, signal, violations, reason }: CommandResult): string {
  const how =
    status === 'timed_out'
      ? 'the command was stopped at its time limit'
      : status === 'canceled'
        ? 'the command was stopped'
        : `the command ended with ${exitCode === null ? `signal ${signal ?? 'unknown'}` : `exit code ${exitCode}`}`;
  const against = violations.length > 0 ? `; it violated ${violations.join(', ')}` : '';
  return `${how}${against}${reason === undefined ? '' : `: ${reason}`}; see its output`;
}

function commandRecord(
  { agentId, assignmentId, statementHash, environment }: Assignment,
  { status, exitCode, signal, durationMs, profile, output, credentialsUsed, violations }: CommandResult,
): CommandRecord {
  return {
    ...{ agentId, assignmentId, statementHash, profile, environment, status, exitCode, signal, durationMs },
    output: { sha256: output.sha256, bytes: output.bytes, droppedBytes: output.droppedBytes },
    credentialsUsed: credentialsUsed.map(({ fetchMs: _metric, ...used }) => used),
    violations,
  };
}
