import type { Operation } from '../connectors/connector.ts';
import { findOperation, proposableTools } from '../connectors/registry.ts';
import { didYouMean } from '../entry/did-you-mean.ts';
import { CountersignError } from '../run/errors.ts';

/** Checks a call that was proposed from outside a workflow. Throws INPUT_INVALID if no step could make it. */
export function checkedCall(
  tool: string,
  input: unknown,
  isFixed: (field: string) => boolean = () => false,
): Operation {
  const tools = proposableTools();
  const operation = tools.includes(tool) ? findOperation(tool) : undefined;
  if (!operation) {
    const known = didYouMean(tool, tools) || '; countersign tools lists all';
    throw new CountersignError('INPUT_INVALID', `no tool with this name can be proposed${known}`);
  }
  operation.parse(input);
  const { markdownField } = operation;
  // A workflow may do so for constant text only (check-markdown.ts), and this text is not.
  if (markdownField !== undefined && isMarkdown(input) && !isFixed(markdownField)) {
    throw new CountersignError(
      'INPUT_INVALID',
      `${tool}: only the text of a workflow may set markdown to true; leave it out`,
    );
  }
  return operation;
}

const isMarkdown = (input: unknown): boolean =>
  typeof input === 'object' && input !== null && 'markdown' in input && input.markdown === true;

/** The fields of a call that select its target or its recipients: all that its operation does not name as content. */
export function selectingFields({ content = [], recipients = [] }: Operation, input: object): string[] {
  return [
    ...Object.keys(input).filter((field) => !content.includes(field)),
    ...recipients.filter((path) => content.includes(topOf(path)) && valueAt(input, path) !== undefined),
  ];
}

/** `fields` of `fields.assigned_to`. */
export const topOf = (path: string): string => path.split('.')[0] ?? path;

const valueAt = (input: object, path: string): unknown =>
  path.split('.').reduce<unknown>((at, part) => (at as Record<string, unknown> | null | undefined)?.[part], input);
