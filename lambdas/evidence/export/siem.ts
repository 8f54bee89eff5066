import type { Commit, CommitEvent } from '../../run/commit.ts';
import { withoutText } from '../../run/free-text.ts';
import type { TerminalRun } from '../../run/run.ts';
import type { Initiator } from '../../run/transitions.ts';
import { RUNTIME_VERSION } from '../bundle/runtime-version.ts';

/** OCSF (schema.ocsf.io) 1.8.0, class API Activity: the form in which security monitoring takes in what programs did. */
const OCSF_VERSION = '1.8.0';
const CATEGORY_UID = 6;
const CLASS_UID = 6003;

const CREATE = { activity_id: 1, activity_name: 'Create' };
const UPDATE = { activity_id: 3, activity_name: 'Update' };

const SUCCESS = { status_id: 1, status: 'Success' };
const FAILURE = { status_id: 2, status: 'Failure' };

const INFORMATIONAL = { severity_id: 1, severity: 'Informational' };
const LOW = { severity_id: 2, severity: 'Low' };
const MEDIUM = { severity_id: 3, severity: 'Medium' };
const HIGH = { severity_id: 4, severity: 'High' };

/** By the day on which the run ended, so that a collector can read a day at a time. */
export function siemKey({ tenant, runId, completedAt }: TerminalRun): string {
  const [year, month, day] = completedAt.slice(0, 10).split('-');
  return `siem/${tenant}/${year}/${month}/${day}/${runId}.jsonl`;
}

/** A line of JSON for each commit. */
export function siemLines(run: TerminalRun, commits: readonly Commit[]): Buffer {
  return Buffer.from(commits.map((commit) => `${JSON.stringify(apiActivity(run, commit))}\n`).join(''));
}

/** Metadata only, as in evidence: events appear without the sentences that people or targets wrote. */
function apiActivity(run: TerminalRun, { seq, at, events, hash, prevHash }: Commit) {
  const { tenant, runId, automation, workflow } = run;
  const activity = seq === 1 ? CREATE : UPDATE;
  const types = events.map(({ type }) => type);
  const code = events.map(errorCode).find(Boolean);
  return {
    ...activity,
    category_uid: CATEGORY_UID,
    class_uid: CLASS_UID,
    class_name: 'API Activity',
    type_uid: CLASS_UID * 100 + activity.activity_id,
    time: Date.parse(at),
    ...severityOf(events),
    ...(events.some(isFailure) ? FAILURE : SUCCESS),
    ...(code && { status_code: code }),
    message: `commit ${seq} of ${runId}: ${types.join(', ')}`,
    actor: actorOf(events),
    api: { operation: types[0] ?? 'commit', service: { name: 'countersign' }, request: { uid: hash } },
    // What set the run going is where all it does comes from.
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
    unmapped: { automation, workflow, hash, prevHash, events: withoutText(events) },
  };
}

/** The person whose doing it was; else the runtime itself. */
function actorOf(events: readonly CommitEvent[]) {
  const person = events.map(personIn).find(Boolean);
  return { app_name: 'countersign', ...(person && { user: { name: person } }) };
}

/** What these begin is a person's doing; an approval is decided by one. */
const PEOPLES: readonly Initiator[] = ['user', 'approval'];

function personIn(event: CommitEvent): string | undefined {
  if ('person' in event) return event.person;
  if (!('actor' in event)) return undefined;
  return 'initiator' in event && !PEOPLES.includes(event.initiator) ? undefined : event.actor;
}

/** The run, and everything outside that a write of this commit is about. */
function resourcesOf({ runId, automation }: TerminalRun, events: readonly CommitEvent[]) {
  const targets = events.flatMap((event) => ('target' in event ? [event.target] : []));
  return [
    { type: 'run', uid: runId, name: automation },
    ...[...new Set(targets)].map((uid) => ({ type: 'target', uid })),
  ];
}

const errorCode = (event: CommitEvent): string | undefined => ('error' in event ? event.error?.code : undefined);

const isDenial = (event: CommitEvent) => event.type === 'policy.decided' && event.verdict === 'deny';

const isFailure = (event: CommitEvent) => errorCode(event) !== undefined || isDenial(event);

function severityOf(events: readonly CommitEvent[]) {
  const left = (status: string) => events.some((event) => event.type === 'run.status_changed' && event.to === status);
  if (left('needs_human')) return HIGH;
  if (left('failed_terminal') || left('timed_out') || events.some(isDenial)) return MEDIUM;
  return events.some(isFailure) ? LOW : INFORMATIONAL;
}
