import { KEYS } from '../demo-host.ts';
import type { Stage } from '../stage.ts';

/** A session of an AI agent proposes two writes. It can make neither itself. */
export async function aiAgentTriages(stage: Stage): Promise<void> {
  const { system, narrator } = stage;
  narrator.chapter('An AI agent proposes; policy and people decide');
  narrator.says('Somebody labels an issue needs-triage. A session of the simulated AI agent starts, over A2A.');
  const { runId } = await system.deliver('github-issue-needs-triage.json');
  const [label = '', assignee = ''] = await system.until('the session proposes a label and an assignee', async () => {
    const { actions } = await system.ask<{ actions: { actionId: string }[] }>('GET', `/api/v1/runs/${runId}/actions`);
    return actions.length === 2 ? actions.map(({ actionId }) => actionId) : undefined;
  });
  narrator.claim('policy allowed the label', (await system.hasStatus(label, 'succeeded')).approvals, []);
  await system.hasStatus(assignee, 'waiting_approval');
  narrator.claim('the issue has the label, and nobody is assigned yet', await system.issue(12), {
    labels: ['bug'],
    assignees: [],
  });
  narrator.says('Ben approves the assignee that the session proposed.');
  await system.decide(assignee, 'approve', KEYS.ben);
  await system.hasStatus(assignee, 'succeeded');
  narrator.claim('the session completes, and its run succeeds', (await system.sealed(runId)).status, 'succeeded');
  narrator.claim('each proposed write was made once', await system.issue(12), {
    labels: ['bug'],
    assignees: ['ana-ortiz'],
  });
  await stage.types('runs', 'show', runId.slice(0, 12));
}
