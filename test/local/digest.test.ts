import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Approval } from '../../lambdas/run/approval.ts';
import { Approvers } from './harness/approvers.ts';
import { incident } from './harness/deliveries.ts';
import { startTestHost, type TestHost } from './harness/test-host.ts';

const BEN = 'local-approver2-key';
const MINUTE_MS = 60_000;

let host: TestHost;
let people: Approvers;
beforeAll(async () => {
  host = await startTestHost();
  people = new Approvers(host);
});
afterAll(() => host.stop());

const file = (title: string) => host.fileIncident(incident(title, { sys_updated_by: 'ana' }));
const gated = async (title: string): Promise<Approval> => people.waiting(await file(title));

/** Each minute, the sweeper runs. */
async function minutesPass(minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute += 1) {
    await host.idle();
    await host.advance(MINUTE_MS);
  }
  await host.idle();
}

/** Until the SLA of this approval has passed and a digest is due. */
async function untilOverdue({ slaAt }: Approval): Promise<void> {
  await host.idle();
  await host.advance(Date.parse(slaAt) - (await host.now()) + 1_000);
  await minutesPass(3);
}

interface Shown {
  heading: string;
  content: string;
}

/** The digests in the channel, the oldest first. */
async function digests(): Promise<Shown[]> {
  const all = (await people.messages()).map(({ blocks, ts }) => ({
    ts,
    heading: (blocks as { text?: { text?: string } }[] | undefined)?.[0]?.text?.text ?? '',
    content: JSON.stringify(blocks),
  }));
  return all
    .filter(({ heading }) => /overdue (approvals?)|are overdue|is overdue/.test(heading))
    .sort((a, b) => (a.ts < b.ts ? -1 : 1));
}
const headings = async () => (await digests()).map(({ heading }) => heading);

it('overdue approvals arrive as one digest with links, and each pages once; when all are decided, the digest says so', async () => {
  const approvals = [await gated('first'), await gated('second'), await gated('third')];
  await untilOverdue(approvals.at(-1) as Approval);
  expect(await headings()).toEqual(['3 approvals are overdue']);
  const [digest] = await digests();
  for (const { approvalId, card } of approvals) {
    expect(digest?.content).toContain(`countersign approvals show ${approvalId}`);
    expect(digest?.content).toContain(`/archives/${card?.channel}/p${card?.ts.replace('.', '')}`);
  }
  expect(digest?.content.indexOf('first')).toBeLessThan(digest?.content.indexOf('third') ?? 0);
  const paged = (await people.alerts()).map(({ dedup_key }) => dedup_key);
  expect(paged.sort()).toEqual(approvals.map(({ approvalId }) => approvalId).sort());
  // No message for each of them, and no further digest without a new one.
  expect(JSON.stringify(await people.messages())).not.toContain('Not decided in time:');
  await minutesPass(8);
  expect(await headings()).toHaveLength(1);
  for (const approval of approvals) {
    expect((await people.decide(approval, { decision: 'approve' }, BEN)).status).toBe(200);
    await host.waitForRun(approval.runId);
  }
  await host.idle();
  expect(await headings()).toEqual(['All 3 overdue approvals are closed']);
  expect((await people.alerts()).map(({ status }) => status)).toEqual(['resolved', 'resolved', 'resolved']);
});

it('a digest whose response was lost is found and not posted again; new ones follow, and the digest is repeated', async () => {
  const before = (await headings()).length;
  const own = async () => (await headings()).slice(before);
  const first = await gated('lost response');
  await host.simulatedFault({ system: 'slack', path: 'chat.postMessage', kind: 'lost_answer', times: 2 });
  await untilOverdue(first);
  // The response to its card is lost, too, so the card is not known before a minute has passed.
  const slow = await file('slow decision');
  await minutesPass(2);
  const second = await people.waiting(slow);
  expect(await own()).toEqual(['1 approval is overdue']);
  expect(host.log.join('\n')).toContain('a digest could not be posted; the sweeper tries again');
  await host.request('DELETE', '/_sim/faults');
  await untilOverdue(second);
  expect(await own()).toEqual(['1 approval is overdue', '2 approvals are overdue']);
  await people.decide(first, { decision: 'reject', reason: 'too late' }, BEN);
  await host.idle();
  await host.advance(55 * MINUTE_MS);
  await minutesPass(8);
  expect(await own()).toEqual(['1 approval is overdue', '2 approvals are overdue', '1 approval is overdue']);
  await people.decide(second, { decision: 'approve' }, BEN);
  await host.waitForRun(second.runId);
  await minutesPass(1);
  expect((await own()).at(-1)).toBe('The overdue approval is closed');
});
