import { KEYS } from '../demo-host.ts';
import { BUILDS_QUEUE, GROUPS } from '../incidents.ts';
import { MAKER_REFUSED, SLACK } from '../slack-people.ts';
import type { Stage } from '../stage.ts';

/** A person edits a proposed write, and another person approves the edit. */
export async function edited(stage: Stage): Promise<void> {
  const { system, slack, narrator } = stage;
  narrator.chapter('Another person approves an edit');
  narrator.says(
    `${BUILDS_QUEUE.number} arrives for Platform. Ben thinks that it belongs to the network team, and presses Edit.`,
  );
  const { runId } = await system.report(BUILDS_QUEUE);
  const proposed = await slack.waiting(runId);
  await slack.press(SLACK.ben, proposed, 'edit');
  await slack.fillIn(SLACK.ben, GROUPS.network);
  await slack.cardShows(proposed, GROUPS.network);
  await slack.press(SLACK.ben, proposed, 'approve');
  narrator.shows(`Slack, to Ben only: ${await slack.privateMessage(SLACK.ben)}`);
  narrator.claim(
    'Ben is now a maker of the write, so he cannot approve it',
    await slack.privateMessage(SLACK.ben),
    MAKER_REFUSED,
  );
  const olivia = await stage.types('approvals', 'approve', runId.slice(0, 12), '--yes', '--key', KEYS.olivia);
  narrator.claim('Olivia sees his edit and approves it', [olivia.exitCode, olivia.said.includes('EDITS')], [0, true]);
  narrator.claim('the run succeeded', await system.follow(runId, () => {}), 'succeeded');
  const { group, workNotes } = await system.incident(BUILDS_QUEUE.sysId);
  narrator.claim('the incident has the group that Ben chose', group, 'Network Operations');
  narrator.claim(
    'its work note names this group',
    workNotes.map((note) => note.includes('Routed to Network Operations')),
    [true],
  );
  const [approval] = (await system.run(runId)).approvals;
  narrator.claim('the approval is for the edited write only', approval?.actionHash !== proposed.actionHash);
}
