import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { controlRun } from '../../../lambdas/run-changes/control/control-run.ts';
import { wholeRun } from '../../fakes/whole-run.ts';
import { GovernedWorkshop, needsApproval } from '../governance/governed-workshop.ts';
import { SYS_ID } from '../workshop.ts';

const [DATABASE, OTHER, DESK] = ['a'.repeat(32), 'b'.repeat(32), 'd'.repeat(32)];

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
  shop.outside.incidents.set(SYS_ID, { fields: { assignment_group: DESK, number: 'INC1' }, workNotes: [] });
  groups([DATABASE, 'Database'], [DESK, 'Service Desk']);
});
afterEach(() => vi.unstubAllGlobals());

function groups(...rows: [sysId: string, name: string][]): void {
  shop.outside.records.set('sys_user_group', new Map(rows.map(([sys_id, name]) => [sys_id, { sys_id, name }])));
}
let workflows = 0;
const ASSIGN = (group: string, more = '') => `
name: assign-${++workflows}
${more}
steps:
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { assignment_group: "${group}" } } }
`;
const lookups = () => shop.outside.callsOf('GET servicenow').filter(({ path }) => path.includes('sys_user_group'));
const written = () => shop.outside.callsOf('PATCH servicenow').map(({ body }) => body);
const allow = () => {
  shop.policy.decision = () => ({ ...needsApproval(), verdict: 'allow' }) as never;
};

describe('a record that a step names', () => {
  it('is proposed, approved, stored and written by its id, even if another record has its name by then', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN('Database'));
    expect(approval).toMatchObject({
      action: { fields: { assignment_group: DATABASE } },
      after: { assignment_group: DATABASE },
    });
    const [waiting] = (await shop.now(message)).steps;
    expect(waiting).toMatchObject({ input: { fields: { assignment_group: DATABASE } } });
    groups([OTHER, 'Database']);
    await shop.say(approval, 'ana');
    const { run, receipts } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
    expect(written()).toEqual([{ assignment_group: DATABASE }]);
    expect(receipts).toMatchObject([{ output: { fields: { assignment_group: DATABASE } } }]);
  });

  it('is the same in a retry', async () => {
    allow();
    const message = await shop.begin(ASSIGN('Database'));
    shop.outside.next('PATCH servicenow', 'lost_request');
    await shop.work(message);
    groups([OTHER, 'Database']);
    await shop.finish(message);
    expect(written()).toEqual([{ assignment_group: DATABASE }]);
    expect(lookups()).toHaveLength(1);
  });

  it('is not looked up if the step gives a sys_id or clears the field', async () => {
    allow();
    for (const group of [OTHER, '']) await shop.finish(await shop.begin(ASSIGN(group)));
    expect(written()).toEqual([{ assignment_group: OTHER }, { assignment_group: '' }]);
    expect(lookups()).toEqual([]);
  });

  it.each([
    ['unknown', 'Databse', 'no record of sys_user_group is named "Databse"; similar names: "Database", "Data Science"'],
    ['not unique', 'Twins', `2 records of sys_user_group are named "Twins" (${OTHER}, ${'c'.repeat(32)})`],
    ['a query of its own', 'x^active=true', 'a name has 1 to 100 characters, without ^ and line breaks'],
    ['a script', ' JavaScript:gs.getUserID()', 'does not start with javascript:'],
  ])('writes nothing and requests no approval if its name is %s', async (_what, name, why) => {
    groups([DATABASE, 'Database'], ['e'.repeat(32), 'Data Science'], [OTHER, 'Twins'], ['c'.repeat(32), 'Twins']);
    const message = await shop.begin(ASSIGN(name));
    const { run, steps } = await shop.finish(message);
    expect(run.status).toBe('failed_terminal');
    expect(steps).toMatchObject([{ error: { code: 'INPUT_INVALID', message: expect.stringContaining(why) } }]);
    expect((await wholeRun(shop.runs, message.tenant, message.runId))?.approvals).toEqual([]);
    expect(shop.writes()).toEqual([]);
  });

  it('is looked up again if an operator retries the step after correcting the name', async () => {
    allow();
    const message = await shop.begin(ASSIGN('Payments', 'onFailure: pause'));
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('paused');
    groups([OTHER, 'Payments']);
    await controlRun(shop.worker, message, { kind: 'retry' }, 'oscar');
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(written()).toEqual([{ assignment_group: OTHER }]);
  });

  it('is looked up later if ServiceNow cannot be read: not before Retry-After, and a limited number of times', async () => {
    allow();
    const message = await shop.begin(ASSIGN('Database'));
    shop.outside.next('GET servicenow', { status: 429, retryAfterSeconds: 3_000 }, { status: 503 });
    await shop.work(message);
    const [step] = (await shop.now(message)).steps;
    expect(step).toMatchObject({ status: 'failed_retryable', attempt: 1, error: { code: 'TARGET_REFUSED' } });
    expect(Date.parse((step as { retryAt: string }).retryAt) - shop.clock.now()).toBeGreaterThanOrEqual(3_000_000);
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(written()).toEqual([{ assignment_group: DATABASE }]);

    const gone = await shop.begin(ASSIGN('Service Desk'));
    shop.outside.next('GET servicenow', ...Array.from({ length: 5 }, () => ({ status: 503 })));
    const { run, steps } = await shop.finish(gone);
    expect(run.status).toBe('failed_terminal');
    const why = 'the records that servicenow.incident.update names could not be read: ServiceNow failed (503)';
    expect(steps).toMatchObject([{ error: { code: 'TARGET_REFUSED', message: `${why}; nothing was proposed` } }]);
    expect(written()).toHaveLength(1);
  });
});

describe('an approval of a phase', () => {
  it('covers the record that people saw, and no other that has its name later', async () => {
    shop.outside.incidents.set(SYS_ID, {
      fields: { assignment_group: DESK, state: '1', number: 'INC1' },
      workNotes: [],
    });
    const update = (id: string, fields: string) =>
      `  - { id: ${id}, phase: main, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: ${fields} } }\n`;
    const { message, approval } = await shop.upToGate(
      `name: phased\nvalidation: { mode: per_phase }\nsteps:\n${update('take', '{ state: "2" }')}${update('assign', '{ assignment_group: Database }')}`,
    );
    expect(approval.phase?.writes).toMatchObject([{ action: { fields: { assignment_group: DATABASE } } }]);
    groups([OTHER, 'Database']);
    await shop.say(approval, 'ana');
    await shop.work(message);
    const second = await shop.openApproval(message);
    expect(second.action?.fields).toEqual({ assignment_group: OTHER });
    expect(written()).toEqual([{ state: '2' }]);
  });
});

describe('an edit of a record', () => {
  const edit = (group: string) => ({ kind: 'edit' as const, fields: { assignment_group: group } });

  it('accepts a sys_id, or a name that the approval shows', async () => {
    for (const given of ['service desk', `Service Desk (${DESK})`, DESK]) {
      const { message, approval } = await shop.upToGate(ASSIGN(DATABASE));
      await shop.say(approval, 'ana', edit(given));
      const edited = await shop.openApproval(message);
      expect(edited.action?.fields).toEqual({ assignment_group: DESK });
      // Slack repeats a request whose answer was late.
      expect(await shop.say(approval, 'ana', edit(given))).toMatchObject({ outcome: 'already' });
    }
    expect(written()).toEqual([]);
  });

  it('refuses another name, and changes nothing', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN(DATABASE));
    await expect(shop.say(approval, 'ana', edit('Network'))).rejects.toMatchObject({
      code: 'INPUT_INVALID',
      message: `assignment_group: give the sys_id instead of this name; this approval knows Service Desk (${DESK}), Database (${DATABASE})`,
    });
    expect(await shop.openApproval(message)).toMatchObject({ edits: [], action: approval.action });
  });
});
