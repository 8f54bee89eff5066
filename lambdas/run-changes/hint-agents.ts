import type { AgentHints } from '../agents/agent-registry.ts';
import type { Log } from '../entry/ports.ts';
import type { RunState } from './run-changer.ts';

/** Lets the agents that run commands of this run sync now: they learn that it is being stopped. */
export async function hintAgents(
  { hints, log }: { hints?: AgentHints | undefined; log: Log },
  { run: { tenant, runId }, steps }: RunState,
): Promise<void> {
  const agents = [...steps.values()].flatMap((step) =>
    step.status === 'running' && step.assigned ? [step.assigned.agentId] : [],
  );
  for (const agentId of new Set(agents)) {
    try {
      await hints?.syncNow(tenant, agentId);
    } catch (error) {
      // It learns it with its next sync.
      log.warn('an agent could not be asked to sync', { tenant, runId, agentId, error });
    }
  }
}
