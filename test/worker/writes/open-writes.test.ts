import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { GovernedWorkshop } from '../governance/governed-workshop.ts';
import { die, ISSUE, SYS_ID } from '../workshop.ts';

/** Writes whose outcome is unknown, after timeouts and failures. */

/** 30 s of the function, 10 s of a request, 10 s between clocks. */
const QUARANTINE_MS = 50_000;

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
  shop.policy.decision = () => ALLOWED;
});
afterEach(() => vi.unstubAllGlobals());

const NOWHERE = 'f'.repeat(32);
const labels = () => shop.outside.issueLabels.get(ISSUE);
const notes = () => shop.outside.incidents.get(SYS_ID)?.workNotes ?? [];
const group = () => shop.outside.incidents.get(SYS_ID)?.fields.category;
const LABEL =
  '{ id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [triage] } }';
const note = (settings = '') =>
  `{ id: note, ${settings} tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: hello } }`;
const assign = (settings = '') =>
  `{ id: assign, ${settings} tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: network } } }`;
const GONE = `{ id: gone, tool: servicenow.incident.update, with: { sysId: "${NOWHERE}", fields: { state: "6" } } }`;
const workflow = (settings: string, ...steps: string[]) =>
  ['name: open-writes', settings, 'steps:', ...steps.map((step) => `  - ${step}`)].join('\n');

describe('a write whose attempts are used up', () => {
  it('is still probed, and recovered if it was made', async () => {
    const message = await shop.begin(workflow('', note('retry: { attempts: 1 },')));
    shop.outside.next('PATCH servicenow', 'lost_answer');
    const { run, receipts } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
    expect(receipts).toMatchObject([{ outcome: 'succeeded', recovered: true }]);
    expect(shop.outside.callsOf('PATCH servicenow')).toHaveLength(1);
  });

  it('has failed, and needs no human, if it was not made', async () => {
    const message = await shop.begin(workflow('', note('retry: { attempts: 1 },')));
    shop.outside.next('PATCH servicenow', 'lost_request');
    const { run, receipts } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'RETRIES_EXHAUSTED' } });
    expect(receipts).toMatchObject([{ outcome: 'failed' }]);
    expect(notes()).toEqual([]);
  });

  it('has failed if the target has the values from before', async () => {
    const message = await shop.begin(workflow('', assign('retry: { attempts: 1 },')));
    shop.outside.next('PATCH servicenow', 'lost_request');
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'RETRIES_EXHAUSTED' } });
    expect(group()).toBe('');
  });

  it('needs a human if the target has neither the values from before nor from after', async () => {
    const message = await shop.begin(workflow('', assign('retry: { attempts: 1 },')));
    shop.outside.next('PATCH servicenow', 'lost_request');
    await shop.work(message);
    const incident = shop.outside.incidents.get(SYS_ID);
    if (incident) incident.fields.category = 'a third party';
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'needs_human', error: { code: 'OUTCOME_UNKNOWN' } });
    expect(group()).toBe('a third party');
  });

  it('needs a human if its target cannot be read', async () => {
    const message = await shop.begin(workflow('', note('retry: { attempts: 1 },')));
    shop.outside.next('PATCH servicenow', 'lost_answer');
    shop.outside.next('GET servicenow', ...Array(9).fill({ status: 503 }));
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'needs_human', error: { code: 'OUTCOME_UNKNOWN' } });
    expect(shop.outside.callsOf('PATCH servicenow')).toHaveLength(1);
  });
});

describe('a lost response', () => {
  it('does not lose the reversal: the values from before are stored', async () => {
    const message = await shop.begin(workflow('onFailure: rollback', assign(), GONE));
    shop.outside.next('PATCH servicenow', 'lost_answer');
    const { run } = await shop.finish(message);
    expect(run.compensation).toMatchObject([{ step: 'assign', outcome: 'reversed' }]);
    expect(group()).toBe('');
  });

  it('is not repeated before the end of its quarantine, even after the deadline or by a person', async () => {
    const message = await shop.begin(workflow('deadlineSeconds: 60', note()));
    shop.clock.advance(40_000);
    shop.outside.next('PATCH servicenow', 'lost_answer');
    await shop.work(message);
    await shop.command(message, { kind: 'pause' });
    shop.clock.advance(QUARANTINE_MS - 1);
    await shop.command(message, { kind: 'resume' });
    await shop.work(message);
    expect(shop.outside.calls).toHaveLength(1);
    shop.clock.advance(1);
    await shop.work(message);
    expect(shop.outside.callsOf('GET servicenow')).toHaveLength(1);
    expect((await shop.now(message)).run.status).toBe('succeeded');
  });

  it('of a read needs no probe: it is repeated, and its failure is a failure', async () => {
    const read = `{ id: get, tool: servicenow.incident.get, with: { sysId: "${NOWHERE}", fields: [state] } }`;
    const message = await shop.begin(workflow('onFailure: rollback', LABEL, read));
    let alive = true;
    shop.disturb((name, run) => {
      if (name !== 'GET servicenow' || !alive) return run();
      alive = false;
      return die();
    });
    shop.queue.send(message);
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'failed_terminal', compensation: [{ step: 'label', outcome: 'reversed' }] });
    expect(labels()).toEqual(['bug']);
  });
});

describe('a timeout', () => {
  it.each([
    ['the workflow', 'onFailure: rollback', ''],
    ['the step at work', '', 'rollback: auto,'],
  ])('rolls back the writes, if %s says so', async (_who, settings, rollback) => {
    const message = await shop.begin(workflow(`deadlineSeconds: 300\n${settings}`, LABEL, assign(rollback)));
    shop.outside.next('GET servicenow', ...Array(50).fill({ status: 429, retryAfterSeconds: 600 }));
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({
      status: 'failed_terminal',
      error: { code: 'RUN_TIMED_OUT' },
      compensation: [{ step: 'label', outcome: 'reversed' }],
    });
    expect(labels()).toEqual(['bug']);
  });

  it('for a signal rolls back the writes, if the workflow says so', async () => {
    const wait = '{ id: go, tool: wait.external, with: { event: go, timeoutSeconds: 60 } }';
    const { run } = await shop.finish(await shop.begin(workflow('onFailure: rollback', LABEL, wait)));
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'WAIT_TIMED_OUT' } });
    expect(labels()).toEqual(['bug']);
  });

  it('ends the run as timed out if there is nothing to undo', async () => {
    const wait = '{ id: go, tool: wait.external, with: { event: go, timeoutSeconds: 60 } }';
    const { run } = await shop.finish(await shop.begin(workflow('', LABEL, wait)));
    expect(run).toMatchObject({ status: 'timed_out', error: { code: 'WAIT_TIMED_OUT' } });
    expect(labels()).toEqual(['bug', 'triage']);
  });

  it('needs a human if a write may have been made', async () => {
    const message = await shop.begin(workflow('deadlineSeconds: 60', note()));
    shop.clock.advance(30_000);
    shop.outside.next('PATCH servicenow', 'lost_answer');
    shop.queue.send(message);
    const { run, receipts } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'needs_human', error: { code: 'OUTCOME_UNKNOWN' } });
    expect(receipts).toMatchObject([{ outcome: 'unknown' }]);
  });
});
