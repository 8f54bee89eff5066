import * as z from 'zod';
import { CountersignError } from '../run/errors.ts';
import type { Problem } from './checks/check-expressions.ts';
import { inputProblems, schemaProblems } from './checks/check-input.ts';
import type { Workflow } from './workflow.ts';

/** No dashes: in an expression, `inputs.add-note` is a subtraction. */
const INPUT_NAME = /^[a-z][A-Za-z0-9_]{0,62}$/;
const INPUTS_MAX = 50;
const TEXT_MAX_CHARACTERS = 8_000;
const ITEMS_MAX = 1_000;
const CHOICES_MAX = 100;
/** The run row stores the inputs, and every commit writes that row. */
export const INPUTS_MAX_BYTES = 16 * 1024;

const FORMATS = {
  date: () => z.iso.date('must be a date: "2026-03-02"'),
  'date-time': () => z.iso.datetime({ offset: true, message: 'must be a time: "2026-03-02T09:00:00Z"' }),
  email: () => z.email('must be an e-mail address'),
  uri: () => z.url('must be an address: "https://..."'),
  uuid: () => z.guid('must be a UUID'),
} as const;

const typed = <Type extends string>(type: Type) => z.literal(type).describe('The type of the value.');
const choices = <Value extends z.ZodType>(value: Value) =>
  z.array(value).min(1).max(CHOICES_MAX).optional().describe('The values that are allowed.');
const byDefault = <Value extends z.ZodType>(value: Value) =>
  value.optional().describe('The value if nobody gives one.');

const Name = z.string().regex(INPUT_NAME, 'use letters, digits and underscores; start with a lower-case letter');

/** Few workflows take inputs, so their schemas are created with the first of them. */
const InputDefinition = z.lazy(() => {
  const described = {
    description: z.string().max(500).optional().describe('What the input means, for the person who starts the run.'),
    required: z
      .boolean()
      .default(false)
      .describe('A run needs this input. An optional input without a default has no value if nobody gives one.'),
  };

  const Text = z.strictObject({
    type: typed('string'),
    ...described,
    default: byDefault(z.string()),
    enum: choices(z.string()),
    format: z
      .enum(Object.keys(FORMATS) as (keyof typeof FORMATS)[])
      .optional()
      .describe('What the text must be.'),
    minLength: z.int().min(0).max(TEXT_MAX_CHARACTERS).optional().describe('The shortest text, in characters.'),
    maxLength: z.int().min(1).max(TEXT_MAX_CHARACTERS).optional().describe('The longest text, in characters.'),
  });

  const numeric = {
    ...described,
    default: byDefault(z.number()),
    enum: choices(z.number()),
    min: z.number().optional().describe('The smallest number.'),
    max: z.number().optional().describe('The largest number.'),
  };
  const Numeric = z.strictObject({ type: typed('number'), ...numeric });
  const Whole = z.strictObject({ type: typed('integer'), ...numeric });
  const Flag = z.strictObject({ type: typed('boolean'), ...described, default: byDefault(z.boolean()) });

  const Scalar = z.discriminatedUnion('type', [Text, Numeric, Whole, Flag]);

  const Structure = z.strictObject({
    type: typed('object'),
    ...described,
    properties: z.record(Name, Scalar).describe('The fields of the object, by name.'),
    default: byDefault(z.record(z.string(), z.unknown())),
  });
  const List = z.strictObject({
    type: typed('array'),
    ...described,
    items: z.discriminatedUnion('type', [...Scalar.options, Structure]).describe('What each item must be.'),
    default: byDefault(z.array(z.unknown())),
    minItems: z.int().min(0).max(ITEMS_MAX).optional().describe('The fewest items.'),
    maxItems: z.int().min(1).max(ITEMS_MAX).optional().describe('The most items.'),
  });

  return z.discriminatedUnion('type', [...Scalar.options, Structure, List]).superRefine((definition, context) => {
    const { default: value, required } = definition;
    const at = (path: PropertyKey[], message: string) => context.addIssue({ code: 'custom', path, message });
    if (JSON.stringify(definition).includes('{%')) at([], 'must be constant, without expressions');
    if (value === undefined) return;
    if (required) at(['required'], 'an input with a default is never missing; remove "required" or "default"');
    for (const { path, message } of schemaProblems(valueSchema(definition), value)) at(['default', ...path], message);
  });
});
type InputDefinition = z.infer<typeof InputDefinition>;
type DefinitionOf<Type> = Extract<InputDefinition, { type: Type }>;

/** The values that a workflow takes when it starts, by name: `inputs.name` in expressions. */
export const WorkflowInputs = z
  .record(Name, InputDefinition)
  .refine((inputs) => Object.keys(inputs).length <= INPUTS_MAX, `a workflow has at most ${INPUTS_MAX} inputs`);

export type InputValues = Record<string, unknown>;

/**
 * Checks the values that somebody gives to a workflow. Returns them with defaults, or every problem with its path. A value of
 * null is not given.
 */
export function checkInputs(
  { name, inputs = {} }: Pick<Workflow, 'name' | 'inputs'>,
  values: InputValues,
): { values: InputValues } | { problems: Problem[] } {
  const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null && value !== undefined));
  if (Object.keys(inputs).length === 0 && Object.keys(given).length > 0) {
    return { problems: [{ path: ['inputs'], message: `must be empty: the workflow ${name} takes none` }] };
  }
  const bytes = Buffer.byteLength(JSON.stringify(given));
  if (bytes > INPUTS_MAX_BYTES) {
    return { problems: [{ path: ['inputs'], message: `have ${bytes} bytes; the limit is ${INPUTS_MAX_BYTES}` }] };
  }
  const problems = schemaProblems(objectOf(inputs), given);
  if (problems.length > 0) {
    return { problems: problems.map(({ path, message }) => ({ path: ['inputs', ...path], message })) };
  }
  const defaults = Object.entries(inputs).flatMap(([key, { default: value }]) =>
    value === undefined ? [] : [[key, value]],
  );
  return { values: { ...Object.fromEntries(defaults), ...given } };
}

/** Like `checkInputs`, but throws INPUT_INVALID with all problems. */
export function checkedInputs(workflow: Pick<Workflow, 'name' | 'inputs'>, values: InputValues): InputValues {
  const checked = checkInputs(workflow, values);
  if ('values' in checked) return checked.values;
  const said = checked.problems.map(({ path, message }) => `${path.join('.')} ${message}`);
  throw new CountersignError('INPUT_INVALID', said.join('; '));
}

/**
 * Finds mistakes in templates for inputs that no value of their expressions can fix. `complete`: nobody gives further values,
 * so a missing required input is a mistake too.
 */
export function inputTemplateProblems(
  { name, inputs }: Pick<Workflow, 'name' | 'inputs'>,
  templates: Record<string, unknown>,
  { complete }: { complete: boolean },
): Problem[] {
  if (!inputs) {
    const none = { path: [], message: `the workflow ${name} takes no inputs; remove them` };
    return Object.keys(templates).length > 0 ? [none] : [];
  }
  const schema = objectOf(inputs);
  return inputProblems(complete ? schema : schema.partial(), templates);
}

const objectOf = (definitions: Record<string, InputDefinition>) =>
  z.strictObject(
    Object.fromEntries(
      Object.entries(definitions).map(([name, definition]) => {
        const schema = valueSchema(definition);
        return [name, definition.required ? schema : schema.optional()];
      }),
    ),
  );

function valueSchema(definition: InputDefinition): z.ZodType {
  switch (definition.type) {
    case 'string':
      return textSchema(definition);
    case 'number':
    case 'integer':
      return numberSchema(definition);
    case 'boolean':
      return z.boolean();
    case 'object':
      return objectOf(definition.properties);
    case 'array': {
      const { items, minItems = 0, maxItems = ITEMS_MAX } = definition;
      return z.array(valueSchema(items)).min(minItems).max(maxItems);
    }
  }
}

function textSchema({ enum: choices, format, minLength = 0, maxLength = TEXT_MAX_CHARACTERS }: DefinitionOf<'string'>) {
  if (choices !== undefined) return z.enum(choices as [string]);
  const text = z.string().min(minLength).max(maxLength);
  return format === undefined ? text : z.intersection(text, FORMATS[format]());
}

function numberSchema({ type, enum: choices, min, max }: DefinitionOf<'number' | 'integer'>) {
  if (choices !== undefined) return z.literal(choices as [number]);
  const number = type === 'integer' ? z.int() : z.number();
  return number.min(min ?? Number.NEGATIVE_INFINITY).max(max ?? Number.POSITIVE_INFINITY);
}
