import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Stage } from '../stage.ts';

const TRUSTING = `@id("trusting")
@reason("trust medium risk")
permit (principal, action == Action::"execute", resource)
when { resource.risk == Risk::"medium" };
`;

/** A new policy is replayed on past decisions before it is used. */
export async function policyReplayed(stage: Stage): Promise<void> {
  const { system, narrator, folder } = stage;
  const policies = join(folder, 'trusting');
  mkdirSync(policies);
  writeFileSync(join(policies, 'trusting.cedar'), TRUSTING);
  narrator.chapter('A policy change is replayed on past decisions');
  narrator.says(
    "Somebody proposes to allow every write with medium risk. Which of today's decisions would be different?",
  );
  const { exitCode, said } = await stage.types('policy', 'replay', '--policies', policies);
  const loosening = said.split('\n').filter((line) => line.startsWith('loosens'));
  const asked = (await Promise.all((await system.runIds()).map((runId) => system.run(runId)))).flatMap(
    ({ approvals }) => approvals,
  );
  narrator.claim('every write that needed an approval would have needed none', loosening.length, asked.length);
  narrator.claim('so the command fails unless somebody adds --acknowledge', exitCode, 1);
}
