import { KEYS } from '../demo-host.ts';
import type { Stage } from '../stage.ts';

export async function tenantIsolation({ system, narrator }: Stage, runId: string): Promise<void> {
  narrator.chapter('A tenant sees only its own runs');
  narrator.claim("acme's key shows acme's run", await system.statusForKey(runId, KEYS.olivia), 200);
  narrator.claim(
    "globex's key gets 404, as for a run that does not exist",
    await system.statusForKey(runId, KEYS.globex),
    404,
  );
}
