import * as z from 'zod';
import { findOperation, toolNames } from '../../../lambdas/connectors/registry.ts';
import { CallInput } from '../../../lambdas/workflow/expand-workflow.ts';
import { FILE_KINDS } from '../../../lambdas/workflow/step-kinds.ts';
import { CALL } from '../../../lambdas/workflow/workflow.ts';

type Schema = Record<string, unknown>;

/** A tool as the command line and the reference pages show it. */
export interface DescribedTool {
  name: string;
  summary: string;
  /** Null for a step that calls no target. */
  effect: string | null;
  risk: string | null;
  reversible: boolean;
  destructive: boolean;
  connection: string | null;
  inputs: DescribedField[];
  outputs: DescribedField[];
  /** A step that uses it. */
  example: string;
}

export interface DescribedField {
  name: string;
  type: string;
  required: boolean;
  /** Empty if the name says it. */
  description: string;
}

export const allTools = (): string[] => [...FILE_KINDS.map(([name]) => name), ...toolNames()];

export function describeTool(name: string): DescribedTool | undefined {
  const operation = findOperation(name);
  const kind = FILE_KINDS.find(([tool]) => tool === name)?.[1];
  const schema = inputOf(name);
  if (!schema) return undefined;
  const inputs = fieldsOf(schema, 'input');
  return {
    name,
    summary: operation?.summary ?? kind?.documented.summary ?? '',
    effect: operation?.effect ?? null,
    risk: operation?.risk ?? null,
    reversible: operation?.reversible ?? false,
    destructive: operation?.destructive ?? false,
    connection: operation?.connection ?? null,
    inputs,
    outputs: operation ? fieldsOf(operation.output, 'output') : [],
    example: exampleStep(name),
  };
}

function inputOf(tool: string): z.ZodType | undefined {
  if (tool === CALL) return CallInput;
  return findOperation(tool)?.input ?? FILE_KINDS.find(([name]) => name === tool)?.[1].input;
}

const jsonSchema = (schema: z.ZodType, io: 'input' | 'output'): Schema =>
  z.toJSONSchema(schema, { io, unrepresentable: 'any', reused: 'inline' }) as Schema;

/** The fields of an object; those of a union that not all its options have are optional. */
export function fieldsOf(schema: z.ZodType, io: 'input' | 'output'): DescribedField[] {
  const options = optionsOf(jsonSchema(schema, io));
  const names = [...new Set(options.flatMap(({ properties = {} }) => Object.keys(properties as Schema)))];
  return names.map((name) => {
    const found = options.flatMap(({ properties = {} }) => {
      const field = (properties as Record<string, Schema>)[name];
      return field ? [field] : [];
    });
    const required = options.every(({ required: all = [] }) => (all as string[]).includes(name));
    const type = [...new Set(found.map(typeText))].join(' or ');
    return { name, type, required, description: meaningOf(found) };
  });
}

/** The meaning of a field, or of each of its values if each option of a union has another. */
function meaningOf(fields: readonly Schema[]): string {
  const said = fields.flatMap(({ description, const: value }) =>
    typeof description === 'string' ? [{ description, value }] : [],
  );
  const perValue = said.length > 1 && said.every(({ value }) => value !== undefined);
  if (perValue) return said.map(({ description, value }) => `\`${value}\`: ${description}`).join('; ');
  return said[0]?.description ?? '';
}

const optionsOf = (schema: Schema): Schema[] => ((schema.anyOf ?? schema.oneOf) as Schema[] | undefined) ?? [schema];

const NAMES: Readonly<Record<string, string>> = { string: 'text', integer: 'whole number', object: 'object' };

function typeText(schema: Schema): string {
  if (schema.const !== undefined) return `\`${schema.const}\``;
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => `\`${value}\``).join(', ');
  const options = (schema.anyOf ?? schema.oneOf) as Schema[] | undefined;
  if (options) return [...new Set(options.map(typeText))].join(' or ');
  if (schema.type === 'array') return `list of ${typeText((schema.items ?? {}) as Schema)}`;
  if (schema.type === undefined) return 'any';
  return NAMES[String(schema.type)] ?? String(schema.type);
}

function exampleStep(tool: string): string {
  const input = exampleInput(tool, EVERY_FIELD);
  return [
    '- id: my_step',
    `  tool: ${tool}`,
    ...(input.length > 0 ? ['  with:'] : []),
    ...input.map((line) => `    ${line}`),
  ].join('\n');
}

/** The required fields of the first option, each a line of YAML. `known`: the fields of the trigger. */
export function exampleInput(tool: string, known: readonly string[]): string[] {
  const schema = inputOf(tool);
  const [first = {}] = schema ? optionsOf(jsonSchema(schema, 'input')) : [];
  const { properties = {}, required = [] } = first as { properties?: Record<string, Schema>; required?: string[] };
  return required.map((name) => `${name}: ${sampleValue(name, properties[name] ?? {}, known)}`);
}

/** The fields of events that name a target. */
export const TRIGGER_FIELDS: Readonly<Record<string, readonly string[]>> = {
  github: ['owner', 'repo', 'number'],
  servicenow: ['sysId', 'table'],
};
const EVERY_FIELD = Object.values(TRIGGER_FIELDS).flat();

const SAMPLES: Readonly<Record<string, string>> = {
  url: '"https://api.example.com/things"',
  channel: '"#incidents"',
  labels: '[triage]',
  assignees: '[octocat]',
  state: '"2"',
  ts: '"1700000000.000100"',
};

/** A value in YAML that fits the field, or an expression where only a run knows one. */
function sampleValue(name: string, schema: Schema, known: readonly string[]): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (Array.isArray(schema.enum)) return JSON.stringify(schema.enum[0]);
  if (known.includes(name)) return `"{% trigger.${name} %}"`;
  const sample = SAMPLES[name];
  if (sample !== undefined) return sample;
  const [option] = ((schema.anyOf ?? schema.oneOf) as Schema[] | undefined) ?? [];
  if (option) return sampleValue(name, option, known);
  if (schema.type === 'array') return `[${sampleValue('item', (schema.items ?? {}) as Schema, known)}]`;
  if (schema.type === 'object') return `{ ${sampleName(schema)}: "2" }`;
  if (schema.type === 'number' || schema.type === 'integer') return '1';
  if (schema.type === 'boolean') return 'true';
  const isFree = schema.pattern === undefined && schema.format === undefined;
  return isFree ? 'example' : `"{% trigger.payload.${name} %}"`;
}

const sampleName = ({ propertyNames }: Schema): string =>
  ((propertyNames as Schema | undefined)?.enum as string[] | undefined)?.[0] ?? 'state';
