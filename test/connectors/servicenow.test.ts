import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { updateIncident } from '../../lambdas/connectors/servicenow/incidents.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { ISSUE, SYS_ID, Workshop } from '../worker/workshop.ts';

afterEach(() => vi.unstubAllGlobals());

const REFUSED = { code: 'TARGET_REFUSED', retryable: false };
const UNKNOWN = { code: 'OUTCOME_UNKNOWN' };

describe('an update of an incident', () => {
  const access = { baseUrl: 'http://servicenow', instance: 'acme', credential: { username: 'x', password: 'y' } };
  /** The result of writing these fields if ServiceNow returns those. */
  const update = (fields: object, before: Record<string, string> | undefined, shown: object, first?: object) => {
    vi.stubGlobal('fetch', async () => Response.json({ result: shown }));
    const input = updateIncident.parse({ sysId: SYS_ID, fields });
    const found = { ...(before && { before }), ...(first && { first: { ...first } }) };
    return updateIncident.perform(input, { access, mark: 'm', openSince: STORY_BEGINS_AT, ...found });
  };

  it('to which a business rule gave another value succeeds, and its undo expects that value', async () => {
    const result = await update({ priority: 1 }, { priority: '4' }, { priority: '2' });
    expect(result).toMatchObject({
      output: { fields: { priority: '2' } },
      reversal: { input: { fields: { priority: '4' } }, expects: { priority: '2' } },
    });
    expect(result).not.toHaveProperty('incomplete');
  });

  it('undoes only what it has changed', async () => {
    const before = { state: '2', assignment_group: 'a' };
    const { reversal, output } = await update({ state: 2, assignment_group: 'b' }, before, {
      state: '2',
      assignment_group: { link: 'http://x', value: 'b' },
    });
    expect(reversal).toMatchObject({
      input: { sysId: SYS_ID, fields: { assignment_group: 'a' } },
      expects: { assignment_group: 'b' },
    });
    expect(output).toMatchObject({ fields: { state: '2', assignment_group: 'b' } });
  });

  it('of values that are already there has no reversal', async () => {
    const { reversal } = await update({ state: '2' }, { state: '2' }, { state: '2' });
    expect(reversal).toEqual({ irreversible: expect.stringContaining('nothing was changed') });
  });

  it('that changed nothing is refused, also if some fields already had the value', async () => {
    const about = { ...REFUSED, message: expect.stringMatching(/did not change priority/) };
    const shown = { state: '2', priority: '4' };
    await expect(update({ priority: '1' }, { priority: '4' }, shown)).rejects.toMatchObject(about);
    await expect(update({ state: '2', priority: '1' }, shown, shown)).rejects.toMatchObject(about);
  });

  describe('repeated after a lost response', () => {
    const asked = { due_date: '2026-12-01', state: '2' };
    const first = { due_date: '', state: '1' };
    const stored = { due_date: '2026-12-01 00:00:00', state: '2' };

    it('that changes nothing succeeded the first time, and its undo restores the state before that', async () => {
      expect(await update(asked, stored, stored, first)).toMatchObject({
        before: first,
        reversal: { input: { fields: first }, expects: stored },
      });
    });

    it('restores values that others set in between', async () => {
      expect(await update(asked, { ...stored, state: '3' }, stored, first)).toMatchObject({
        before: { due_date: '', state: '3' },
        reversal: { input: { fields: { due_date: '', state: '3' } }, expects: stored },
      });
    });

    it('is refused if neither attempt changed anything', async () => {
      const shown = { due_date: '' };
      await expect(update({ due_date: '2026-12-01' }, shown, shown, shown)).rejects.toMatchObject(REFUSED);
    });
  });

  it('whose fields are hidden afterwards has an unknown outcome', async () => {
    await expect(update({ state: '2' }, { state: '1' }, {})).rejects.toMatchObject(UNKNOWN);
  });

  it('with another value has an unknown outcome if the earlier value is not known', async () => {
    await expect(update({ state: '2' }, undefined, { state: '1' })).rejects.toMatchObject(UNKNOWN);
    expect((await update({ state: '2' }, undefined, { state: '2' })).reversal).toHaveProperty('irreversible');
  });
});

describe('a run', () => {
  let shop: Workshop;
  beforeEach(() => {
    shop = new Workshop();
    vi.stubGlobal('fetch', shop.outside.fetch);
  });
  const fields = () => shop.outside.incidents.get(SYS_ID)?.fields ?? {};
  const labelled = `{ id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [triage] } }`;
  const updating = (asked: string) =>
    `{ id: update, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: ${asked} } }`;

  it('undoes a value that ServiceNow stores in another form', async () => {
    fields().due_date = '';
    const failing = '{ id: fail, tool: transform, with: { x: "{% $error(1) %}" } }';
    const message = await shop.begin(
      `name: due\nonFailure: rollback\nsteps:\n  - ${updating('{ due_date: "2026-12-01" }')}\n  - ${failing}\n`,
    );
    const { run, receipts } = await shop.finish(message);
    expect(receipts[0]).toMatchObject({
      outcome: 'reversed',
      output: { fields: { due_date: '2026-12-01 00:00:00' } },
    });
    expect(run.compensation).toMatchObject([{ step: 'update', outcome: 'reversed' }]);
    expect(shop.outside.callsOf('PATCH servicenow').map(({ body }) => body)).toEqual([
      { due_date: '2026-12-01' },
      { due_date: '' },
    ]);
    expect(fields().due_date).toBe('');
  });

  it('writes nothing if a field does not exist', async () => {
    const asked = updating('{ category: network, no_such_column: "1" }');
    const message = await shop.begin(`name: typo\nonFailure: rollback\nsteps:\n  - ${labelled}\n  - ${asked}\n`);
    const { run, steps } = await shop.finish(message);
    expect(steps.find(({ id }) => id === 'update')).toMatchObject({
      status: 'failed_terminal',
      error: { code: 'TARGET_REFUSED', message: expect.stringContaining('no_such_column') },
    });
    expect(shop.outside.callsOf('PATCH servicenow')).toEqual([]);
    expect(run.compensation).toMatchObject([{ step: 'label', outcome: 'reversed' }]);
    expect(shop.outside.issueLabels.get(ISSUE)).toEqual(['bug']);
  });

  it('undoes only the part of a write that ServiceNow made', async () => {
    const asked = updating('{ state: "2", number: INC7 }');
    const message = await shop.begin(`name: part\nonFailure: rollback\nsteps:\n  - ${asked}\n  - ${labelled}\n`);
    const { run, steps } = await shop.finish(message);
    expect(steps.find(({ id }) => id === 'update')).toMatchObject({
      status: 'failed_terminal',
      error: { code: 'TARGET_REFUSED', message: expect.stringContaining('number') },
    });
    expect(run.compensation).toMatchObject([{ step: 'update', outcome: 'reversed' }]);
    expect(shop.outside.callsOf('PATCH servicenow').map(({ body }) => body)).toEqual([
      { state: '2', number: 'INC7' },
      { state: '1' },
    ]);
    expect(shop.outside.callsOf('POST github')).toEqual([]);
  });

  const NOTE = `name: note\nsteps:\n  - { id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: seen } }\n`;
  const notes = () => shop.outside.incidents.get(SYS_ID)?.workNotes ?? [];

  it('fails, and says so, if an ACL drops its note', async () => {
    const incident = shop.outside.incidents.get(SYS_ID);
    if (incident) incident.dropsNotes = true;
    const { run } = await shop.finish(await shop.begin(NOTE));
    expect(run).toMatchObject({
      status: 'failed_terminal',
      error: { code: 'TARGET_REFUSED', message: expect.stringContaining('did not add the note') },
    });
  });

  it('whose note is hidden needs a person, and writes it once', async () => {
    const incident = shop.outside.incidents.get(SYS_ID);
    if (incident) incident.hidesNotes = true;
    shop.outside.next('PATCH servicenow', 'lost_answer');
    const { run } = await shop.finish(await shop.begin(NOTE));
    expect(run).toMatchObject({ status: 'needs_human', error: { code: 'OUTCOME_UNKNOWN' } });
    expect(notes()).toHaveLength(1);
    expect(shop.outside.callsOf('PATCH servicenow')).toHaveLength(1);
  });

  it('whose response was lost undoes a value that ServiceNow stores in another form', async () => {
    fields().due_date = '';
    shop.outside.next('PATCH servicenow', 'lost_answer');
    const failing = '{ id: fail, tool: transform, with: { x: "{% $error(1) %}" } }';
    const message = await shop.begin(
      `name: lost\nonFailure: rollback\nsteps:\n  - ${updating('{ due_date: "2026-12-01" }')}\n  - ${failing}\n`,
    );
    const { run, receipts } = await shop.finish(message);
    expect(receipts[0]).toMatchObject({ outcome: 'reversed', before: { due_date: '' } });
    expect(run.compensation).toMatchObject([{ step: 'update', outcome: 'reversed' }]);
    expect(fields().due_date).toBe('');
  });
});
