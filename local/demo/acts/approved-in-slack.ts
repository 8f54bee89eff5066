import { DATABASE_DOWN, GROUPS } from '../incidents.ts';
import { MAKERS_ARE_TOLD, SLACK } from '../slack-people.ts';
import { NOTHING, ONCE_EACH, type Stage } from '../stage.ts';

/** The heart of it: a person sees exactly what will happen, decides in Slack, and that, only that, happens. */
export async function approvedInSlack(stage: Stage): Promise<string> {
  const { system, slack, narrator } = stage;
  narrator.chapter('What puts more at risk needs a second person');
  narrator.says(`Ana reports ${DATABASE_DOWN.number}, "Checkout database refuses connections"; a proxy repeats it.`);
  const first = await system.deliver('servicenow-incident-p1.json');
  const repeated = await system.deliver('servicenow-incident-p1.json');
  const { runId } = first;
  narrator.claim(
    'the repeat is recognised: one run',
    [repeated.status, repeated.deduplicated, repeated.runIds],
    [202, true, first.runIds],
  );
  const approval = await slack.waiting(runId);
  await stage.types('approvals', 'show', runId.slice(0, 12));
  const card = await slack.cardOnPage(approval);
  narrator.claim(
    "policy asks, and the card is on the Slack simulator's page, with the new group and a button",
    [GROUPS.database, 'assignment_group', '>Approve</button>'].map((part) => card.includes(part)),
    [true, true, true],
  );
  narrator.claim('nothing is written meanwhile', await stage.writesAbout(DATABASE_DOWN), NOTHING);

  narrator.says('Ana presses Approve.');
  await slack.press(SLACK.ana, approval, 'approve');
  narrator.shows(`Slack, to Ana only: ${await slack.toldOnly(SLACK.ana)}`);
  narrator.claim('she is refused: she asked for it', await slack.toldOnly(SLACK.ana), MAKERS_ARE_TOLD);
  narrator.claim('still nothing is written', await stage.writesAbout(DATABASE_DOWN), NOTHING);

  narrator.says('Ben presses Approve.');
  await slack.press(SLACK.ben, approval, 'approve');
  narrator.claim('the run succeeded', await stage.follow(runId, (await system.run(runId)).head.seq), 'succeeded');
  narrator.claim('each write reached its target once', await stage.writesAbout(DATABASE_DOWN), ONCE_EACH);
  narrator.claim(
    'the incident is with the group on the card',
    (await system.incident(DATABASE_DOWN.sysId)).group,
    'Database',
  );
  const updated = await slack.cardShows(approval, 'Ben Okafor');
  narrator.claim(
    'the card says who approved, and cannot be approved again',
    updated.includes('Approve</button>'),
    false,
  );
  return runId;
}
