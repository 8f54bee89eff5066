import { sha256Hex } from '../../run/canonical-json.ts';
import type { Commit } from '../../run/commit.ts';
import { digestSentences } from '../../run/events/digest-sentences.ts';
import type { Severity } from '../../run/events/event-kind.ts';
import { type CommitEvent, kindOf } from '../../run/events/events.ts';
import { PERSONAL_INITIATORS } from '../../run/events/run-events.ts';
import type { TerminalRun } from '../../run/run.ts';
import { RUNTIME_VERSION } from '../bundle/bundle-draft.ts';

/** OCSF (schema.ocsf.io) 1.8.0, class API Activity. */
const OCSF_VERSION = '1.8.0';
const CATEGORY_UID = 6;
const CLASS_UID = 6003;

const CREATE = { activity_id: 1, activity_name: 'Create' };
const UPDATE = { activity_id: 3, activity_name: 'Update' };

const SUCCESS = { status_id: 1, status: 'Success' };
const FAILURE = { status_id: 2, status: 'Failure' };

/** The most severe first. */
const SEVERITIES: Record<Severity, { severity_id: number; severity: string }> = {
  high: { severity_id: 4, severity: 'High' },
  medium: { severity_id: 3, severity: 'Medium' },
  low: { severity_id: 2, severity: 'Low' },
  informational: { severity_id: 1, severity: 'Informational' },
};

/** Has the day on which the run ended, so that a collector can read one day at a time. */
export function siemKey({ tenant, runId, completedAt }: TerminalRun): string {
  const [year, month, day] = completedAt.slice(0, 10).split('-');
  return `siem/${tenant}/${year}/${month}/${day}/${runId}.jsonl`;
}

/** Of runs that ended on the same day and were sealed together. */
export const siemBatchKey = (run: TerminalRun, lines: Buffer): string =>
  siemKey({ ...run, runId: sha256Hex(lines).slice(0, SIEM_NAME_DIGITS) });
const SIEM_NAME_DIGITS = 32;

/** Of a commit after the end of the run, by the day of the commit. */
export function siemAddendumKey(run: TerminalRun, { seq, at }: Commit): string {
  return siemKey({ ...run, completedAt: at }).replace(/jsonl$/, `${seq}.jsonl`);
}

/** A line of JSON for each commit. */
export function siemLines(run: TerminalRun, commits: readonly Commit[]): Buffer {
  return Buffer.from(commits.map((commit) => `${JSON.stringify(apiActivity(run, commit))}\n`).join(''));
}

/** Metadata only, as in evidence: events have digests in place of sentences. */
function apiActivity(run: TerminalRun, { seq, at, events, hash, prevHash }: Commit) {
  const { tenant, runId, automation, workflow } = run;
  const activity = seq === 1 ? CREATE : UPDATE;
  const types = events.map(({ type }) => type);
  const code = events.map(errorCode).find(Boolean);
  const ratings = events.map(rate);
  const severities = Object.keys(SEVERITIES) as Severity[];
  const severity = severities.find((each) => ratings.some((rating) => rating.severity === each)) ?? 'informational';
  return {
    ...activity,
    category_uid: CATEGORY_UID,
    class_uid: CLASS_UID,
    class_name: 'API Activity',
    type_uid: CLASS_UID * 100 + activity.activity_id,
    time: Date.parse(at),
    ...SEVERITIES[severity],
    ...(ratings.some(({ failed }) => failed) ? FAILURE : SUCCESS),
    ...(code && { status_code: code }),
    message: `commit ${seq} of ${runId}: ${types.join(', ')}`,
    actor: actorOf(events),
    api: { operation: types[0] ?? 'commit', service: { name: 'countersign' }, request: { uid: hash } },
    // The source of the trigger.
    src_endpoint: { svc_name: run.trigger.source },
    resources: resourcesOf(run, events),
    metadata: {
      version: OCSF_VERSION,
      product: { name: 'Countersign', vendor_name: 'Countersign', version: RUNTIME_VERSION },
      uid: `${tenant}/${runId}/${seq}`,
      correlation_uid: runId,
      tenant_uid: tenant,
      sequence: seq,
      original_time: at,
      labels: types,
    },
    unmapped: { automation, workflow, hash, prevHash, events: digestSentences(events) },
  };
}

/** Severity of an event, and whether it is a failure. */
const rate = ({ type, ...event }: CommitEvent) =>
  kindOf({ type })?.siem?.(event) ??
  ('error' in event && event.error
    ? { severity: 'low' as const, failed: true }
    : { severity: 'informational' as const, failed: false });

/** The first person who caused one of the events, and the runtime. */
function actorOf(events: readonly CommitEvent[]) {
  const person = events.map(personIn).find(Boolean);
  return { app_name: 'countersign', ...(person && { user: { name: person } }) };
}

function personIn(event: CommitEvent): string | undefined {
  if ('person' in event) return event.person;
  if (!('actor' in event)) return undefined;
  return 'initiator' in event && !PERSONAL_INITIATORS.includes(event.initiator) ? undefined : event.actor;
}

/** The run and every target that a write of this commit is about. */
function resourcesOf({ runId, automation }: TerminalRun, events: readonly CommitEvent[]) {
  const targets = events.flatMap((event) => ('target' in event ? [event.target] : []));
  return [
    { type: 'run', uid: runId, name: automation },
    ...[...new Set(targets)].map((uid) => ({ type: 'target', uid })),
  ];
}

const errorCode = (event: CommitEvent): string | undefined => ('error' in event ? event.error?.code : undefined);
