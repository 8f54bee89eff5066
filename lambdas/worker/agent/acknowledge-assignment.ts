import type * as z from 'zod';
import type { AcknowledgeAssignment, AgentCaller } from '../../agents/agent-requests.ts';
import type { Assignment } from '../../agents/assignment.ts';
import type { AckRequest, AckResponse } from '../../agents/protocol.ts';
import type { ErrorCode } from '../../run/errors.ts';
import { AGENT_HOLDS_MS, later } from '../../run/lease.ts';
import { isTerminal } from '../../run/run.ts';
import { agentsAreEnabled } from '../../run/settings/caps.ts';
import { isOn, WRITES_ARE_OFF } from '../../run/settings/flags.ts';
import type { AssignedStep, RunningStep } from '../../run/step.ts';
import { draftAndCommit, loadState } from '../../run-changes/commit-run.ts';
import { concludeRun } from '../../run-changes/conclusion/conclude-run.ts';
import type { RunState } from '../../run-changes/run-changer.ts';
import { sessionStdin } from '../../run-changes/session/session-stdin.ts';
import { reportOutcome } from '../6-report-outcome.ts';
import { heldBack } from '../held-back.ts';
import { type AgentPorts, assignmentOf, freeSlot, holdSlot } from './agent-ports.ts';

/** Others may change the run meanwhile: each try works on the newer state. */
const TRIES_MAX = 8;

type Ack = z.infer<typeof AckResponse>;
type Refusal = Extract<z.infer<typeof AckRequest>, { accepted: false }>;

/**
 * An agent takes or refuses an assignment. Only `confirmed` lets it run the command: exactly one of this commit and the
 * withdrawal of the assignment is made, because both change the step under the same lease. The same process may ask again;
 * another process with the same identity may not run the command, too.
 */
export const acknowledgeAssignment: AcknowledgeAssignment<AgentPorts> = async (ports, caller, request) => {
  const assignment = await assignmentOf(ports, caller, request);
  if (!request.accepted) return refuse(ports, caller, assignment, request);
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const state = await loadState(ports, assignment);
    const step = state?.steps.get(assignment.stepIndex);
    if (!state || !step) break;
    const held = isHeld(state, assignment) ? step : undefined;
    if (held?.status !== 'running') break;
    if (held.assigned) return withStdin(ports, state, confirmAgain(held, held.assigned, caller));
    if (!isOn(state.settings, 'writes.enabled')) return holdBack(ports, caller, assignment);
    const why = whyNotNow(state);
    if (why !== undefined) return { confirmed: false, expires_at: null, reason: why };
    const expiresAt = await acknowledge(ports, caller, assignment, state, held);
    if (expiresAt !== undefined) return withStdin(ports, state, { confirmed: true, expires_at: expiresAt });
  }
  return { confirmed: false, expires_at: null, reason: 'the assignment was withdrawn' };
};

/** Only the process that may run the command gets it: it contains the token of a session. */
async function withStdin({ sessionSecret }: AgentPorts, { run, trigger }: RunState, ack: Ack): Promise<Ack> {
  const stdin = ack.confirmed ? await sessionStdin(sessionSecret, run, trigger) : undefined;
  return stdin === undefined ? ack : { ...ack, stdin };
}

function isHeld({ run, steps }: RunState, { stepIndex, leaseVersion }: Assignment): boolean {
  const step = steps.get(stepIndex);
  return !isTerminal(run) && step?.status === 'running' && step.leaseVersion === leaseVersion;
}

/** The response to the first acknowledgement was lost. */
function confirmAgain({ lease }: RunningStep, assigned: AssignedStep, { agent, bootId }: AgentCaller): Ack {
  if (assigned.agentId === agent.agentId && assigned.bootId === bootId) {
    return { confirmed: true, expires_at: lease.expiresAt };
  }
  return { confirmed: false, expires_at: null, reason: 'another process of this agent has acknowledged it' };
}

/** The assignment is withdrawn when its lease ends. */
function whyNotNow({ run, settings }: RunState): string | undefined {
  if (run.stopRequest) return 'the run is being stopped';
  return agentsAreEnabled(settings) ? undefined : 'agents are switched off (worker_orchestration.enabled)';
}

/** Writes are switched off: the command does not run, and its step waits. A command may write, so each one counts as a write. */
async function holdBack(ports: AgentPorts, { agent }: AgentCaller, assignment: Assignment): Promise<Ack> {
  const { tenant, runId, stepIndex, leaseVersion, assignmentId } = assignment;
  await reportOutcome(ports, {
    ...{ tenant, runId, stepIndex, leaseVersion },
    outcome: heldBack(WRITES_ARE_OFF),
    assignment: { read: assignment, ending: { status: 'withdrawn', reason: WRITES_ARE_OFF } },
  });
  await freeSlot(ports, agent, assignmentId);
  return { confirmed: false, expires_at: null, reason: 'writes are switched off' };
}

/** Returns the end of the lease, or undefined if another commit was faster. */
async function acknowledge(
  ports: AgentPorts,
  { agent, bootId }: AgentCaller,
  assignment: Assignment,
  state: RunState,
  step: RunningStep,
): Promise<string | undefined> {
  const { assignmentId, agentId, agentName, profile, environment, statementHash, leaseVersion } = assignment;
  let expiresAt = '';
  const drafted = await draftAndCommit(ports, state, async (draft, from) => {
    expiresAt = later(draft.at, AGENT_HOLDS_MS);
    const assigned = { agentId, agentName, assignmentId, profile, statementHash, bootId, at: draft.at };
    draft
      .put({ ...step, assigned, updatedAt: draft.at, lease: { ...step.lease, expiresAt } })
      .changeAssignment(assignment, { status: 'acknowledged', acknowledgedAt: draft.at, bootId })
      .record({
        type: 'step.assigned',
        ...{ step: step.id, index: step.index, agent: agentId, assignment: assignmentId, leaseVersion },
        ...{ profile, environment, statementHash },
      });
    return concludeRun(ports.runs, from, draft);
  });
  if (drafted.outcome !== 'committed') return undefined;
  await holdSlot(ports, agent, { assignmentId, state: 'acknowledged', until: expiresAt });
  return expiresAt;
}

/** A violation fails the step at once: another agent should not be asked to run what a profile forbids. */
const FAILS_WITH: Partial<Record<Refusal['refusal'], ErrorCode>> = { violation: 'COMMAND_NOT_ALLOWED' };

async function refuse(
  ports: AgentPorts,
  { agent }: AgentCaller,
  assignment: Assignment,
  { refusal, reason }: Refusal,
): Promise<Ack> {
  const { tenant, runId, stepIndex, leaseVersion, agentId, agentName, assignmentId, status } = assignment;
  const why = `agent ${agentName} refused it (${refusal}): ${reason}`;
  const failsWith = FAILS_WITH[refusal];
  if (status === 'offered') {
    const outcome = { kind: 'unassigned', because: 'refused', reason: why, agentId, assignmentId } as const;
    await reportOutcome(ports, {
      ...{ tenant, runId, stepIndex, leaseVersion },
      outcome: { ...outcome, ...(failsWith && { failsWith }) },
      assignment: { read: assignment, ending: { status: 'refused', reason: why } },
    });
  }
  await freeSlot(ports, agent, assignmentId);
  return { confirmed: false, expires_at: null, reason: why };
}
