import { describe, expect, it } from 'vitest';
import type { Approval } from '../../lambdas/run/approval.ts';
import { closedDigest } from '../../lambdas/slack/digest/closed-digest.ts';
import { overdueDigest } from '../../lambdas/slack/digest/digest-message.ts';
import { blockProblems, isTooLongForMessage } from '../../local/simulators/slack/block-limits.ts';
import { messageCard } from '../../local/simulators/slack/cards.ts';
import type { SlackMessage } from '../../local/simulators/slack/workspace.ts';
import { approvalOf, NOW_MS, PEOPLE, writing } from './approvals.ts';
import { TRICKS } from './hostile-text.ts';
import { readable, shownTexts } from './shown-text.ts';

const MINUTE_MS = 60_000;
const LINK = 'https://acme.slack.com/archives/C0APPROVALS/p1767323045000001';

const overdue = (index: number, differing: Partial<Approval> = {}): Approval =>
  approvalOf({
    approvalId: `run_${String(index).padStart(16, '0')}.1-0`,
    title: `Checkout fails ${index}`,
    slaAt: new Date(NOW_MS - (300 - index) * MINUTE_MS).toISOString(),
    makers: [],
    ...differing,
  });
const digest = (approvals: Approval[], differing: Partial<Parameters<typeof overdueDigest>[0]> = {}) =>
  overdueDigest({
    approvals,
    added: approvals.map(({ approvalId }) => approvalId),
    people: PEOPLE,
    links: new Map(approvals.map(({ approvalId }) => [approvalId, LINK])),
    nowMs: NOW_MS,
    ...differing,
  });

describe('an entry of the digest', () => {
  it('says what would be written, since when it is overdue, who may decide, and how', () => {
    const { text, blocks } = digest([overdue(1)]);
    expect(text).toBe('1 approval is overdue: Checkout fails 1');
    const shown = readable(blocks);
    for (const part of [
      'Checkout fails 1 · servicenow:acme:INC0010001 new',
      'Would write servicenow.incident.update at servicenow:acme:incident:9d385017c611228701d22104cc95c371',
      'assignment_group Database, state 2',
      'Overdue for 4 h 59 min, since ',
      'Needs one person who may approve tier medium. Can decide: Ana Ortiz, Ben Okafor.',
      'Open the card or countersign approvals show run_0000000000000001.1-0',
    ]) {
      expect(shown).toContain(part);
    }
    expect(JSON.stringify(blocks)).toContain(`"url":"${LINK}"`);
  });

  it('leads to the card, in Slack and on the page of the simulator', () => {
    const { text, blocks } = digest([overdue(1)]);
    const message = { type: 'message', user: 'U1', channel: 'C1', ts: '2.0', text, blocks } as unknown as SlackMessage;
    expect(messageCard(message, []).text).toContain('<a href="#C0APPROVALS/p1767323045000001">Open the card</a>');
    const card = { ...message, channel: 'C0APPROVALS', ts: '1767323045.000001' };
    expect(messageCard(card, []).text).toContain('id="C0APPROVALS/p1767323045000001"');
  });

  it('names those who can still decide, and says if too few can', () => {
    const requirement = { tier: 'medium' as const, quorum: 2, groups: [] };
    const at = new Date(NOW_MS).toISOString();
    const votes = [{ person: 'ana', via: 'slack' as const, decision: 'approve' as const, at }];
    const shown = readable(digest([overdue(1, { requirement, votes })]).blocks);
    expect(shown).toContain('1 of 2 have approved so far. Can decide: Ben Okafor.');
    expect(readable(digest([overdue(1, { makers: ['ana', 'ben'] })]).blocks)).toContain('Nobody can decide now.');
    expect(readable(digest([overdue(1, { requirement, makers: ['ana'] })]).blocks)).toContain('Too few people can.');
  });

  it('has only the command if the card is gone, and the message of an approval step', () => {
    const step = overdue(1, { action: undefined, message: 'May we deploy?', stepId: 'gate' });
    const shown = readable(digest([step], { links: new Map() }).blocks);
    expect(shown).toContain('The run waits at step gate: May we deploy?');
    expect(shown).not.toContain('Open the card');
  });
});

describe('the digest', () => {
  it('marks the new approvals among those that an earlier digest has listed', () => {
    const [first, second] = [overdue(1), overdue(2)];
    const shown = readable(digest([first, second], { added: [second.approvalId] }).blocks);
    expect(shown).toContain('1 new. ');
    expect(shown.match(/ new\n/g)).toHaveLength(1);
    expect(readable(digest([first, second], { added: [] }).blocks)).not.toContain('new');
  });

  it.each([1, 4, 20, 60, 500])('of %i approvals fits into a message and says how many it does not show', (count) => {
    const fields = Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`u_field_${at}`, 'x'.repeat(3_000)]));
    for (const differing of [{}, writing(fields), { title: TRICKS.join('').repeat(9), message: 'y'.repeat(9_000) }]) {
      const { text, blocks } = digest(Array.from({ length: count }, (_, index) => overdue(index, differing)));
      expect(blockProblems(blocks)).toEqual([]);
      expect(isTooLongForMessage(blocks)).toBe(false);
      expect(text.length).toBeLessThanOrEqual(4_000);
      const entries = (JSON.stringify(blocks).match(/approvals show/g) ?? []).length;
      expect(entries).toBeGreaterThan(0);
      const [, more = '0'] = /and (\d+) more: countersign approvals list/.exec(readable(blocks)) ?? [];
      expect(entries + Number(more)).toBe(count);
    }
  });

  it('shows external text only as quotation, without mentions, links or hidden characters', () => {
    for (const trick of TRICKS) {
      const { text, blocks } = digest([
        overdue(1, { title: trick, subject: trick, ...writing({ [trick || 'x']: trick }) }),
      ]);
      const words = shownTexts(blocks).filter(({ as }) => as === 'words' || as === 'plain');
      const visible = trick.trim();
      if (visible.length > 3) expect(words.some((each) => each.text.includes(visible))).toBe(false);
      expect(text).not.toMatch(/[<>]/);
      expect(JSON.stringify(blocks)).not.toMatch(/"type":"(user|broadcast|usergroup|channel|emoji)"/);
    }
  });

  it('says for each approval how it was closed, when all are', () => {
    const at = new Date(NOW_MS).toISOString();
    const votes = [{ person: 'ana', via: 'slack' as const, decision: 'approve' as const, at }];
    const closed = [
      overdue(1, { status: 'approved', votes }),
      overdue(2, { status: 'expired' }),
      overdue(3, { status: 'canceled' }),
    ];
    const { text, blocks } = closedDigest(closed, PEOPLE);
    expect(text).toBe('All 3 overdue approvals are closed');
    const shown = readable(blocks);
    expect(shown).toContain('• Checkout fails 1: Ana Ortiz approved in Slack');
    expect(shown).toContain('• Checkout fails 2: expired without a decision');
    expect(shown).toContain('• Checkout fails 3: canceled before a decision');
    const many = closedDigest(
      Array.from({ length: 500 }, (_, index) => overdue(index, { status: 'expired', title: 'x'.repeat(3_000) })),
      PEOPLE,
    );
    expect(blockProblems(many.blocks)).toEqual([]);
    expect(isTooLongForMessage(many.blocks)).toBe(false);
  });
});
