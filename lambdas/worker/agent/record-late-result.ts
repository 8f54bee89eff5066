import type { Assignment, CommandResult } from '../../agents/assignment.ts';
import { CountersignError } from '../../run/errors.ts';
import { isTerminal } from '../../run/run.ts';
import { draftAndCommit, loadState } from '../../run-changes/commit-run.ts';
import { concludeRun } from '../../run-changes/conclusion/conclude-run.ts';
import type { AgentPorts } from './agent-ports.ts';

const TRIES_MAX = 8;

/** A result that settles nothing. If the run is active, it is recorded once. */
export async function recordLateResult(
  ports: AgentPorts,
  read: Assignment,
  result: CommandResult,
): Promise<'duplicate' | 'lease_lost'> {
  const { tenant, runId, assignmentId, agentId } = read;
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const now = await ports.agents.assignment(tenant, read);
    if (now?.status === 'completed') return 'duplicate';
    if (!now || now.lateResult) return 'lease_lost';
    ports.log.warn('an agent reported a result too late', { tenant, runId, assignmentId, agentId, was: now.status });
    const state = await loadState(ports, read).catch(ifMissing);
    if (!state || isTerminal(state.run)) return 'lease_lost';
    const drafted = await draftAndCommit(ports, state, async (draft, from) => {
      const { stepId: step, stepIndex: index, leaseVersion } = now;
      const { status, exitCode, output } = result;
      draft.changeAssignment(now, { lateResult: { ...result, at: draft.at } }).record({
        type: 'step.late_result',
        ...{ step, index, agent: agentId, assignment: assignmentId, leaseVersion },
        ...{ status, exitCode, outputSha256: output.sha256 },
      });
      return concludeRun(ports.runs, from, draft);
    });
    if (drafted.outcome === 'committed') return 'lease_lost';
  }
  return 'lease_lost';
}

/** The workflow of the run is gone: its worker ends it. */
function ifMissing(error: unknown): undefined {
  if (!(error instanceof CountersignError)) throw error;
  return undefined;
}
