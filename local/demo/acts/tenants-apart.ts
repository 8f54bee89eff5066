import { KEYS } from '../demo-host.ts';
import type { Stage } from '../stage.ts';

export async function tenantsApart({ system, narrator }: Stage, runId: string): Promise<void> {
  narrator.chapter('Tenants are kept apart');
  narrator.claim("acme's key shows acme's run", await system.statusForKey(runId, KEYS.olivia), 200);
  narrator.claim(
    "globex's key gets 404 for it, as if it never was",
    await system.statusForKey(runId, KEYS.globex),
    404,
  );
}
