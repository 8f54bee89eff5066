import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Approval } from '../../lambdas/run/approval.ts';
import { CARD_MAX_CHARACTERS } from '../../lambdas/slack/block-kit.ts';
import { approvalCard } from '../../lambdas/slack/card/approval-card.ts';
import { blockProblems, isTooLongForMessage } from '../../local/simulators/slack/block-limits.ts';
import { messageCard } from '../../local/simulators/slack/cards.ts';
import { ACTION, approvalOf, NOW_MS, PEOPLE, writing } from './approvals.ts';
import { hostileText, TRICKS, UNSEEN } from './hostile-text.ts';
import { buttonsOf, readable, shownTexts } from './shown-text.ts';

const SEED = 20_260_102;
const cardOf = (differing: Partial<Approval> = {}, nowMs = NOW_MS) =>
  approvalCard(approvalOf(differing), PEOPLE, nowMs);
const textOf = (differing: Partial<Approval> = {}) => readable(cardOf(differing).blocks);
const AT = '2026-01-02T03:10:00.000Z';
const ANA_APPROVED = { person: 'ana', via: 'slack', decision: 'approve', at: AT } as const;

describe('the card of an open approval', () => {
  it('shows the target, the automation, the current and the new values', () => {
    const text = textOf();
    expect(text).toContain('Approval needed: servicenow.incident.update');
    expect(text).toContain('• assignment_group: Service Desk → Database');
    expect(text).toContain('• state: 2');
    expect(text).toContain('At servicenow:acme:incident:9d385017c611228701d22104cc95c371 in prod');
    expect(text).toContain('By triage-incident, workflow triage-incident v3, step route');
  });

  it('shows why approval is required, who must approve, who cannot, and when it expires', () => {
    const text = textOf({
      requirement: { tier: 'high', quorum: 2, groups: [['dba', 'sre'], ['security']] },
      makers: ['ben', 'github:octo'],
    });
    expect(text).toContain('a medium risk needs one approval');
    expect(text).toContain('Policies medium-risk');
    expect(text).toContain('Policy set bbbbbbbbbbbb');
    expect(text).toContain('Needs 2 people who may approve tier high, from dba or sre, and also from security.');
    expect(text).toContain('cannot approve it: Ben Okafor, github:octo');
    expect(text).toContain('Expires 2026-01-03 03:04 UTC; others are notified 2026-01-02 03:14 UTC');
    expect(text).toContain('run_0123456789abcdef · approval run_0123456789abcdef.1 · action aaaaaaaaaaaa');
  });

  it.each([
    ['It can be undone.', {}],
    ['It cannot be undone.', { reversible: false }],
    ['It removes something that cannot be restored.', { destructive: true }],
    ['This undoes an earlier write', { undo: true }],
  ])('says about the undo: %s', (text, differing) => {
    expect(textOf({ action: { ...ACTION, ...differing } })).toContain(text);
  });

  it('shows a reference by its name, and last the value that is written', () => {
    const id = '287ebd7da9fe198100f92cc8d1d2154e';
    const names = { assignment_group: { [id]: 'Database', 'Service Desk': 'First line' } };
    expect(
      textOf({ ...writing({ assignment_group: id }), before: { assignment_group: 'Service Desk' }, names }),
    ).toContain(`• assignment_group: First line (Service Desk) → Database (${id})`);
  });

  it('says why the current values are not shown', () => {
    expect(textOf({ before: undefined, unread: 'ServiceNow refused (403)' })).toContain(
      'The current values could not be read, so they are not shown: ServiceNow refused (403)',
    );
    expect(textOf()).not.toContain('could not be read');
  });

  it('warns if nobody can approve it, while it is open', () => {
    const requirement = { tier: 'high' as const, quorum: 1, groups: [['dba']] };
    const warning = 'Warning: nobody can approve this: group dba has no approver of tier high';
    expect(textOf({ requirement })).toContain(warning);
    expect(textOf({ requirement, status: 'expired' })).not.toContain('Warning');
    expect(textOf()).not.toContain('Warning');
  });

  it('shows the message of the author also after an edit, as older than it', () => {
    const message = 'please check the group';
    const edit = { person: 'ana', via: 'slack' as const, at: AT, changes: [], previousHash: 'x' };
    expect(textOf({ message })).not.toContain('from before the edit');
    expect(textOf({ message, edits: [edit] })).toContain('Message, from before the edit');
    expect(textOf({ message, edits: [edit] })).toContain(message);
  });

  it('offers no edit where every field selects the target, or for an undo', () => {
    const fixed = { ...ACTION, tool: 'http.get', fields: { url: 'https://example.com/a' } };
    expect(buttonsOf(cardOf({ action: fixed }).blocks)).toEqual(['Approve', 'Reject', 'Show all']);
    expect(buttonsOf(cardOf({ action: { ...ACTION, undo: true } }).blocks)).toEqual(['Approve', 'Reject', 'Show all']);
  });

  it('has the decision buttons, bound to the action that it shows', () => {
    const { blocks } = cardOf();
    expect(buttonsOf(blocks)).toEqual(['Approve', 'Reject', 'Edit', 'Show all']);
    const [approve] = blocks.flatMap((block) => (block.type === 'actions' ? block.elements : []));
    expect(JSON.parse(approve?.value ?? '')).toEqual({
      approvalId: 'run_0123456789abcdef.1',
      actionHash: 'a'.repeat(64),
    });
  });

  it('has no decision buttons after it expired, even if that is not recorded yet', () => {
    expect(buttonsOf(cardOf({}, NOW_MS + 24 * 3_600_000).blocks)).toEqual(['Show all']);
  });

  it('shows the votes so far, and on whose behalf they were given', () => {
    const votes = [{ ...ANA_APPROVED, onBehalfOf: 'ben' }];
    expect(textOf({ votes })).toContain('• Ana Ortiz approved in Slack, 2026-01-02 03:10 UTC, on behalf of Ben Okafor');
  });

  it('of a write that two people must approve shows how many have approved and which votes do not count', () => {
    const two: Partial<Approval> = { requirement: { tier: 'high', quorum: 2, groups: [] }, asks: 'always_two' };
    expect(textOf(two)).toContain('0 of 2 have approved so far.');
    expect(textOf({ ...two, votes: [ANA_APPROVED] })).toContain(
      '1 of 2 have approved so far.\n• Ana Ortiz approved in Slack, 2026-01-02 03:10 UTC\n',
    );
    const left = { ...ANA_APPROVED, person: 'somebody-who-left' };
    expect(textOf({ ...two, votes: [ANA_APPROVED, left] })).toMatch(
      /1 of 2 have approved so far\.\n• Ana Ortiz [^•]+UTC\n• somebody-who-left [^•]+UTC, which does not count\n/,
    );
    expect(textOf()).not.toContain('of 1');
  });

  it('distinguishes true from "true", not set from an empty text, and a written field from a changed field of the target', () => {
    const text = textOf({
      ...writing({ flag: true, word: 'true', gone: '', labels: ['triage'] }),
      before: { word: undefined, triage: false },
      after: { triage: true },
    });
    expect(text).toContain('• flag: true');
    expect(text).toContain('• word: not set → "true"');
    expect(text).toContain('• gone: ""');
    expect(text).toContain('• labels: ["triage"]');
    expect(text).toContain('What that changes\n• triage: false → true');
  });

  it('shows that an edit invalidated earlier votes', () => {
    const changes = [{ field: 'state', from: 1, to: 2 }];
    const edits = [{ person: 'ben', via: 'slack', at: AT, changes, previousHash: 'c'.repeat(64) } as const];
    expect(textOf({ edits })).toContain(
      'Ben Okafor changed state, 2026-01-02 03:10 UTC; earlier votes no longer count.',
    );
  });

  it('of an approval step shows its message and no edit button', () => {
    const { blocks } = cardOf({ action: undefined, message: 'Deploy 12\nto prod?', asks: 'step' });
    expect(readable(blocks)).toContain('Approval needed: route');
    expect(shownTexts(blocks)).toContainEqual({ text: 'Deploy 12\nto prod?', as: 'box' });
    expect(buttonsOf(blocks)).toEqual(['Approve', 'Reject', 'Show all']);
  });

  it('shows that it is overdue after the escalation', () => {
    expect(textOf({ escalatedAt: AT })).toContain(
      'Overdue. Approval needed: servicenow.incident.updateNot decided in time. Others were notified 2026-01-02 03:10 UTC.',
    );
  });
});

describe('the card of a closed approval', () => {
  it.each<[string, Partial<Approval>, string]>([
    ['approved', { votes: [ANA_APPROVED] }, 'Ana Ortiz approved in Slack, 2026-01-02 03:10 UTC'],
    [
      'rejected',
      { votes: [{ ...ANA_APPROVED, person: 'ben', via: 'api', decision: 'reject', reason: 'It pages all' }] },
      'Ben Okafor rejected through the API, 2026-01-02 03:10 UTC\nReasonIt pages all',
    ],
    ['expired', {}, 'Nobody decided before 2026-01-03 03:04 UTC. Nothing was written.'],
    ['canceled', {}, 'The run ended first, 2026-01-02 03:10 UTC. Nothing was written.'],
  ])('that was %s shows by whom and when, and has no decision buttons', (status, differing, words) => {
    const { blocks, text } = cardOf({ status: status as Approval['status'], decidedAt: AT, ...differing });
    expect(readable(blocks).toLowerCase()).toContain(`${status}`);
    expect(text.toLowerCase()).toContain(status);
    expect(readable(blocks)).toContain(words);
    expect(buttonsOf(blocks)).toEqual(['Show all']);
  });
});

describe('the votes on a closed card', () => {
  const two = { requirement: { tier: 'high', quorum: 2, groups: [] }, decidedAt: AT } satisfies Partial<Approval>;
  const no = { ...ANA_APPROVED, person: 'ben', decision: 'reject', reason: 'Not today' } as const;

  it.each<[Approval['status'], string]>([
    ['expired', 'Too few approved before 2026-01-03 03:04 UTC. Nothing was written. 1 of 2 had approved:'],
    ['canceled', 'The run ended first, 2026-01-02 03:10 UTC. Nothing was written. 1 of 2 had approved:'],
  ])('of a card that is %s show who had approved', (status, words) => {
    const text = textOf({ ...two, status, votes: [ANA_APPROVED] });
    expect(text).toContain(`${words}\n• Ana Ortiz approved in Slack, 2026-01-02 03:10 UTC`);
    expect(text).toContain('Needed 2 people who may approve tier high.');
    expect(text).toContain('What would have been written');
  });

  it('show who had approved before the rejection', () => {
    expect(textOf({ ...two, status: 'rejected', votes: [ANA_APPROVED, no] })).toContain(
      '• Ana Ortiz approved in Slack, 2026-01-02 03:10 UTC\n• Ben Okafor rejected in Slack, 2026-01-02 03:10 UTC\nReasonNot today',
    );
  });

  it('always include the deciding vote', () => {
    const yes = Array.from({ length: 9 }, (_each, index) => ({ ...ANA_APPROVED, person: `p${index}` }));
    const text = textOf({ ...two, status: 'rejected', votes: [...yes, no] });
    expect(text).toContain('Ben Okafor rejected');
    expect(text).toContain('… and 4 earlier votes: press “Show all”');
  });
});

describe('a card', () => {
  const fields = (count: number, text: string) =>
    Object.fromEntries(Array.from({ length: count }, (_each, index) => [`field_${index}`, text]));

  it('of 40 fields of 3,000 characters names them all and shows how much of each is omitted', () => {
    const long = fields(40, `${TRICKS.join(' ')} `.repeat(20).slice(0, 3_000));
    const { blocks } = cardOf({ ...writing(long), before: long, after: long });
    const text = readable(blocks);
    expect(blockProblems(blocks)).toEqual([]);
    expect(isTooLongForMessage(blocks)).toBe(false);
    for (const name of Object.keys(long)) expect(text).toContain(`• ${name}: `);
    expect(text.match(/… 2,9\d\d more characters/g)).toHaveLength(40);
    expect(text).toContain('Current values are not shown here: press “Show all”');
    expect(buttonsOf(blocks)).toContain('Show all');
  });

  it('is checked with limits that a card without them would exceed', () => {
    const text = (length: number) => ({
      type: 'rich_text_section',
      elements: [{ type: 'text', text: 'x'.repeat(length) }],
    });
    expect(isTooLongForMessage([{ type: 'rich_text', elements: [text(13_200)] }])).toBe(true);
    expect(blockProblems([{ type: 'rich_text', elements: [text(0)] }])).toHaveLength(1);
    expect(blockProblems([{ type: 'rich_text', elements: [] }])).toHaveLength(1);
  });

  it('of 500 fields shows some and the number of the others', () => {
    const { blocks } = cardOf(writing(fields(500, 'x'.repeat(100))));
    expect(blockProblems(blocks)).toEqual([]);
    expect(readable(blocks)).toMatch(/… and 4\d\d more fields: press “Show all”/);
  });

  it('shows one long text in full if it fits', () => {
    const note = 'line\n'.repeat(500);
    const { blocks } = cardOf(writing({ note }));
    expect(shownTexts(blocks)).toContainEqual({ text: note, as: 'box' });
    expect(readable(blocks)).not.toContain('more characters');
  });

  it('links to its pages in the console, if the stage has one', () => {
    const approval = approvalOf();
    const { blocks } = approvalCard(approval, PEOPLE, 0, 'https://console.example');
    const links = JSON.stringify(blocks).match(/https:[^"]+/g);
    expect(links).toEqual([
      `https://console.example/approvals/${approval.approvalId}`,
      `https://console.example/runs/${approval.runId}`,
    ]);
    expect(JSON.stringify(approvalCard(approval, PEOPLE, 0).blocks)).not.toContain('https:');
  });

  it('contains no link, mention, emoji or format from external text, also in clients that render the fallback text', () => {
    for (const trick of TRICKS) {
      const { text, blocks } = cardOf({ ...writing({ note: trick, [trick]: 'x' }), title: trick, automation: trick });
      const html = messageCard(
        { type: 'message', user: 'U', bot_id: 'B', app_id: 'A', ts: '1.000001', channel: 'C', text, blocks },
        [],
      ).text;
      expect(html).not.toMatch(/<a |class="mention"|<em>(?!not set)|✅/);
      expect(text).not.toMatch(/[<>]|&(?!lt;|gt;|amp;)/);
    }
  });

  const anyApproval = fc.record({
    status: fc.constantFrom<Approval['status'][]>(
      'requested',
      'notified',
      'approved',
      'rejected',
      'expired',
      'canceled',
    ),
    title: hostileText,
    subject: hostileText,
    automation: hostileText,
    message: fc.option(hostileText, { nil: undefined }),
    names: fc.array(hostileText, { maxLength: 60 }),
    value: fc.oneof(
      hostileText,
      hostileText.map((text) => [text, { [text]: text }]),
    ),
    reasons: fc.array(hostileText, { maxLength: 8 }),
    makers: fc.array(hostileText, { maxLength: 12 }),
    withAction: fc.boolean(),
    known: fc.boolean(),
  });

  it('stays within Slack’s limits, shows no hidden characters and cannot be imitated, for any approval', () => {
    fc.assert(
      fc.property(anyApproval, ({ names, value, reasons, makers, withAction, known, ...differing }) => {
        const written = Object.fromEntries(names.map((name) => [name, value]));
        const votes = makers.map((person) => ({ ...ANA_APPROVED, person, reason: person }));
        const { text, blocks } = cardOf({
          ...differing,
          ...writing(written),
          ...(known && { before: written, after: { ...written, other: value } }),
          ...(!withAction && { action: undefined }),
          grounds: { policyHash: 'b'.repeat(64), policies: reasons, reasons },
          makers,
          votes,
          edits: [
            {
              person: differing.title,
              via: 'api',
              at: AT,
              previousHash: 'c',
              changes: names.map((field) => ({ field, from: 1, to: 2 })),
            },
          ],
          escalatedAt: AT,
        });
        expect(blockProblems(blocks)).toEqual([]);
        expect(JSON.stringify(blocks).length).toBeLessThanOrEqual(CARD_MAX_CHARACTERS);
        expect(text.length).toBeLessThanOrEqual(4_000);
        expect(JSON.stringify(blocks)).not.toContain('"type":"mrkdwn"');
        for (const { text: shown, as } of shownTexts(blocks)) {
          const lines = as === 'code' || as === 'plain' ? shown : shown.replaceAll('\n', '');
          const seen = lines.replace(/^\u2068(.*)\u2069$/u, '$1').replaceAll(/\p{Extended_Pictographic}\uFE0F/gu, '');
          expect(seen).not.toMatch(UNSEEN);
        }
      }),
      { seed: SEED, numRuns: 150 },
    );
  });

  it('shows external text only as code or in a box, never as its own text', () => {
    const canary = (name: string) => `canary ${name}`;
    const { blocks } = cardOf({
      ...writing({ [canary('name')]: canary('value'), long: canary('long ').repeat(20) }),
      before: { [canary('name')]: canary('before') },
      after: { [canary('after')]: canary('changed') },
      title: canary('title'),
      subject: canary('subject'),
      automation: canary('automation'),
      workflow: { name: canary('workflow'), version: 1 },
      message: canary('message'),
      makers: [canary('maker')],
      grounds: { policyHash: 'b', policies: [canary('policy')], reasons: [canary('reason')] },
      requirement: { tier: 'low', quorum: 1, groups: [[canary('group')]] },
      votes: [{ ...ANA_APPROVED, person: canary('voter') }],
    });
    const outside = shownTexts(blocks).filter(({ text }) => text.includes('canary'));
    expect(outside.length).toBeGreaterThanOrEqual(14);
    expect(outside.filter(({ as }) => as === 'words' || as === 'plain')).toEqual([]);
  });
});
