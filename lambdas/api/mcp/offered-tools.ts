import * as z from 'zod';
import { BEDROCK } from '../../connectors/connections.ts';
import type { Operation } from '../../connectors/connector.ts';
import { findOperation, proposableTools } from '../../connectors/registry.ts';
import type { AllowedAction } from '../../run/session.ts';
import { TOOL_SCOPE } from '../authorizer/caller.ts';

type Schema = Record<string, unknown>;

/** A tool as `tools/list` shows it. */
export interface OfferedTool {
  name: string;
  description: string;
  inputSchema: Schema & { type: 'object' };
  annotations: {
    readOnlyHint: boolean;
    destructiveHint: boolean;
    idempotentHint: boolean;
    openWorldHint: boolean;
  };
}

/** Clients accept letters, digits, underscores and dashes in names of tools. */
const mcpName = (tool: string): string => tool.replaceAll('.', '_');

/** The tool with this MCP name; undefined if there is none that can be proposed. */
export const toolNamed = (name: string): string | undefined => proposableTools().find((tool) => mcpName(tool) === name);

/** The OAuth scope that a token for one tool has. */
export const scopeOf = (tool: string): string => `${TOOL_SCOPE}${tool}`;
export const allScopes = (): string[] => proposableTools().map(scopeOf);

/** The tools that a tenant with these connections can use. */
export function toolsWith(connections: readonly string[]): string[] {
  return proposableTools().filter((tool) => {
    const { connection } = mustFind(tool);
    return connection === undefined || connection === BEDROCK || connections.includes(connection);
  });
}

export const IDEMPOTENCY_FIELD = 'idempotency_key';
const IdempotencyKey: Schema = {
  type: 'string',
  pattern: '^[!-~]{1,200}$',
  description: 'Optional. The same key with the same input is the same call: it is made once, however often it is sent',
};

const DECIDED = 'Policy and people decide on every call.';

/** `fixed`: the input that the step of a session determines, so that the session cannot choose it. */
export function offeredTool(tool: string, allowed: readonly AllowedAction[] = []): OfferedTool {
  const operation = mustFind(tool);
  const fixed = allowed.map((each) => Object.keys(each.with ?? {}));
  const hidden = (fixed[0] ?? []).filter((field) => fixed.every((fields) => fields.includes(field)));
  return {
    name: mcpName(tool),
    description: `${operation.summary} ${DECIDED}`,
    inputSchema: inputSchema(operation, hidden),
    annotations: {
      readOnlyHint: operation.effect === 'read',
      destructiveHint: operation.destructive === true || operation.effect === 'opaque',
      idempotentHint: operation.effect === 'read' || operation.effect === 'natural',
      openWorldHint: true,
    },
  };
}

function inputSchema(
  { input, effect, markdownField }: Operation,
  fixed: readonly string[],
): OfferedTool['inputSchema'] {
  const { $schema, ...schema } = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any', reused: 'inline' });
  const properties = schema.properties as Record<string, Schema> | undefined;
  // Of several forms, each says which fields it has: none can be added or left out here.
  if (!properties) return { ...schema, type: 'object' };
  // Text of a client is never markup: `checkedCall` refuses it.
  const hidden = [...fixed, ...(markdownField === undefined ? [] : ['markdown'])];
  const shown = Object.entries(properties).filter(([field]) => !hidden.includes(field));
  return {
    ...schema,
    type: 'object',
    properties: { ...Object.fromEntries(shown), ...(effect !== 'read' && { [IDEMPOTENCY_FIELD]: IdempotencyKey }) },
    required: (schema.required ?? []).filter((field) => !hidden.includes(field)),
  };
}

function mustFind(tool: string): Operation {
  const operation = findOperation(tool);
  if (!operation) throw new Error(`there is no tool ${tool}`);
  return operation;
}
