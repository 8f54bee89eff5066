import type { Step, StepFacts } from '../run/step.ts';

/** For the next command after one whose agent was lost: another agent is preferred. */
export function lostAgentIn(step: Step): Pick<StepFacts, 'unassigned'> {
  const isLost = 'error' in step && step.error.code === 'AGENT_LOST';
  return isLost && step.assigned ? { unassigned: { count: 0, agents: [step.assigned.agentId] } } : {};
}
