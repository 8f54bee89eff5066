import type { PropertyFilterProps } from '@cloudscape-design/components/property-filter';
import type { RequestFor } from '../../client/api-client.ts';
import { RUN_STATUSES, type RunStatus } from '../parts/run-status.tsx';

export type RunQuery = NonNullable<RequestFor<'GET /api/v1/runs'>['query']>;

/** The fields of the filter, as the API and the address of the page name them. */
const FIELDS = [
  { key: 'status', label: 'Status', group: 'Status' },
  { key: 'automation', label: 'Automation', group: 'Automation' },
  { key: 'workflow', label: 'Workflow', group: 'Workflow' },
  { key: 'subject', label: 'Subject', group: 'Subject' },
  { key: 'assignee', label: 'Assignee', group: 'Assignee' },
  { key: 'errorCode', label: 'Error code', group: 'Error code' },
  { key: 'overdue', label: 'Approval overdue', group: 'Approval overdue' },
  { key: 'needsResolution', label: 'Needs resolution', group: 'Needs resolution' },
  { key: 'since', label: 'Accepted since', group: 'Accepted since' },
  { key: 'until', label: 'Accepted until', group: 'Accepted until' },
] as const;
const KEYS: readonly string[] = [...FIELDS.map(({ key }) => key), 'text'];

export const FILTER_PROPERTIES: PropertyFilterProps.FilteringProperty[] = FIELDS.map(({ key, label, group }) => ({
  key,
  propertyLabel: label,
  groupValuesLabel: group,
  operators: [{ operator: '=', format: (value) => formatted(key, value) }],
}));

const formatted = (key: string, value: string): string =>
  key === 'status' ? (RUN_STATUSES[value as RunStatus]?.text ?? value) : value === 'true' ? 'yes' : value;

/** Values that people can choose. Names come from the loaded rows. */
export function filterOptions(
  known: Readonly<Partial<Record<string, readonly string[]>>>,
): PropertyFilterProps.FilteringOption[] {
  const statuses = Object.entries(RUN_STATUSES).map(([value, { text }]) => ({
    propertyKey: 'status',
    value,
    label: text,
  }));
  const yes = ['overdue', 'needsResolution'].map((propertyKey) => ({ propertyKey, value: 'true', label: 'yes' }));
  const names = Object.entries(known).flatMap(([propertyKey, values = []]) =>
    [...new Set(values)].map((value) => ({ propertyKey, value })),
  );
  return [...statuses, ...yes, ...names];
}

/** The filter in the address: `?status=failed_terminal&text=vpn`. */
export function filterOf(search: string): RunQuery {
  const found = [...new URLSearchParams(search)].filter(([key, value]) => KEYS.includes(key) && value !== '');
  return Object.fromEntries(found) as RunQuery;
}

export const searchOf = (filter: RunQuery): string =>
  new URLSearchParams(Object.entries(filter).map(([key, value]): [string, string] => [key, String(value)])).toString();

export const tokensOf = (filter: RunQuery): PropertyFilterProps.Query => ({
  operation: 'and',
  tokens: Object.entries(filter).map(([key, value]) => ({
    ...(key !== 'text' && { propertyKey: key }),
    operator: key === 'text' ? ':' : '=',
    value: String(value),
  })),
});

/** A field that is given twice has its last value: a run cannot have two. */
export const filterOfTokens = ({ tokens }: PropertyFilterProps.Query): RunQuery =>
  Object.fromEntries(tokens.map(({ propertyKey = 'text', value }) => [propertyKey, String(value)])) as RunQuery;
