import { join } from 'node:path';
import type { RunDetail } from '../../../bin/client/api-client.ts';
import { KEYS } from '../demo-host.ts';
import { DISPLAY_IS_DARK, GROUPS, type Incident, VPN_DROPS } from '../incidents.ts';
import type { Stage } from '../stage.ts';

const WORKFLOW = join(import.meta.dirname, '..', 'hand-over.yaml');
const VERSION = 1;

/** A failed run is rolled back, except for a record that somebody else has changed since. */
export async function rolledBack(stage: Stage): Promise<void> {
  const { system, narrator } = stage;
  narrator.chapter('A failed run is rolled back');
  narrator.says('A workflow labels an issue, assigns its incident to Platform, waits for a signal, and then fails.');
  await stage.types('workflow', 'publish', WORKFLOW.slice(process.cwd().length + 1));
  await system.automate('hand-over', 'incident.update', VERSION);

  const undisturbed = await handOver(stage, DISPLAY_IS_DARK, 1);
  narrator.claim('its third write fails, and the first two are undone, newest first', outcomes(undisturbed), [
    'assign reversed',
    'label reversed',
  ]);
  narrator.claim(
    'the incident and the issue are as before',
    [(await system.incident(DISPLAY_IS_DARK.sysId)).group, (await system.labels(1)).includes('incident')],
    ['', false],
  );

  narrator.says('The same again, but while the run waits somebody assigns the incident to Database in ServiceNow.');
  const disturbed = await handOver(stage, VPN_DROPS, 2, () => system.reassign(VPN_DROPS.sysId, GROUPS.database));
  narrator.claim('only the undo of this assignment is refused', outcomes(disturbed), [
    'assign drifted',
    'label reversed',
  ]);
  narrator.claim('the incident stays with Database', (await system.incident(VPN_DROPS.sysId)).group, 'Database');
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
