import { LEASE_DURATION_MS } from '../../../lambdas/run/lease.ts';
import { DUE_TIME_STEP_MS } from '../../../lambdas/run/run-store.ts';
import { KEYS } from '../demo-host.ts';
import { EXPORT_IS_SLOW } from '../incidents.ts';
import { ONCE_EACH, type Stage } from '../stage.ts';

/** After the approval the worker commits three times: it claims `assign`; settles it and claims `note`; settles `note`. */
const COMMIT_AFTER_THE_NOTE = 3;

/** The outcome of an interrupted write is read from the target. The write is not simply repeated. */
export async function workerKilled(stage: Stage): Promise<string> {
  const { system, slack, narrator } = stage;
  narrator.chapter('A worker is killed during a write');
  narrator.says(`${EXPORT_IS_SLOW.number} becomes urgent. After the approval its worker is killed: it has written`);
  narrator.says('the work note, but it has not committed the outcome.');
  const { runId } = await system.report(EXPORT_IS_SLOW, { priority: '2' });
  await slack.waiting(runId);
  await system.breakOnce({
    function: 'WorkerStep',
    service: 'dynamodb',
    operation: 'TransactWriteItems',
    kind: 'crash_before',
    nth: COMMIT_AFTER_THE_NOTE,
  });
  await system.decide(runId, 'approve', KEYS.ben);
  await system.faultInjected();
  const dead = await system.run(runId);
  const receipt = dead.receipts.find(({ stepId }) => stepId === 'note');
  narrator.claim('the work note is in ServiceNow', (await system.incident(EXPORT_IS_SLOW.sysId)).workNotes.length, 1);
  narrator.claim('the receipt of the run is still an intent', receipt?.outcome, 'intent');

  narrator.says('The clock is advanced until the lease has expired, and the sweeper finds the run.');
  await system.letTimePass(LEASE_DURATION_MS + DUE_TIME_STEP_MS);
  narrator.claim('the run succeeded', await stage.follow(runId, dead.head.seq), 'succeeded');
  narrator.claim(
    'every write was made once, including the work note',
    await stage.writesAbout(EXPORT_IS_SLOW),
    ONCE_EACH,
  );
  const { receipts } = await system.run(runId);
  const settled = receipts.find(({ stepId }) => stepId === 'note');
  const recovered = settled?.outcome === 'succeeded' && settled.recovered;
  narrator.claim('the next worker found the note by its mark, and the receipt says recovered', recovered);
  return runId;
}
