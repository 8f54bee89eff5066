import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allowedByPolicy } from './demo/acts/allowed-by-policy.ts';
import { approvedInSlack } from './demo/acts/approved-in-slack.ts';
import { edited } from './demo/acts/edited.ts';
import { evidenceVerified } from './demo/acts/evidence-verified.ts';
import { planFirst } from './demo/acts/plan-first.ts';
import { policyReplayed } from './demo/acts/policy-replayed.ts';
import { rejected } from './demo/acts/rejected.ts';
import { rolledBack } from './demo/acts/rolled-back.ts';
import { tenantsApart } from './demo/acts/tenants-apart.ts';
import { workerKilled } from './demo/acts/worker-killed.ts';
import { DemoHost } from './demo/demo-host.ts';
import { ClaimFailed, Narrator } from './demo/narrator.ts';
import { SlackPeople } from './demo/slack-people.ts';
import { Stage } from './demo/stage.ts';
import { type Host, startHost } from './host/host.ts';

/** When the story breaks off, the last of what the functions said helps to see why. */
const LOG_LINES_SHOWN = 15;

const startedMs = performance.now();
const seconds = () => `${((performance.now() - startedMs) / 1000).toFixed(1)} s`;
const narrator = new Narrator();
const log: string[] = [];
const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-demo-'));
let starting: Promise<Host> | undefined;

/** Nothing is left running or on disk, however the story ends. */
async function cleanUp(): Promise<void> {
  // A host that is still starting has children already: it is let finish, then stopped.
  const host = await starting?.catch(() => undefined);
  await host?.stop();
  rmSync(dataFolder, { recursive: true, force: true });
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => cleanUp().finally(() => process.exit(130)));
}

try {
  narrator.chapter('The system starts');
  narrator.says('The stack is synthesized, and its template hosted on this machine: no AWS account needed.');
  starting = startHost({ port: 0, dataFolder, log: (source, line) => log.push(`${source} ${line}`) });
  const host = await starting;
  const health = await fetch(`${host.url}/healthz`);
  narrator.claim(`it answers at ${host.url} after ${seconds()}`, health.status, 200);

  const system = new DemoHost(host.url);
  const stage = new Stage({ system, slack: new SlackPeople(system), narrator, folder: dataFolder });
  await planFirst(stage);
  await allowedByPolicy(stage);
  const approved = await approvedInSlack(stage);
  await rejected(stage);
  await edited(stage);
  await workerKilled(stage);
  await rolledBack(stage);
  await evidenceVerified(stage, approved);
  await policyReplayed(stage);
  await tenantsApart(stage, approved);
  await cleanUp();
  console.log(`\n${narrator.claimsHeld} claims checked, all held, in ${seconds()}. See it yourself: npm start`);
} catch (error) {
  if (error instanceof ClaimFailed) narrator.failed(error);
  else console.error(error);
  for (const line of log.slice(-LOG_LINES_SHOWN)) console.error(line);
  await cleanUp();
  process.exitCode = 1;
}
