import { describe, expect, it } from 'vitest';
import { checkInputs } from '../../lambdas/workflow/inputs.ts';
import { parseWorkflow, readWorkflow } from '../../lambdas/workflow/parse-workflow.ts';

const withInputs = (inputs: string, message = '{% inputs.key %}') => `name: example
inputs: ${inputs}
steps:
  - { id: show, tool: transform, with: { message: "${message}" } }
`;

const workflow = parseWorkflow(
  withInputs(`
  key: { type: string, required: true, maxLength: 5 }
  level: { type: string, enum: [low, high], default: low }
  count: { type: integer, min: 2, max: 5, default: 3 }
  share: { type: number, enum: [0.5, 1] }
  since: { type: string, format: date-time }
  sure: { type: boolean }
  tickets:
    type: array
    maxItems: 2
    items: { type: object, properties: { id: { type: string, required: true }, urgent: { type: boolean } } }`),
  'test.yaml',
);

describe('the inputs of a workflow', () => {
  it('are returned with the defaults of those that are not given', () => {
    const given = {
      key: 'abc',
      tickets: [{ id: 'INC1', urgent: true }],
      since: '2026-03-02T09:00:00+01:00',
      sure: null,
    };
    expect(checkInputs(workflow, given)).toEqual({
      values: {
        key: 'abc',
        level: 'low',
        count: 3,
        tickets: [{ id: 'INC1', urgent: true }],
        since: '2026-03-02T09:00:00+01:00',
      },
    });
  });

  it.each<[string, Record<string, unknown>, string, string]>([
    ['a missing required input', {}, 'inputs.key', 'is missing; expected text'],
    ['null for a required input', { key: null }, 'inputs.key', 'is missing; expected text'],
    ['another type', { key: 7 }, 'inputs.key', 'must be text'],
    ['too long a text', { key: 'abcdef' }, 'inputs.key', 'must have at most 5 characters'],
    ['a value that is no choice', { key: 'a', level: 'hgih' }, 'inputs.level', 'must be low or high'],
    ['a number that is no choice', { key: 'a', share: 0.7 }, 'inputs.share', 'must be 0.5 or 1'],
    ['a number out of range', { key: 'a', count: 9 }, 'inputs.count', 'must be at most 5'],
    ['a fraction', { key: 'a', count: 2.5 }, 'inputs.count', 'must be a whole number'],
    ['a wrong format', { key: 'a', since: 'monday' }, 'inputs.since', 'must be a time: "2026-03-02T09:00:00Z"'],
    [
      'an unknown name',
      { key: 'a', cuont: 2, count: 2 },
      'inputs.cuont',
      'unknown field "cuont"; did you mean "count"?',
    ],
    [
      'a wrong item',
      { key: 'a', tickets: [{ id: 'x' }, { idd: 'x' }] },
      'inputs.tickets.1.id',
      'is missing; expected text',
    ],
    ['too many items', { key: 'a', tickets: [1, 2, 3] }, 'inputs.tickets', 'must have at most 2 items'],
    ['too many bytes', { key: 'a'.repeat(20_000) }, 'inputs', 'have 20010 bytes; the limit is 16384'],
  ])('%s is refused with its path', (_case, given, path, message) => {
    const checked = checkInputs(workflow, given);
    const problems = 'problems' in checked ? checked.problems : [];
    expect(problems.map((problem) => ({ ...problem, path: problem.path.join('.') }))).toContainEqual({ path, message });
  });

  it('a workflow without inputs takes none', () => {
    const { inputs: _none, ...plain } = workflow;
    expect(checkInputs(plain, {})).toEqual({ values: {} });
    expect(checkInputs(plain, { key: 'a' })).toEqual({
      problems: [{ path: ['inputs'], message: 'must be empty: the workflow example takes none' }],
    });
  });
});

describe('the definition of an input', () => {
  it.each([
    [
      'an unknown type',
      '{ key: { type: strin } }',
      'must be string or number or integer or boolean or object or array',
    ],
    [
      'an unknown field',
      '{ key: { type: string, requird: true } }',
      'unknown field "requird"; did you mean "required"?',
    ],
    ['a field of another type', '{ key: { type: string, max: 3 } }', 'unknown field "max"'],
    [
      'a name with a dash',
      '{ key: { type: string }, add-note: { type: string } }',
      'use letters, digits and underscores',
    ],
    ['a default of another type', '{ key: { type: integer, default: x } }', 'must be a number'],
    ['a default that is no choice', '{ key: { type: string, enum: [a], default: b } }', 'must be a'],
    ['a required input with a default', '{ key: { type: string, required: true, default: a } }', 'is never missing'],
    ['a list of lists', '{ key: { type: array, items: { type: array } } }', 'must be string or number'],
  ])('%s is refused', (_case, inputs, message) => {
    const read = readWorkflow(withInputs(inputs));
    expect('problems' in read && read.problems).toEqual([
      expect.objectContaining({ line: 2, message: expect.stringContaining(message) }),
    ]);
  });

  it('an expression may only refer to a defined input', () => {
    const read = readWorkflow(withInputs('{ ticket: { type: string } }', '{% inputs.tiket %}'));
    expect('problems' in read && read.problems[0]?.message).toBe('unknown input "tiket"; did you mean "ticket"?');
  });
});
