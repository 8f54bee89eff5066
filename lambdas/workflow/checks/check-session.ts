import { findOperation, proposableTools } from '../../connectors/registry.ts';
import { SESSION_TOOL } from '../../connectors/session/session.ts';
import { didYouMean } from '../../entry/did-you-mean.ts';
import type { WorkflowStep } from '../workflow.ts';
import type { Problem } from './check-expressions.ts';
import { inputProblems } from './check-input.ts';

/** An action that a session could never propose: its tool does not exist, or the input that the step fixes is wrong. */
export function sessionProblems({ tool, with: { actions } }: WorkflowStep): Problem[] {
  if (tool !== SESSION_TOOL || !Array.isArray(actions)) return [];
  return actions.flatMap((action, index) =>
    actionProblems(action).map(({ path, message }) => ({ path: ['actions', index, ...path], message })),
  );
}

function actionProblems(action: { tool?: unknown; with?: unknown } | null): Problem[] {
  const { tool, with: fixed } = action ?? {};
  if (typeof tool !== 'string') return [];
  const tools = proposableTools();
  const operation = tools.includes(tool) ? findOperation(tool) : undefined;
  if (!operation) {
    const known = didYouMean(tool, tools) || '; countersign tools lists all';
    return [{ path: ['tool'], message: `a session cannot propose "${tool}"${known}` }];
  }
  if (typeof fixed !== 'object' || fixed === null) return [];
  // The session gives the other fields.
  return inputProblems(operation.input, fixed)
    .filter(({ path: [field] }) => field !== undefined && Object.hasOwn(fixed, field))
    .map(({ path, message }) => ({ path: ['with', ...path], message }));
}
