import type { RunDetail } from '../../../bin/client/api-client.ts';
import { CHANGES_SEEN_WITHIN_MS } from '../../../lambdas/pipeline/cached-definitions.ts';
import type { Stage } from '../stage.ts';

const ISSUES = Array.from({ length: 20 }, (_, index) => 100 + index);

/** The kill switch: what would write waits, and continues when writes are on again. */
export async function writesStopped(stage: Stage): Promise<void> {
  const { system, narrator } = stage;
  narrator.chapter('All writes are stopped, and continue');
  narrator.says(
    `${ISSUES.length} issues are opened, each with one label to add. After half of them, an owner switches writes off.`,
  );
  narrator.says('Functions notice it within a minute; the clock is advanced.');
  const half = ISSUES.length / 2;
  const begun = await Promise.all(ISSUES.slice(0, half).map((issue) => system.openIssue(issue)));
  await stage.types('settings', 'set', 'features.writes.enabled=false');
  await system.letTimePass(CHANGES_SEEN_WITHIN_MS + 1);
  const held = await Promise.all(ISSUES.slice(half).map((issue) => system.openIssue(issue)));
  const waiting = await Promise.all(held.map((runId) => system.hasStatus(runId, 'failed_retryable')));
  narrator.claim('the later runs wait before their write, and say why', whyHeld(waiting), ['WRITES_DISABLED']);
  const before = (await system.writes()).length;
  for (let minute = 0; minute < 3; minute += 1) await system.letTimePass(CHANGES_SEEN_WITHIN_MS + 1);
  narrator.claim('nothing is written while they wait', (await system.writes()).length - before, 0);

  narrator.says('Writes are on again. The sweeper sends the runs that waited.');
  await stage.types('settings', 'set', 'features.writes.enabled=true');
  for (let minute = 0; minute < 2; minute += 1) await system.letTimePass(CHANGES_SEEN_WITHIN_MS + 1);
  const ended = await Promise.all([...begun, ...held].map((runId) => system.hasStatus(runId, 'succeeded')));
  narrator.claim(`all ${ISSUES.length} runs succeeded`, ended.length, ISSUES.length);
  const writes = await system.writes();
  const labeled = (issue: number) => writes.filter(({ path }) => path.endsWith(`/issues/${issue}/labels`)).length;
  narrator.claim('each label was added once', [...new Set(ISSUES.map(labeled))], [1]);
}

const whyHeld = (runs: readonly RunDetail[]): string[] => [
  ...new Set(
    runs.flatMap(({ steps }) => steps.flatMap((step) => (step.status === 'failed_retryable' ? step.error.code : []))),
  ),
];
