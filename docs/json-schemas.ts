import * as z from 'zod';
import { WorkflowTest } from '../bin/commands/workflow/test-file.ts';
import { PolicyCases } from '../lambdas/api/policies/policy-cases.ts';
import { findOperation, toolNames } from '../lambdas/connectors/registry.ts';
import { Automation } from '../lambdas/pipeline/definitions.ts';
import { CallInput } from '../lambdas/workflow/expand-workflow.ts';
import { FILE_KINDS } from '../lambdas/workflow/step-kinds.ts';
import { CALL, Workflow } from '../lambdas/workflow/workflow.ts';

type Schema = Record<string, unknown>;

/** The JSON Schemas of the files that people write, by file name. Editors complete and check the files with them. */
export const jsonSchemas = (): Record<string, Schema> => ({
  'workflow.json': workflowSchema(),
  'automation.json': titled('An automation', { ...plainSchema(Automation) }),
  'policy-cases.json': titled('Test cases of policies', plainSchema(PolicyCases)),
  'workflow-test.json': titled('Test cases of a workflow', plainSchema(WorkflowTest)),
});

/** Draft 7, which the YAML language server supports best. */
const plainSchema = (schema: z.ZodType): Schema =>
  withoutReferences(
    z.toJSONSchema(schema, { io: 'input', target: 'draft-7', unrepresentable: 'any', reused: 'inline' }),
  ) as Schema;

/** The only schema that refers to itself is that of any JSON value, which accepts everything. */
function withoutReferences(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(withoutReferences);
  if (part === null || typeof part !== 'object') return part;
  if ('$ref' in part) return {};
  const { definitions: _recursive, ...rest } = part as Schema;
  return Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, withoutReferences(value)]));
}

const titled = (title: string, schema: Schema): Schema => {
  const { $schema, ...rest } = schema;
  return { $schema, title, ...rest };
};

interface Tool {
  name: string;
  summary: string;
  input: Schema;
}

/** Every tool that a step can name. */
const tools = (): Tool[] => [
  ...FILE_KINDS.map(([name, { documented, input }]) => ({
    name,
    summary: documented.summary,
    input: toolInput(name === CALL ? CallInput : input),
  })),
  ...toolNames().map((name) => {
    const operation = findOperation(name);
    if (!operation) throw new Error(`there is no tool ${name}`);
    return { name, summary: operation.summary, input: toolInput(operation.input) };
  }),
];

function toolInput(input: z.ZodType): Schema {
  const { $schema: _draft, ...schema } = plainSchema(input);
  return inSentences(schema) as Schema;
}

/** Tables describe the fields of tools in a few words. An editor shows them as sentences, like all others. */
function inSentences(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(inSentences);
  if (part === null || typeof part !== 'object') return part;
  return Object.fromEntries(
    Object.entries(part).map(([name, value]) => [
      name,
      name === 'description' && typeof value === 'string' ? sentence(value) : inSentences(value),
    ]),
  );
}

export const sentence = (text: string) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;

function workflowSchema(): Schema {
  const schema = titled('A workflow', plainSchema(Workflow)) as Schema & { properties: { steps: { items: Schema } } };
  const step = schema.properties.steps.items as Schema & { properties: Schema };
  const all = tools();
  step.properties.tool = {
    ...(step.properties.tool as Schema),
    enum: all.map(({ name }) => name),
    markdownEnumDescriptions: all.map(({ summary }) => summary),
  };
  step.allOf = all.map(({ name, summary, input }) => ({
    if: { properties: { tool: { const: name } }, required: ['tool'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: {
      properties: { with: { description: summary, ...withExpressions(input, true) } },
      ...(isRequired(input) && { required: ['with'] }),
    },
  }));
  return schema;
}

const isRequired = ({ required }: Schema): boolean => Array.isArray(required) && required.length > 0;

const EXPRESSION: Schema = { type: 'string', pattern: '\\{%' };

/** Every value may be an expression instead, except the input as a whole. */
function withExpressions(schema: Schema, isWhole = false): Schema {
  const inner = Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => [keyword, KEYWORDS[keyword]?.(value, isWhole) ?? value]),
  );
  const { description, ...rest } = inner;
  const isPlainText = rest.type === 'string' && Object.keys(rest).length === 1;
  if (isWhole || isPlainText || Object.keys(rest).length === 0) return inner;
  return { ...(description !== undefined && { description }), anyOf: [rest, EXPRESSION] };
}

const each = (value: unknown) => withExpressions(value as Schema);
const KEYWORDS: Record<string, (value: unknown, isWhole: boolean) => unknown> = {
  properties: (value) => Object.fromEntries(Object.entries(value as Schema).map(([name, of]) => [name, each(of)])),
  additionalProperties: (value) => (typeof value === 'object' ? each(value) : value),
  items: each,
  anyOf: (value, isWhole) => (value as Schema[]).map((option) => withExpressions(option, isWhole)),
  oneOf: (value, isWhole) => (value as Schema[]).map((option) => withExpressions(option, isWhole)),
};
