import { eventInWords, withShortIds } from '../../bin/commands/run-words.ts';
import type { Commit } from '../../lambdas/run/commit.ts';
import { LEASE_DURATION_MS } from '../../lambdas/run/lease.ts';
import type { Host } from '../host.ts';
import { ACME_KEY, type DemoHost, GLOBEX_KEY } from './demo-host.ts';
import { flawOf, readEvidence } from './evidence.ts';
import type { Narrator } from './narrator.ts';

/** Incidents of the simulated ServiceNow, and the samples that report them. */
const DATABASE_DOWN = { sample: 'servicenow-incident-p1.json', sysId: '6dbb1847acd165f19a4179377de298c8' };
const VPN_DROPS = { sample: 'servicenow-incident-p2.json', sysId: 'f0369ca5bbff7cad4153b83b5759b698' };

/** The worker's commits of a triage run: it starts and claims `assign`; settles `assign`, claims `note`; settles `note`. */
const COMMIT_AFTER_THE_NOTE = 3;

export interface Stage {
  host: Host;
  system: DemoHost;
  narrator: Narrator;
}

export async function incidentArrivesTwice({ system, narrator }: Stage): Promise<string> {
  narrator.chapter('An incident arrives, twice');
  narrator.says('ServiceNow reports INC0010001, "Checkout database refuses connections"; its proxy repeats it.');
  const first = await system.deliverIncident(DATABASE_DOWN.sample);
  const second = await system.deliverIncident(DATABASE_DOWN.sample);
  narrator.claim('the first delivery is accepted and starts a run', [first.status, first.deduplicated], [202, false]);
  narrator.claim(
    'the second is accepted and recognised as the same',
    [second.status, second.deduplicated],
    [202, true],
  );
  narrator.claim('both answers name the same run', second.runIds, first.runIds);
  narrator.claim('there is no other run', await system.runIds(), first.runIds);
  const [runId = ''] = first.runIds;
  return runId;
}

export async function runIsFollowed({ system, narrator }: Stage, runId: string): Promise<void> {
  narrator.chapter('The run is followed to its end');
  const status = await system.follow(runId, showTo(narrator));
  narrator.claim('the run succeeded', status, 'succeeded');
  narrator.claim('each write reached its target once', await writesAbout(system, DATABASE_DOWN.sysId), ONCE_EACH);
  const { receipts } = await system.run(runId);
  const undo = receipts.map((receipt) => receipt.outcome === 'succeeded' && 'reversal' in receipt);
  narrator.claim('each left a receipt that says how to undo it, or why that cannot be', undo, [true, true, true]);
}

export async function workerIsKilled({ system, narrator }: Stage): Promise<string> {
  narrator.chapter('A worker is killed in the middle of a write');
  narrator.says('INC0010002 comes in. Its worker dies once the work note is written, before it can commit that.');
  await system.breakOnce({
    function: 'WorkerStep',
    service: 'dynamodb',
    operation: 'TransactWriteItems',
    kind: 'crash_before',
    nth: COMMIT_AFTER_THE_NOTE,
  });
  const { runIds } = await system.deliverIncident(VPN_DROPS.sample);
  const [runId = ''] = runIds;
  await system.faultStruck();
  const dead = await system.run(runId);
  for (const commit of dead.commits) showTo(narrator)(commit);
  narrator.claim('the work note is at ServiceNow', (await system.workNotes(VPN_DROPS.sysId)).length, 1);
  const note = dead.receipts.find(({ stepId }) => stepId === 'note');
  narrator.claim(
    'the run does not know: it is running, the receipt only an intent',
    [dead.status, note?.outcome],
    ['running', 'intent'],
  );
  return runId;
}

export async function runIsRecovered({ system, narrator }: Stage, runId: string): Promise<void> {
  narrator.chapter('Another worker takes over');
  narrator.says('The lease runs out (the clock is moved past it), and the sweeper finds the run.');
  const { head } = await system.run(runId);
  await system.letTimePass(LEASE_DURATION_MS + 1);
  const status = await system.follow(runId, showTo(narrator), head.seq);
  narrator.claim('the run succeeded', status, 'succeeded');
  narrator.claim('every write was made once, the work note too', await writesAbout(system, VPN_DROPS.sysId), ONCE_EACH);
  const { steps, receipts } = await system.run(runId);
  const note = steps.find(({ id }) => id === 'note');
  narrator.claim('it took two attempts', note && 'attempt' in note && note.attempt, 2);
  const receipt = receipts.find(({ stepId }) => stepId === 'note');
  const recovered = receipt?.outcome === 'succeeded' && receipt.recovered;
  narrator.claim('the second found the note by its mark and did not repeat it: the receipt says recovered', recovered);
}

export async function evidenceIsThere({ host, system, narrator }: Stage, runId: string): Promise<void> {
  narrator.chapter('The evidence is there');
  const run = await system.until('the evidence is sealed', async () => {
    const shown = await system.run(runId);
    return shown.evidence ? shown : undefined;
  });
  const held = await readEvidence(host, run);
  narrator.says(`s3: ${run.evidence?.documentKey.replace(/[0-9a-f]{24}\//, '…/')}`);
  narrator.claim('the bundle in the bucket has the hash that the run shows', held.sha256, run.evidence?.sha256);
  narrator.claim(`its ${held.commits.length} commits are whole, in order and unedited`, flawOf(run, held.commits), '');
  narrator.claim('so are those of the API', flawOf(run, run.commits), '');
  const edited = held.commits.map((commit) => (commit.seq === 2 ? { ...commit, at: run.createdAt } : commit));
  narrator.claim('one edited commit is found and named', flawOf(run, edited), `run ${runId}: commit 2 was edited`);
  const signed = { sha256: held.signedSha256, head: held.signedHead, holds: held.signatureHolds };
  narrator.claim("the stage's key signed this document and this head", signed, {
    sha256: held.sha256,
    head: run.head.hash,
    holds: true,
  });
}

export async function tenantsAreApart({ system, narrator }: Stage, runId: string): Promise<void> {
  narrator.chapter('Tenants are kept apart');
  narrator.claim("acme's key shows acme's run", await system.statusForKey(runId, ACME_KEY), 200);
  narrator.claim("globex's key gets 404 for it, as if it never was", await system.statusForKey(runId, GLOBEX_KEY), 404);
}

const ONCE_EACH = { assignment_group: 1, work_notes: 1, 'Slack messages': 1 };

/** How often each write about an incident reached its target. */
async function writesAbout(system: DemoHost, sysId: string) {
  const writes = await system.writes();
  const patches = writes.filter(({ path }) => path.endsWith(`/incident/${sysId}`));
  const setting = (field: string) => patches.filter(({ body }) => Object.hasOwn(Object(body), field)).length;
  const number = sysId === DATABASE_DOWN.sysId ? 'INC0010001' : 'INC0010002';
  const messages = writes.filter(({ system: name, body }) => name === 'slack' && JSON.stringify(body).includes(number));
  return {
    assignment_group: setting('assignment_group'),
    work_notes: setting('work_notes'),
    'Slack messages': messages.length,
  };
}

/** The turns of the story; `countersign runs watch` shows the rest. */
const SHOWN_EVENTS: readonly string[] = ['run.accepted', 'step.claimed', 'write.intended', 'write.settled'];

function showTo(narrator: Narrator): (commit: Commit) => void {
  return ({ events }) => {
    for (const event of events) {
      if (SHOWN_EVENTS.includes(event.type)) narrator.shows(withShortIds(eventInWords(event)));
    }
  };
}
