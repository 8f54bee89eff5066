import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SYS_ID, Workshop } from '../workshop.ts';

let workshop: Workshop;
beforeEach(() => {
  workshop = new Workshop();
  vi.stubGlobal('fetch', workshop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const NOTE = (note: string) => `
name: note
steps:
  - { id: skipped, tool: transform, when: "{% false %}", with: {} }
  - { id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: "${note}" } }
`;
const notes = () => workshop.outside.incidents.get(SYS_ID)?.workNotes ?? [];

it.each([
  ['a path without a value', '{% trigger.titel %}', 'trigger.titel'],
  ['a path without a value in a text', 'about {% trigger.titel %}', 'trigger.titel'],
  ['null', 'about {% trigger.nothing %}', 'trigger.nothing'],
  ['the output of a skipped step', 'about {% steps.skipped.output.x %}', 'steps.skipped.output.x'],
])('%s fails the step and writes nothing', async (_case, note, source) => {
  const fields = { title: 'Checkout fails', nothing: null };
  const message = await workshop.begin(NOTE(note), { trigger: { fields } });
  await workshop.work(message);
  const { run, steps } = await workshop.now(message);
  expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'MISSING_VALUE' } });
  expect(steps.at(-1)).toMatchObject({
    id: 'note',
    error: { message: `{% ${source} %} has no value; correct it, or give a default: {% (…) ?: 'default' %}` },
  });
  expect(notes()).toEqual([]);
});

it.each([
  ['a default', "about {% trigger.titel ?: '-' %}", 'about -'],
  ['a default for null', "{% trigger.nothing ?: '-' %}", '-'],
  ['zero and false', '{% 0 %} {% false %}', '0 false'],
])('%s is written', async (_case, note, written) => {
  const message = await workshop.begin(NOTE(note), { trigger: { fields: { title: 'Checkout fails', nothing: null } } });
  await workshop.work(message);
  expect((await workshop.now(message)).run.status).toBe('succeeded');
  expect(notes()).toEqual([expect.stringContaining(written)]);
});
