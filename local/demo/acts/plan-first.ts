import type { Stage } from '../stage.ts';

/** Before anything runs: what a run would write, and who would be asked. */
export async function planFirst(stage: Stage): Promise<void> {
  const { system, narrator } = stage;
  narrator.chapter('A plan, before anything happens');
  narrator.says('A platform engineer asks what triage-incident would do about a sample incident.');
  const { exitCode, said } = await stage.types(
    'workflow',
    'simulate',
    'workflows/triage-incident.yaml',
    '--event',
    'events/servicenow-incident-p1.json',
  );
  narrator.claim('the plan shows the group before and after', /assignment_group: "" → "7db8c036…?"/.test(said));
  narrator.claim('and that one person must agree to it', said.includes('needs approval by 1 person for medium risk'));
  narrator.claim('nothing was written anywhere', await system.writes(), []);
  narrator.claim('and no run was started', [exitCode, await system.runIds()], [0, []]);
}
