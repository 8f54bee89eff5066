import { DATABASE_DOWN, GROUPS } from '../incidents.ts';
import { MAKER_REFUSED, SLACK } from '../slack-people.ts';
import { NOTHING, ONCE_EACH, type Stage } from '../stage.ts';

/** A person sees the exact write in Slack and approves it. Countersign makes this write and no other. */
export async function approvedInSlack(stage: Stage): Promise<string> {
  const { system, slack, narrator } = stage;
  narrator.chapter('A write with more risk needs a second person');
  narrator.says(
    `Ana reports ${DATABASE_DOWN.number}, "Checkout database refuses connections"; a proxy delivers it twice.`,
  );
  const first = await system.deliver('servicenow-incident-p1.json');
  const repeated = await system.deliver('servicenow-incident-p1.json');
  const { runId } = first;
  narrator.claim(
    'the repeat starts no second run',
    [repeated.status, repeated.deduplicated, repeated.runIds],
    [202, true, first.runIds],
  );
  const approval = await slack.waiting(runId);
  await stage.types('approvals', 'show', runId.slice(0, 12));
  const card = await slack.cardOnPage(approval);
  narrator.claim(
    'policy requires an approval, and the page of the Slack simulator shows its card with the new group and a button',
    [GROUPS.database, 'assignment_group', '>Approve</button>'].map((part) => card.includes(part)),
    [true, true, true],
  );
  narrator.claim('nothing is written before the approval', await stage.writesAbout(DATABASE_DOWN), NOTHING);

  narrator.says('Ana presses Approve.');
  await slack.press(SLACK.ana, approval, 'approve');
  narrator.shows(`Slack, to Ana only: ${await slack.privateMessage(SLACK.ana)}`);
  narrator.claim(
    'Countersign refuses her, because she reported the incident',
    await slack.privateMessage(SLACK.ana),
    MAKER_REFUSED,
  );
  narrator.claim('still nothing is written', await stage.writesAbout(DATABASE_DOWN), NOTHING);

  narrator.says('Ben presses Approve.');
  await slack.press(SLACK.ben, approval, 'approve');
  narrator.claim('the run succeeded', await stage.follow(runId, (await system.run(runId)).head.seq), 'succeeded');
  narrator.claim('each write reached its target once', await stage.writesAbout(DATABASE_DOWN), ONCE_EACH);
  narrator.claim(
    'the incident has the group that the card shows',
    (await system.incident(DATABASE_DOWN.sysId)).group,
    'Database',
  );
  const updated = await slack.cardShows(approval, 'Ben Okafor');
  narrator.claim(
    'the card shows who approved, and has no Approve button any more',
    updated.includes('Approve</button>'),
    false,
  );
  return runId;
}
