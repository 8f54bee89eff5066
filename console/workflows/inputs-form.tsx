import type { ResponseFrom } from '../../client/api-client.ts';
import { word } from '../parts/action.tsx';
import { SelectField, TextArea, TextField } from '../parts/form.tsx';
import { jsonIn } from '../parts/json-value.ts';

type Definition = ResponseFrom<'GET /api/v1/workflows/{name}/versions/{version}'>['definition'];
export type InputDefinitions = NonNullable<Definition['inputs']>;
type InputDefinition = InputDefinitions[string];

/** What people type, by input. An input that is missing or empty is not given. */
export type TypedInputs = Readonly<Record<string, string>>;

interface InputsFormProps {
  inputs: InputDefinitions;
  typed: TypedInputs;
  onChange(typed: TypedInputs): void;
  /** Inputs that have a value already, e.g. of the automation. */
  given?: Readonly<Record<string, unknown>>;
}

/** A field for each input of a workflow. The API checks the values. */
export function InputsForm({ inputs, typed, onChange, given = {} }: InputsFormProps) {
  const entries = Object.entries(inputs);
  if (entries.length === 0) return <p className="secondary">The workflow takes no inputs.</p>;
  return (
    <div className="form-columns">
      {entries.map(([name, definition]) => (
        <InputField
          key={name}
          name={name}
          definition={definition}
          given={given[name]}
          value={typed[name] ?? ''}
          onChange={(value) => onChange({ ...typed, [name]: value })}
        />
      ))}
    </div>
  );
}

interface InputFieldProps {
  name: string;
  definition: InputDefinition;
  given: unknown;
  value: string;
  onChange(value: string): void;
}

function InputField({ name, definition, given, value, onChange }: InputFieldProps) {
  const field = {
    label: name,
    hint: hintOf(definition, given),
    optional: !definition.required || given !== undefined,
  };
  const choices = 'enum' in definition ? definition.enum : undefined;
  if (choices !== undefined || definition.type === 'boolean') {
    const values: readonly (string | number | boolean)[] = choices ?? [true, false];
    const options = [{ value: '', text: field.optional ? 'Not given' : 'Choose …' }];
    return (
      <SelectField
        {...field}
        value={value}
        onChange={onChange}
        options={[...options, ...values.map((each) => ({ value: String(each), text: String(each) }))]}
      />
    );
  }
  if (definition.type === 'object' || definition.type === 'array') {
    return <TextArea {...field} mono rows={3} value={value} onChange={onChange} />;
  }
  const isNumber = definition.type === 'number' || definition.type === 'integer';
  return <TextField {...field} type={isNumber ? 'number' : 'text'} value={value} onChange={onChange} />;
}

const TYPE_TEXTS: Record<InputDefinition['type'], string> = {
  string: 'Text',
  number: 'Number',
  integer: 'Whole number',
  boolean: 'Yes or no',
  object: 'JSON object',
  array: 'JSON list',
};

function hintOf(definition: InputDefinition, given: unknown): string {
  const { type, description, default: otherwise } = definition;
  const form = TYPE_TEXTS[type];
  const format = 'format' in definition && definition.format !== undefined ? ` (${definition.format})` : '';
  const value = given ?? otherwise;
  const source = given === undefined ? 'Default' : 'From the automation';
  return [
    ...(description === undefined ? [] : [description.replace(/\.?$/, '.')]),
    `${form}${format}.`,
    ...(value === undefined ? [] : [`${source}: ${typeof value === 'string' ? value : JSON.stringify(value)}`]),
  ].join(' ');
}

/** The values to send. Throws a sentence about the first field that has no value of its type. */
export function inputsIn(inputs: InputDefinitions, typed: TypedInputs): Record<string, never> {
  const given = Object.entries(inputs).filter(([name]) => (typed[name] ?? '').trim() !== '');
  return Object.fromEntries(given.map(([name, { type }]) => [name, valueIn(name, type, typed[name] ?? '')])) as Record<
    string,
    never
  >;
}

function valueIn(name: string, type: InputDefinition['type'], text: string): unknown {
  if (type === 'string') return text;
  if (type === 'boolean') return text === 'true';
  if (type === 'object' || type === 'array') return jsonIn(name, text);
  const number = Number(text);
  if (Number.isNaN(number)) throw new Error(`${name}: "${text}" is not a number`);
  return number;
}

/** `--input service=payments`, for command lines. */
export const inputOptions = (typed: TypedInputs): string =>
  Object.entries(typed)
    .filter(([, text]) => text.trim() !== '')
    .map(([name, text]) => ` --input ${word(`${name}=${text}`)}`)
    .join('');
