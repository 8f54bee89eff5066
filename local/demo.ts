import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DemoHost } from './demo/demo-host.ts';
import { ClaimFailed, Narrator } from './demo/narrator.ts';
import * as story from './demo/story.ts';
import { type Host, startHost } from './host.ts';

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

  const stage = { host, system: new DemoHost(host.url), narrator };
  const first = await story.incidentArrivesTwice(stage);
  await story.runIsFollowed(stage, first);
  const second = await story.workerIsKilled(stage);
  await story.runIsRecovered(stage, second);
  await story.evidenceIsThere(stage, second);
  await story.tenantsAreApart(stage, second);
  await cleanUp();
  console.log(`\n${narrator.claimsHeld} claims checked, all held, in ${seconds()}. See it yourself: npm start`);
} catch (error) {
  if (error instanceof ClaimFailed) narrator.failed(error);
  else console.error(error);
  for (const line of log.slice(-LOG_LINES_SHOWN)) console.error(line);
  await cleanUp();
  process.exitCode = 1;
}
