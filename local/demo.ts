import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { aiAgentTriages } from './demo/acts/ai-agent-triages.ts';
import { allowedByPolicy } from './demo/acts/allowed-by-policy.ts';
import { approvedInSlack } from './demo/acts/approved-in-slack.ts';
import { edited } from './demo/acts/edited.ts';
import { evidenceVerified } from './demo/acts/evidence-verified.ts';
import { planFirst } from './demo/acts/plan-first.ts';
import { policyReplayed } from './demo/acts/policy-replayed.ts';
import { rejected } from './demo/acts/rejected.ts';
import { rolledBack } from './demo/acts/rolled-back.ts';
import { tenantIsolation } from './demo/acts/tenant-isolation.ts';
import { workerKilled } from './demo/acts/worker-killed.ts';
import { writesStopped } from './demo/acts/writes-stopped.ts';
import { DemoHost } from './demo/demo-host.ts';
import { ClaimFailed, Narrator } from './demo/narrator.ts';
import { SlackPeople } from './demo/slack-people.ts';
import { Stage } from './demo/stage.ts';
import { type Host, startHost } from './host/host.ts';

/** If a claim fails, the last log lines of the functions show why. */
const LOG_LINES_SHOWN = 15;

const startedMs = performance.now();
const seconds = () => `${((performance.now() - startedMs) / 1000).toFixed(1)} s`;
const narrator = new Narrator();
const log: string[] = [];
const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-demo-'));
let starting: Promise<Host> | undefined;

/** Leaves no process and no file, whether the demo succeeds or fails. */
async function cleanUp(): Promise<void> {
  // A host that is still starting already has child processes: wait for its start, then stop it.
  const host = await starting?.catch(() => undefined);
  await host?.stop();
  rmSync(dataFolder, { recursive: true, force: true });
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => cleanUp().finally(() => process.exit(130)));
}

try {
  narrator.chapter('The system starts');
  narrator.says('CDK synthesizes the stack, and this machine hosts its template. You need no AWS account.');
  starting = startHost({ port: 0, dataFolder, log: (source, line) => log.push(`${source} ${line}`) });
  const host = await starting;
  const health = await fetch(`${host.url}/healthz`);
  narrator.claim(`the system is ready at ${host.url} after ${seconds()}`, health.status, 200);

  const system = new DemoHost(host.url);
  const stage = new Stage({ system, slack: new SlackPeople(system), narrator, folder: dataFolder });
  await planFirst(stage);
  await allowedByPolicy(stage);
  const approved = await approvedInSlack(stage);
  await rejected(stage);
  await edited(stage);
  await aiAgentTriages(stage);
  await workerKilled(stage);
  await rolledBack(stage);
  await writesStopped(stage);
  await evidenceVerified(stage, approved);
  await policyReplayed(stage);
  await tenantIsolation(stage, approved);
  await cleanUp();
  console.log(`\n${narrator.claimsHeld} claims checked in ${seconds()}, and all are true. Try it yourself: npm start`);
} catch (error) {
  if (error instanceof ClaimFailed) narrator.failed(error);
  else console.error(error);
  for (const line of log.slice(-LOG_LINES_SHOWN)) console.error(line);
  await cleanUp();
  process.exitCode = 1;
}
