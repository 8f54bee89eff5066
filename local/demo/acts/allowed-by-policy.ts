import type { Stage } from '../stage.ts';

/** A write that puts little at risk: policy lets it happen. */
export async function allowedByPolicy(stage: Stage): Promise<void> {
  const { system, narrator } = stage;
  narrator.chapter('What puts little at risk just happens');
  narrator.says('An issue is opened at GitHub; its webhook comes in, signed.');
  const { runId } = await system.deliver('github-issue-opened.json');
  narrator.claim('the run succeeded', await stage.follow(runId), 'succeeded');
  const { approvals } = await system.run(runId);
  narrator.claim('policy allowed it, nobody was asked', approvals, []);
  const labels = (await system.writes()).filter(({ path }) => path.endsWith('/issues/1/labels'));
  narrator.claim(
    'the label was added by one POST',
    labels.map(({ method, body }) => ({ method, body })),
    [{ method: 'POST', body: { labels: ['triage'] } }],
  );
}
