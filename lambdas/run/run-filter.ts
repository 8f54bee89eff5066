import type { ErrorCode } from './errors.ts';
import { ACTIVE_STATUSES, type Enrichment, isTerminal, type Run, type RunStatus } from './run.ts';
import { awaitsResolution } from './statuses/ended-run.ts';
import { shortSubject } from './subject.ts';

/** Which runs a list shows. A run must match every field that is set. */
export interface RunFilter {
  status?: RunStatus;
  automation?: string;
  workflow?: string;
  /** In full, `servicenow:acme:INC0010001`, or without its source, `INC0010001`. */
  subject?: string;
  assignee?: string;
  errorCode?: ErrorCode;
  /** An approval of the run is past its SLA. */
  overdue?: boolean;
  /** The run ended as `needs_human` and nobody has resolved it. */
  needsResolution?: boolean;
  /** Accepted at this time or later, and at that time or earlier. */
  since?: string;
  until?: string;
  /** A part of the title, in upper or lower case. */
  text?: string;
}

export const isOverdue = (run: Run): boolean => !isTerminal(run) && run.approvalOverdueSince !== undefined;

export const needsResolution = (run: Run): boolean => isTerminal(run) && awaitsResolution(run);

/** Decides for one run. Indexes only find candidates: they may be out of date. */
export function matchesFilter(run: Run, filter: RunFilter): boolean {
  const { status, automation, workflow, subject, assignee, errorCode, since, until, text } = filter;
  return (
    (status === undefined || run.status === status) &&
    (automation === undefined || run.automation === automation) &&
    (workflow === undefined || run.workflow.name === workflow) &&
    (subject === undefined || run.subject === subject || shortSubject(run.subject ?? '') === subject) &&
    (assignee === undefined || run.assignee === assignee) &&
    (errorCode === undefined || (isTerminal(run) && run.error?.code === errorCode)) &&
    (filter.overdue !== true || isOverdue(run)) &&
    (filter.needsResolution !== true || needsResolution(run)) &&
    (since === undefined || run.createdAt >= since) &&
    (until === undefined || run.createdAt <= until) &&
    (text === undefined || (run.enrichment !== undefined && listedTitle(run.enrichment).includes(text.toLowerCase())))
  );
}

/** The title as it is searched: in lower case. Its 300 characters take at most 900 bytes. */
export const listedTitle = ({ title }: Pick<Enrichment, 'title'>): string => title.toLowerCase();

/**
 * The fields that have a list of their own in the store. Times select a part of any list. The list of `text` has the titles
 * of all runs, so thousands of them are compared without reading the runs.
 */
const LISTED = [
  'assignee',
  'overdue',
  'needsResolution',
  'errorCode',
  'subject',
  'text',
  'automation',
  'workflow',
  'status',
] as const;
export type ListedField = (typeof LISTED)[number];

/**
 * The field whose list is read: the one that probably has the fewest runs. Few runs are active at any time, but most runs
 * of a tenant end with the same status.
 */
export function listedField(filter: RunFilter): ListedField | undefined {
  const isSet = (field: ListedField) => filter[field] !== undefined && filter[field] !== false;
  const active = (ACTIVE_STATUSES as readonly string[]).includes(filter.status ?? '');
  const first = LISTED.slice(0, 5).find(isSet);
  return first ?? (active ? 'status' : LISTED.find(isSet));
}

/** True if a run that the list of `listedField` gives may not match the filter. */
export function needsMoreThanItsList({ since: _since, until: _until, ...filter }: RunFilter): boolean {
  return Object.values(filter).filter((value) => value !== undefined && value !== false).length > 1;
}
