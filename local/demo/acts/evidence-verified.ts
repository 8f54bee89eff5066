import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import type { Stage } from '../stage.ts';

/** An auditor verifies a bundle offline, with the public keys only. */
export async function evidenceVerified(stage: Stage, runId: string): Promise<void> {
  const { system, narrator, folder } = stage;
  const [bundle, keys] = [join(folder, 'run.json'), join(folder, 'keys.json')];
  narrator.chapter('Anyone can verify the evidence');
  narrator.says('An auditor downloads the bundle of the first incident, and the public keys of the stage.');
  const { evidence } = await system.sealed(runId);
  await stage.types('evidence', 'get', runId.slice(0, 12), '--out', bundle);
  writeFileSync(keys, JSON.stringify(await system.ask('GET', '/.well-known/countersign-keys.json')));
  narrator.claim('the bundle has the hash that the run shows', sha256Hex(readFileSync(bundle)), evidence?.sha256);
  const verified = await stage.types('evidence', 'verify', bundle, '--key', keys);
  narrator.claim('the offline verification succeeds', verified.exitCode, 0);

  narrator.says('Somebody removes one event from the second commit.');
  const document = JSON.parse(readFileSync(bundle, 'utf8'));
  document.commits[1].events.pop();
  writeFileSync(bundle, JSON.stringify(document));
  const forged = await stage.types('evidence', 'verify', bundle, '--key', keys);
  narrator.claim(
    'the verification fails and names commit 2',
    [forged.exitCode, /commit 2\b/.test(forged.said)],
    [1, true],
  );
}
