import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Stage } from '../stage.ts';

const TRUSTING = `@id("trusting")
@reason("why bother people")
permit (principal, action == Action::"execute", resource)
when { resource.risk == Risk::"medium" };
`;

/** A change of policy is tried on what was decided before it is made. */
export async function policyReplayed(stage: Stage): Promise<void> {
  const { system, narrator, folder } = stage;
  const policies = join(folder, 'trusting');
  mkdirSync(policies);
  writeFileSync(join(policies, 'trusting.cedar'), TRUSTING);
  narrator.chapter('A change of policy is tried on the past first');
  narrator.says('Somebody proposes to trust every write of medium risk. What would have been different today?');
  const { exitCode, said } = await stage.types('policy', 'replay', '--policies', policies);
  const loosening = said.split('\n').filter((line) => line.startsWith('loosens'));
  const asked = (await Promise.all((await system.runIds()).map((runId) => system.run(runId)))).flatMap(
    ({ approvals }) => approvals,
  );
  narrator.claim(
    'every write that people were asked about would have happened without them',
    loosening.length,
    asked.length,
  );
  narrator.claim('so the command fails, until somebody has looked and says --acknowledge', exitCode, 1);
}
