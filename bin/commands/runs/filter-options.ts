import type { RequestFor } from '../../../client/api-client.ts';
import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import type { Call, Option } from '../command.ts';
import { UsageError } from '../failure.ts';
import { RUN_STATUSES } from './run-status.ts';

type ListQuery = NonNullable<RequestFor<'GET /api/v1/runs'>['query']>;
export type RunFilterQuery = Omit<ListQuery, 'limit' | 'cursor' | 'counts'>;

export const FILTER_OPTIONS: Record<string, Option> = {
  status: { value: 'STATUS', description: 'only runs with this status' },
  automation: { value: 'NAME', description: 'only runs of this automation' },
  workflow: { value: 'NAME', description: 'only runs of this workflow' },
  subject: { value: 'SUBJECT', description: 'only runs about this, e.g. INC0010001 or octo-org/payments#7' },
  assignee: { value: 'PERSON', description: 'only runs assigned to this person' },
  error: { value: 'CODE', description: 'only runs that ended with this error code' },
  overdue: { description: 'only runs with an approval that is past its SLA' },
  'needs-resolution': { description: 'only runs that need a human and are not resolved' },
  since: { value: 'TIME', description: 'accepted since: a time (2026-11-17T09:30Z), a day, or 30m, 12h, 7d' },
  until: { value: 'TIME', description: 'accepted until, in the same form' },
  text: { value: 'TEXT', description: 'only runs with this text in the title' },
};

/** Stricter than `Date.parse`, which takes "5" for a day in 2001: a mistyped `5m` must not select every run. */
const POINT_IN_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/;
const UNITS_MS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The filter of a command line, as the API takes it. */
export function filterQuery(call: Call): RunFilterQuery {
  const status = call.option('status');
  if (status !== undefined && !RUN_STATUSES.includes(status)) {
    throw new UsageError(
      `unknown status "${status}"${didYouMean(status, RUN_STATUSES) || `; statuses: ${RUN_STATUSES.join(', ')}`}`,
    );
  }
  const given = {
    status,
    automation: call.option('automation'),
    workflow: call.option('workflow'),
    subject: call.option('subject'),
    assignee: call.option('assignee'),
    errorCode: call.option('error')?.toUpperCase(),
    overdue: call.isSet('overdue') ? 'true' : undefined,
    needsResolution: call.isSet('needs-resolution') ? 'true' : undefined,
    since: timeOf(call, 'since'),
    until: timeOf(call, 'until'),
    text: call.option('text'),
  };
  // The API checks the values and names the closest one.
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as RunFilterQuery;
}

/** `12h` is twelve hours ago. */
function timeOf(call: Call, name: string): string | undefined {
  const text = call.option(name);
  if (text === undefined) return undefined;
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const pointMs = POINT_IN_TIME.test(text) ? Date.parse(text) : Number.NaN;
  const atMs = count === undefined ? pointMs : Date.now() - Number(count) * (UNITS_MS[unit] ?? 0);
  if (Number.isFinite(atMs)) return new Date(atMs).toISOString();
  throw new UsageError(`--${name} ${text} is not a time; use 2026-11-17T09:30Z, 2026-11-17, 30m, 12h or 7d`);
}
