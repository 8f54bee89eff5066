import type { Operation } from '../../connectors/connector.ts';
import { isConstant } from '../expressions/template.ts';
import type { Problem } from './check-expressions.ts';

/**
 * `markdown: true` lets a text mention people and show links. Only the author of a workflow may do that, so the text must
 * be constant: whatever an expression gives may come from outside.
 */
export function markdownProblems({ markdownField }: Operation, input: Record<string, unknown>): Problem[] {
  const { markdown } = input;
  if (markdownField === undefined || markdown === undefined || markdown === false) return [];
  const at = (message: string): Problem[] => [{ path: ['markdown'], message }];
  if (typeof markdown === 'string') return at('must be true or false, not an expression');
  const text = input[markdownField];
  if (typeof text !== 'string' || isConstant(text)) return [];
  return at(
    `is only allowed where "${markdownField}" is constant, and this one has an expression; remove markdown, and the text is shown as it is`,
  );
}
