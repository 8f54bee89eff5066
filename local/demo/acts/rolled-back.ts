import { join } from 'node:path';
import type { RunDetail } from '../../../bin/client/api-client.ts';
import { KEYS } from '../demo-host.ts';
import { DISPLAY_IS_DARK, GROUPS, type Incident, VPN_DROPS } from '../incidents.ts';
import type { Stage } from '../stage.ts';

const WORKFLOW = join(import.meta.dirname, '..', 'hand-over.yaml');
const VERSION = 1;

/** What cannot be finished is taken back, and what somebody else has changed since is left to them. */
export async function rolledBack(stage: Stage): Promise<void> {
  const { system, narrator } = stage;
  narrator.chapter('What cannot be finished is taken back');
  narrator.says('A workflow labels an issue, gives its incident to Platform, waits for a signal, and then fails.');
  await stage.types('workflow', 'publish', WORKFLOW.slice(process.cwd().length + 1));
  await system.automate('hand-over', 'incident.update', VERSION);

  const undisturbed = await handOver(stage, DISPLAY_IS_DARK, 1);
  narrator.claim('its third write fails, and both others are taken back, newest first', outcomes(undisturbed), [
    'assign reversed',
    'label reversed',
  ]);
  narrator.claim(
    'the outside is as it was',
    [(await system.incident(DISPLAY_IS_DARK.sysId)).group, (await system.labels(1)).includes('incident')],
    ['', false],
  );

  narrator.says('Once more, but while it waits somebody at ServiceNow gives the incident to Database.');
  const disturbed = await handOver(stage, VPN_DROPS, 2, () => system.reassign(VPN_DROPS.sysId, GROUPS.database));
  narrator.claim('that undo is refused, and only that one', outcomes(disturbed), ['assign drifted', 'label reversed']);
  narrator.claim('what somebody else decided stays', (await system.incident(VPN_DROPS.sysId)).group, 'Database');
}

async function handOver(
  stage: Stage,
  incident: Incident,
  issue: number,
  meanwhile: () => Promise<void> = async () => {},
): Promise<RunDetail> {
  const { system, slack } = stage;
  const { runId } = await system.report(incident, { operation: 'update', u_issue: String(issue) });
  await slack.waiting(runId);
  await system.decide(runId, 'approve', KEYS.ben);
  const { head } = await system.hasStatus(runId, 'waiting_external');
  await meanwhile();
  await system.ask('POST', `/api/v1/runs/${runId}/signal`, { event: 'taken-over' });
  await stage.follow(runId, head.seq);
  return system.run(runId);
}

const outcomes = ({ compensation }: RunDetail) => compensation.map(({ step, outcome }) => `${step} ${outcome}`);
