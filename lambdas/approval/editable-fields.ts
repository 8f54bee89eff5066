import { findOperation } from '../connectors/registry.ts';
import type { Approval } from '../run/approval.ts';

/** The fields that an edit may change. An undo restores earlier values: with other values it would be another write. */
export function editableFields(action: Approval['action']): Record<string, unknown> {
  const operation = action && findOperation(action.tool);
  if (!operation || action.undo) return {};
  return Object.fromEntries(Object.entries(action.fields).filter(([name]) => !operation.fixed?.includes(name)));
}
