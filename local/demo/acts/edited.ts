import { KEYS } from '../demo-host.ts';
import { BUILDS_QUEUE, GROUPS } from '../incidents.ts';
import { MAKERS_ARE_TOLD, SLACK } from '../slack-people.ts';
import type { Stage } from '../stage.ts';

/** What is proposed may be mended, and then it is somebody else's to approve. */
export async function edited(stage: Stage): Promise<void> {
  const { system, slack, narrator } = stage;
  narrator.chapter('An edit is approved by others, and that is what happens');
  narrator.says(`${BUILDS_QUEUE.number} comes in, for Platform. Ben thinks it is the network: he presses Edit.`);
  const { runId } = await system.report(BUILDS_QUEUE);
  const proposed = await slack.waiting(runId);
  await slack.press(SLACK.ben, proposed, 'edit');
  await slack.fillIn(SLACK.ben, GROUPS.network);
  await slack.cardShows(proposed, GROUPS.network);
  await slack.press(SLACK.ben, proposed, 'approve');
  narrator.shows(`Slack, to Ben only: ${await slack.toldOnly(SLACK.ben)}`);
  narrator.claim(
    'whoever edits has a hand in it: Ben may not approve any more',
    await slack.toldOnly(SLACK.ben),
    MAKERS_ARE_TOLD,
  );
  const olivia = await stage.types('approvals', 'approve', runId.slice(0, 12), '--yes', '--key', KEYS.olivia);
  narrator.claim('Olivia sees his edit and approves it', [olivia.exitCode, olivia.said.includes('EDITS')], [0, true]);
  narrator.claim('the run succeeded', await system.follow(runId, () => {}), 'succeeded');
  const { group, workNotes } = await system.incident(BUILDS_QUEUE.sysId);
  narrator.claim('the incident is with the group Ben chose', group, 'Network Operations');
  narrator.claim(
    'and its note says so',
    workNotes.map((note) => note.includes('Routed to Network Operations')),
    [true],
  );
  const [approval] = (await system.run(runId)).approvals;
  narrator.claim('the approval was for the edited write, and no other', approval?.actionHash !== proposed.actionHash);
}
