import type { Operation } from '../../connectors/connector.ts';
import { isConstant } from '../expressions/template.ts';
import type { Problem } from './check-expressions.ts';

/**
 * With `markdown: true` a text can mention people and contain links. Only the workflow's author may do that, so the text must
 * be constant: the value of an expression may come from anybody.
 */
export function markdownProblems({ markdownField }: Operation, input: Record<string, unknown>): Problem[] {
  const { markdown } = input;
  if (markdownField === undefined || markdown === undefined || markdown === false) return [];
  const at = (message: string): Problem[] => [{ path: ['markdown'], message }];
  if (typeof markdown === 'string') return at('must be true or false, not an expression');
  const text = input[markdownField];
  if (typeof text !== 'string' || isConstant(text)) return [];
  return at(
    `is only allowed if "${markdownField}" is constant, but it contains an expression; remove "markdown" to show the text unformatted`,
  );
}
