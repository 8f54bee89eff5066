import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { approvalCard } from '../../../lambdas/slack/card/approval-card.ts';
import { Workflow } from '../../../lambdas/workflow/workflow.ts';
import { PEOPLE } from '../../approval/people.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { SYS_ID } from '../workshop.ts';
import { GovernedWorkshop, needsApproval } from './governed-workshop.ts';

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  shop.policy.decision = () => ALLOWED;
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

/** Only the origin of a value matters, not the value: the model is not even called. */
const MODEL = '  - { id: classify, tool: model.invoke, when: "{% false %}", with: { prompt: which team } }';
const PICK = `{% steps.classify.output.team = 'db' ? '#db' : '#incidents' %}`;
const CHOSEN = (more = '') =>
  [
    'name: chosen',
    more,
    'steps:',
    MODEL,
    `  - { id: post, tool: slack.message.post, with: { channel: "${PICK}", text: hello } }`,
  ].join('\n');
const DERIVED = [{ field: 'channel', how: 'chosen' as const, from: ['classify'] }];

describe('a write to a target that a model has chosen', () => {
  it('waits for an approval even if policy allows it, and the card says why', async () => {
    const { message, approval } = await shop.upToGate(CHOSEN());
    expect(approval).toMatchObject({ asks: 'tainted', action: { derived: DERIVED }, requirement: { quorum: 1 } });
    expect(shop.writes()).toEqual([]);
    const card = JSON.stringify(approvalCard(approval, PEOPLE, Date.parse(approval.requestedAt)));
    expect(card).toContain('A model’s output influences the target of this write.');
    expect(card).toMatch(/A model .*classify.*chooses .*channel/);
    await shop.say(approval, 'ana');
    const { run, commits, sealed } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
    expect(shop.outside.channels.get('#incidents')).toHaveLength(1);
    expect(sealed).toBe(true);
    const decisions = commits.flatMap(({ events }) => events.filter(({ type }) => type === 'policy.decided'));
    expect(decisions.filter((event) => 'step' in event && event.step === 'post')).toEqual(
      [1, 2].map(() => expect.objectContaining({ derived: DERIVED })),
    );
    const bundle = shop.evidence.file(run.runId, 'bundle.json');
    expect(bundle.toString()).toContain('"derived":[{"field":"channel","from":["classify"],"how":"chosen"}]');
  });

  it('is not approved automatically by a high confidence', async () => {
    const sure = CHOSEN('validation: { mode: per_step, autoApproveThreshold: 0.5 }').replace(
      'id: post,',
      'id: post, confidence: "{% 1 %}",',
    );
    expect((await shop.upToGate(sure)).approval.asks).toBe('tainted');
  });

  it('says so where policy requires an approval too', async () => {
    shop.policy.decision = ({ action }) =>
      action.tool === 'slack.message.post' ? needsApproval({ quorum: 2 }) : ALLOWED;
    expect((await shop.upToGate(CHOSEN())).approval).toMatchObject({
      asks: 'policy',
      requirement: { quorum: 2 },
      action: { derived: DERIVED },
    });
  });

  it('still says so after an edit', async () => {
    const { message, approval } = await shop.upToGate(CHOSEN());
    await shop.say(approval, 'ana', { kind: 'edit', fields: { text: 'changed' } });
    expect((await shop.openApproval(message)).action).toMatchObject({ derived: DERIVED, fields: { text: 'changed' } });
  });
});

it('a write that a model decides to make waits for an approval', async () => {
  const yaml = [
    'name: whether',
    'steps:',
    MODEL,
    `  - { id: take, when: "{% $exists(steps.classify.output.skip) = false %}", tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { state: "2" } } }`,
  ].join('\n');
  const { approval } = await shop.upToGate(yaml);
  expect(approval).toMatchObject({ asks: 'tainted', action: { derived: [{ field: 'when', from: ['classify'] }] } });
  expect(JSON.stringify(approvalCard(approval, PEOPLE, 0))).toContain('decides whether this step runs');
});

it('a read of a target that a model has chosen waits for an approval', async () => {
  const chosen = `{% steps.classify.output.x = 1 ? '${SYS_ID}' : '${SYS_ID}' %}`;
  const yaml = [
    'name: read',
    'steps:',
    MODEL,
    `  - { id: look, tool: servicenow.incident.get, with: { sysId: "${chosen}", fields: [state] } }`,
  ].join('\n');
  expect((await shop.upToGate(yaml)).approval).toMatchObject({ asks: 'tainted', action: { effect: 'read' } });
  expect(shop.outside.calls).toEqual([]);
});

it('a workflow published before such targets were refused waits for an approval, or fails where a model picks approvers', async () => {
  const steps = [
    { id: 'classify', tool: 'model.invoke', when: '{% false %}', with: { prompt: 'p' } },
    { id: 'gate', tool: 'approval', with: { quorum: '{% steps.classify.output.two = true ? 2 : 1 %}' } },
  ];
  await shop.definitions.publishWorkflow('acme', Workflow.parse({ name: 'old', steps }), 1);
  const message = await shop.beginPublished('old');
  await shop.work(message);
  expect((await shop.now(message)).run).toMatchObject({
    status: 'failed_terminal',
    error: { code: 'WORKFLOW_INVALID', message: expect.stringMatching(/"quorum" determines who approves/) },
  });
});

it('its undo needs no second approval: it changes only what people approved', async () => {
  const pick = `{% steps.classify.output.n = 1 ? 'payments' : 'payments' %}`;
  const yaml = [
    'name: undone',
    'steps:',
    MODEL,
    `  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: "${pick}", number: 7, labels: [triage] } }`,
    '  - { id: signal, tool: wait.external, with: { event: go } }',
  ].join('\n');
  const { message, approval } = await shop.upToGate(yaml);
  await shop.say(approval, 'ana');
  await shop.work(message);
  await shop.command(message, { kind: 'rollback' });
  expect((await shop.finish(message)).run.compensation).toMatchObject([{ step: 'label', outcome: 'reversed' }]);
});
