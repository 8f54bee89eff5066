import { VPN_DROPS } from '../incidents.ts';
import { SLACK } from '../slack-people.ts';
import { NOTHING, type Stage } from '../stage.ts';

/** A no, with its reason. */
export async function rejected(stage: Stage): Promise<void> {
  const { system, slack, narrator } = stage;
  narrator.chapter('A no is a no');
  narrator.says(`${VPN_DROPS.number} comes in. Ben presses Reject; Slack asks him why.`);
  const { runId } = await system.report(VPN_DROPS);
  const approval = await slack.waiting(runId);
  await slack.press(SLACK.ben, approval, 'reject');
  await slack.fillIn(SLACK.ben, 'the firewall team is on it already');
  const status = await stage.follow(runId);
  const { error, approvals } = await system.run(runId);
  narrator.claim(
    'the run failed, because he rejected it',
    [status, error?.code],
    ['failed_terminal', 'APPROVAL_REJECTED'],
  );
  narrator.claim('his reason is kept', approvals[0]?.votes[0]?.reason, 'the firewall team is on it already');
  narrator.claim('nothing was written', await stage.writesAbout(VPN_DROPS), NOTHING);
}
