import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Person } from '../../../lambdas/people/people.ts';
import type { Command } from '../../../lambdas/run-changes/control/control-run.ts';
import { controlRun } from '../../../lambdas/run-changes/control/control-run.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { ISSUE, SYS_ID } from '../workshop.ts';
import { ASSIGN, GovernedWorkshop, needsApproval } from './governed-workshop.ts';

/** May approve anything, under a name in every system. */
const MIA = Person.parse({
  id: 'mia',
  name: 'Mia',
  role: 'admin',
  identities: ['slack:T1/UMIA', 'github:Mia-Dev', 'servicenow: Mia.M '],
});
/** May not approve anything themselves. */
const DEL = Person.parse({ id: 'del', name: 'Del', role: 'member' });
const AWAY = { until: '2099-01-01T00:00:00.000Z', delegate: 'del' };

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  for (const person of [MIA, DEL]) await shop.definitions.savePerson('acme', person);
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const command = (message: StepMessage, given: Command, actor = 'mia') => controlRun(shop.worker, message, given, actor);
const UPDATE = (id: string, more = '') =>
  `  - { id: ${id}, ${more} tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { state: "2" } } }`;
const LABEL = `  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [triage] } }`;
const WAIT = '  - { id: signal, tool: wait.external, with: { event: go } }';
const onlyUndosAsk = () => {
  shop.policy.decision = ({ action }) => (action.undo ? needsApproval() : ALLOWED);
};

/** For each way to become a maker: starts a run that waits for the approval of a write of which Mia is a maker. */
const WAYS: Record<string, (actor: string) => Promise<StepMessage>> = {
  'sent the signal that the write waited for': async (actor) => {
    const message = await shop.begin(['name: signaled', 'steps:', WAIT, UPDATE('take')].join('\n'));
    await shop.work(message);
    await command(message, { kind: 'signal', event: 'go', payload: { state: '2' } }, actor);
    await shop.work(message);
    return message;
  },
  'sent a signal that another branch waited for, before the write was proposed': async (actor) => {
    const message = await shop.begin(
      [
        'name: branches',
        'steps:',
        WAIT,
        UPDATE('take', 'needs: [],'),
        LABEL.replace('tool:', 'needs: [take], tool:'),
      ].join('\n'),
    );
    shop.policy.decision = ({ action }) => (action.tool === 'github.labels.add' ? needsApproval() : ALLOWED);
    shop.outside.next('PATCH servicenow', { status: 429, retryAfterSeconds: 60 });
    await shop.work(message);
    await command(message, { kind: 'signal', event: 'go', payload: null }, actor);
    shop.clock.advance(120_000);
    await shop.work(message);
    return message;
  },
  'asked for the rollback whose undo it is': async (actor) => {
    onlyUndosAsk();
    const message = await shop.begin(['name: back', 'steps:', LABEL, WAIT].join('\n'));
    await shop.work(message);
    await command(message, { kind: 'rollback', reason: 'was wrong' }, actor);
    await shop.work(message);
    return message;
  },
  'had it tried again after it was rejected': async (actor) => {
    const { message, approval } = await shop.upToGate(ASSIGN('onReject: pause'));
    await shop.say(approval, 'ana', { kind: 'reject', reason: 'never' });
    await command(message, { kind: 'retry' }, actor);
    await shop.work(message);
    return message;
  },
  'had an approval step tried again after it was rejected': async (actor) => {
    const { message, approval } = await shop.upToGate(
      'name: gate\nonReject: pause\nsteps:\n  - { id: gate, tool: approval, with: { message: may I } }',
    );
    await shop.say(approval, 'ana', { kind: 'reject', reason: 'never' });
    await command(message, { kind: 'retry' }, actor);
    await shop.work(message);
    return message;
  },
  'sent a signal before an approval step': async (actor) => {
    const gate = '  - { id: gate, tool: approval, with: { message: may I } }';
    const message = await shop.begin(['name: gate', 'steps:', WAIT, gate].join('\n'));
    await shop.work(message);
    await command(message, { kind: 'signal', event: 'go', payload: null }, actor);
    await shop.work(message);
    return message;
  },
  'edited the write that is now undone': async () => {
    const message = await shop.begin(['name: edited', 'steps:', LABEL, WAIT].join('\n'));
    await shop.work(message);
    await shop.say(await shop.openApproval(message), 'mia', { kind: 'edit', fields: { labels: ['urgent'] } });
    await shop.say(await shop.openApproval(message), 'ana');
    await shop.work(message);
    await command(message, { kind: 'rollback' }, 'oscar');
    await shop.work(message);
    return message;
  },
  'edited a write whose output the write uses': () => editedThen(USES_COMMENT),
  'edited a write whose output reaches the write through other steps': () =>
    editedThen(
      '  - { id: facts, tool: transform, with: { text: "{% $string(steps.comment.output.commentId) %}" } }',
      '  - { id: message, tool: transform, with: { text: "{% steps.facts.output.text %}" } }',
      POST_TEXT('{% steps.message.output.text %}'),
    ),
  'edited a write whose output decides whether the write is made': () =>
    editedThen(POST_TEXT('posted').replace('tool:', 'when: "{% steps.comment.output.commentId != 0 %}", tool:')),
  'edited a write whose output an approval step shows': () =>
    editedThen('  - { id: gate, tool: approval, with: { message: "comment {% steps.comment.output.commentId %}" } }'),
  'opened the record that somebody else changed last': () =>
    begun({ source: 'servicenow', makers: ['somebody.else', '', ' MIA.M'] }),
  'wrote the issue that somebody else labeled': () => begun({ source: 'github', makers: ['octocat', 'mia-dev'] }),
  'caused the event': () => begun({ source: 'github', fields: { title: 't', number: 7, actor: ' MIA-dev ' } }),
};

const COMMENT =
  '  - { id: comment, tool: github.comment.create, with: { owner: octo-org, repo: payments, number: 7, body: hello } }';
const POST_TEXT = (text: string) =>
  `  - { id: post, tool: slack.message.post, with: { channel: C012345, text: "${text}" } }`;
const USES_COMMENT = POST_TEXT('comment {% steps.comment.output.commentId %}');

/** Mia edits the comment, Ana approves it, and the run waits with the next step. */
async function editedThen(...steps: string[]): Promise<StepMessage> {
  const message = await shop.begin(['name: edited', 'steps:', COMMENT, ...steps].join('\n'));
  await shop.work(message);
  await shop.say(await shop.openApproval(message), 'mia', { kind: 'edit', fields: { body: 'goodbye' } });
  await shop.say(await shop.openApproval(message), 'ana');
  await shop.work(message);
  return message;
}

async function begun(trigger: NonNullable<NonNullable<Parameters<typeof shop.begin>[1]>['trigger']>) {
  const message = await shop.begin(ASSIGN(), { trigger });
  await shop.work(message);
  return message;
}

describe.each(Object.entries(WAYS))('a person who %s', (_way, upToGate) => {
  it.each([
    ['in Slack', { via: 'slack' as const }],
    ['in the console', { via: 'console' as const }],
    ['over the API', { role: 'admin' as const }],
  ])('does not approve it %s', async (_where, by) => {
    const message = await upToGate('mia');
    const approval = await shop.openApproval(message);
    await expect(shop.say(approval, 'mia', 'approve', by)).rejects.toMatchObject({ code: 'APPROVAL_SELF' });
    expect(approval.makers).toContain('mia');
    const before = shop.writes().length;
    await shop.work(message);
    expect(shop.writes()).toHaveLength(before);
    expect(await shop.say(approval, 'olivia')).toMatchObject({ outcome: 'approved' });
  });

  it('cannot have it approved by their delegate', async () => {
    await shop.definitions.savePerson('acme', { ...MIA, away: AWAY });
    const approval = await shop.openApproval(await upToGate('mia'));
    await expect(shop.say(approval, 'del')).rejects.toMatchObject({ code: 'APPROVAL_FORBIDDEN' });
  });
});

it('a person who edited a write may approve a later one that does not use its output', async () => {
  const message = await editedThen(POST_TEXT('about something else'));
  const approval = await shop.openApproval(message);
  expect(approval.makers).toEqual([]);
  expect(await shop.say(approval, 'mia')).toMatchObject({ outcome: 'approved' });
});

it.each([['slack:T1/UMIA'], ['github:MIA-DEV'], ['servicenow:mia.m '], ['mia']])(
  'the sender of a signal as %s is the same person',
  async (actor) => {
    const signal = WAYS['sent the signal that the write waited for'];
    const approval = await shop.openApproval((await signal?.(actor)) as StepMessage);
    expect(approval.makers).toEqual(['mia']);
  },
);

it('a signal of a machine without a person makes no person a maker, and the event still names the machine', async () => {
  const approval = await shop.openApproval(
    (await WAYS['sent the signal that the write waited for']?.('ci')) as StepMessage,
  );
  expect(approval.makers).toEqual(['ci']);
  expect(await shop.say(approval, 'mia')).toMatchObject({ outcome: 'approved' });
});

it('a signal after a write was proposed does not void a vote for it', async () => {
  const message = await shop.begin(['name: branches', 'steps:', WAIT, UPDATE('take', 'needs: [],')].join('\n'));
  await shop.work(message);
  await shop.say(await shop.openApproval(message), 'mia');
  await command(message, { kind: 'signal', event: 'go', payload: null });
  expect((await shop.finish(message)).run.status).toBe('succeeded');
  expect(shop.writes()).toHaveLength(1);
});

it('an approval is no signal: a person who approves an approval step may approve the write after it', async () => {
  const gate = '  - { id: gate, tool: approval, with: { message: may I } }';
  const message = await shop.begin(['name: gate', 'steps:', gate, UPDATE('take')].join('\n'));
  await shop.work(message);
  await shop.say(await shop.openApproval(message), 'mia');
  await shop.work(message);
  expect(await shop.say(await shop.openApproval(message), 'mia')).toMatchObject({ outcome: 'approved' });
});

it('an empty name makes nobody a maker and does not hide a maker', async () => {
  const trigger = { source: 'servicenow' as const, fields: { title: 't', actor: '  ' }, makers: ['', ' ', 'mia.m'] };
  const { approval } = await shop.upToGate(ASSIGN(), { trigger });
  expect(approval.makers).toEqual(['mia']);
});

it('the person who requested a rollback is a maker of each of its undos', async () => {
  onlyUndosAsk();
  const message = await shop.begin(['name: back', 'steps:', LABEL, UPDATE('take'), WAIT].join('\n'));
  await shop.work(message);
  await command(message, { kind: 'rollback' });
  await shop.work(message);
  const first = await shop.openApproval(message);
  await shop.say(first, 'ana');
  await shop.work(message);
  const second = await shop.openApproval(message);
  expect([first, second].map(({ stepId, makers }) => [stepId, makers])).toEqual([
    ['undo_take', ['mia']],
    ['undo_label', ['mia']],
  ]);
  await shop.say(second, 'ana');
  expect((await shop.finish(message)).run.status).toBe('canceled');
  expect(shop.outside.issueLabels.get(ISSUE)).toEqual(['bug']);
});
