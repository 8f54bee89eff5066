import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { hashOf } from '../../../lambdas/run/canonical-json.ts';
import { ISSUE, Workshop } from '../workshop.ts';

const LABEL = `
name: label
inputs:
  label: { type: string, required: true, maxLength: 20 }
  number: { type: integer, default: 7 }
steps:
  - id: label
    tool: github.labels.add
    with: { owner: octo-org, repo: payments, number: "{% inputs.number %}", labels: ["{% inputs.label %}"] }
`;

let workshop: Workshop;
beforeEach(() => {
  workshop = new Workshop();
  vi.stubGlobal('fetch', workshop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

it('a run uses the inputs that were given, and the defaults of the others', async () => {
  const message = await workshop.begin(LABEL, { inputs: { label: 'triage' } });
  await workshop.work(message);
  const { run, commits } = await workshop.now(message);
  expect(run).toMatchObject({ status: 'succeeded', inputs: { label: 'triage', number: 7 } });
  expect(workshop.outside.issueLabels.get(ISSUE)).toEqual(['bug', 'triage']);
  const enriched = commits.flatMap(({ events }) => events).find(({ type }) => type === 'run.enriched');
  expect(enriched).toMatchObject({ inputsHash: hashOf({ label: 'triage', number: 7 }) });
});

it('an automation maps inputs from the event; a given value wins and is never evaluated', async () => {
  const inputsFrom = { label: '{% trigger.payload.action %}', number: '{% trigger.number %}' };
  const mapped = await workshop.begin(LABEL, { inputsFrom });
  await workshop.work(mapped);
  expect((await workshop.now(mapped)).run.inputs).toEqual({ label: 'opened', number: 7 });
  const given = await workshop.beginPublished('label', { inputsFrom, inputs: { label: '{% 1 + 1 %}' } });
  await workshop.work(given);
  const { run } = await workshop.now(given);
  expect(run.inputs).toEqual({ label: '{% 1 + 1 %}', number: 7 });
  expect(run.inputsFrom).toBeUndefined();
  expect(workshop.outside.issueLabels.get(ISSUE)).toEqual(['bug', 'opened', '{% 1 + 1 %}']);
});

it.each([
  ['a required input has no value', { label: '{% trigger.payload.lable %}' }, 'inputs.label is missing; expected text'],
  ['a value does not fit', { label: '{% trigger.number %}' }, 'inputs.label must be text'],
  ['an input is unknown', { label: 'a', labels: 'b' }, 'inputs.labels unknown field "labels"; did you mean "label"?'],
])('the run fails clearly and calls nothing if %s', async (_case, inputsFrom, text) => {
  const message = await workshop.begin(LABEL, { inputsFrom });
  await workshop.work(message);
  expect((await workshop.now(message)).run).toMatchObject({
    status: 'failed_terminal',
    error: { code: 'INPUT_INVALID', message: text },
  });
  expect(workshop.outside.calls).toEqual([]);
});
