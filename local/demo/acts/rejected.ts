import { VPN_DROPS } from '../incidents.ts';
import { SLACK } from '../slack-people.ts';
import { NOTHING, type Stage } from '../stage.ts';

/** A rejection ends the run. */
export async function rejected(stage: Stage): Promise<void> {
  const { system, slack, narrator } = stage;
  narrator.chapter('A rejected write is not made');
  narrator.says(`${VPN_DROPS.number} arrives. Ben presses Reject, and Slack asks him for the reason.`);
  const { runId } = await system.report(VPN_DROPS);
  const approval = await slack.waiting(runId);
  await slack.press(SLACK.ben, approval, 'reject');
  await slack.fillIn(SLACK.ben, 'the firewall team is on it already');
  const status = await stage.follow(runId);
  const { error, approvals } = await system.run(runId);
  narrator.claim(
    'the run failed because Ben rejected the write',
    [status, error?.code],
    ['failed_terminal', 'APPROVAL_REJECTED'],
  );
  narrator.claim('the run shows his reason', approvals[0]?.votes[0]?.reason, 'the firewall team is on it already');
  narrator.claim('nothing was written', await stage.writesAbout(VPN_DROPS), NOTHING);
}
