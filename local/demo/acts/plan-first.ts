import type { Stage } from '../stage.ts';

/** A plan shows the writes and the approvals of a run before it starts. */
export async function planFirst(stage: Stage): Promise<void> {
  const { system, narrator } = stage;
  narrator.chapter('A plan before the first run');
  narrator.says('An engineer asks what triage-incident would do with a sample incident.');
  const { exitCode, said } = await stage.types(
    'workflow',
    'simulate',
    'workflows/triage-incident.yaml',
    '--event',
    'events/servicenow-incident-p1.json',
  );
  narrator.claim('the plan shows the group before and after', /assignment_group: "" → Database \("7db8c036/.test(said));
  narrator.claim(
    'the plan shows that one person must approve',
    said.includes('needs approval by 1 person for medium risk'),
  );
  narrator.claim('nothing was written anywhere', await system.writes(), []);
  narrator.claim('no run was started', [exitCode, await system.runIds()], [0, []]);
}
