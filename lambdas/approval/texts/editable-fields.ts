import { findOperation } from '../../connectors/registry.ts';
import type { Approval } from '../../run/approval.ts';

/** The fields of a write that refer to records, so that people may give a name. */
export const referenceFields = (action: Approval['action']): string[] =>
  fieldsNamed(action, Object.fromEntries(Object.keys(action?.fields ?? {}).map((field) => [field, 'a name'])));

/** Those of the edited fields whose value is the name of a record. */
export function fieldsNamed(action: Approval['action'], fields: Record<string, unknown>): string[] {
  const operation = action && findOperation(action.tool);
  return operation?.byName?.named(operation.edited({}, fields)) ?? [];
}

/** The fields that an edit may change. An undo restores earlier values: with other values it would be another write. */
export function editableFields(action: Approval['action']): Record<string, unknown> {
  const operation = action && findOperation(action.tool);
  if (!operation || action.undo) return {};
  return Object.fromEntries(Object.entries(action.fields).filter(([name]) => !operation.fixed?.includes(name)));
}
