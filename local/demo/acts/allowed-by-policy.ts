import type { Stage } from '../stage.ts';

/** Policy allows a low-risk write without an approval. */
export async function allowedByPolicy(stage: Stage): Promise<void> {
  const { system, narrator } = stage;
  narrator.chapter('A low-risk write needs no approval');
  narrator.says('Somebody opens an issue in GitHub. Countersign receives the signed webhook.');
  const { runId } = await system.deliver('github-issue-opened.json');
  narrator.claim('the run succeeded', await stage.follow(runId), 'succeeded');
  const { approvals } = await system.run(runId);
  narrator.claim('policy allowed it without an approval', approvals, []);
  const labels = (await system.writes()).filter(({ path }) => path.endsWith('/issues/1/labels'));
  narrator.claim(
    'one POST added the label',
    labels.map(({ method, body }) => ({ method, body })),
    [{ method: 'POST', body: { labels: ['triage'] } }],
  );
}
