import { setTimeout as pause } from 'node:timers/promises';
import type { Commit } from '../lambdas/run/commit.ts';

interface ShownRun {
  status: string;
  approvals: { actionHash: string; status: string }[];
  commits: Commit[];
}

/**
 * The time from a decision to the start of the approved step, by the times of their commits. People decide after they are
 * notified: a decision before that would add a transition of the execution, which then ends without having waited.
 */
export async function decisionToStepMs(url: string, runIds: string[]): Promise<number[]> {
  const headers = { 'x-api-key': 'local-approver-key' };
  const shown = async (runId: string) => {
    const answer = await fetch(`${url}/api/v1/runs/${runId}`, { headers });
    return (await answer.json()) as ShownRun;
  };
  const times: number[] = [];
  for (const runId of runIds) {
    await until(async () => (await shown(runId)).approvals.at(-1)?.status === 'notified');
    const actionHash = (await shown(runId)).approvals.at(-1)?.actionHash;
    const body = JSON.stringify({ actionHash });
    const decided = await fetch(`${url}/api/v1/runs/${runId}/approve`, { method: 'POST', headers, body });
    if (!decided.ok) throw new Error(`the response to the approval of ${runId} was ${decided.status}`);
    await until(async () => (await shown(runId)).status === 'succeeded');
    const { commits } = await shown(runId);
    const at = (type: string) =>
      Date.parse(commits.find(({ events }) => events.some((e) => e.type === type))?.at ?? '');
    times.push(at('step.claimed') - at('approval.decided'));
  }
  return times;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await pause(5);
}
