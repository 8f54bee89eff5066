import { whyOf } from '../../../lambdas/policy/policy.ts';
import type { CommitEvent, PolicyDecided } from '../../../lambdas/run/commit.ts';
import type { RecordedError } from '../../../lambdas/run/errors.ts';
import type { Receipt } from '../../../lambdas/run/receipt.ts';
import type { Compensation, Resumed, RunStatus, TerminalStatus } from '../../../lambdas/run/run.ts';
import type { Initiator } from '../../../lambdas/run/transitions.ts';
import type { Cell } from '../../terminal/table.ts';
import type { Tone } from '../../terminal/terminal.ts';
import { clockNear } from '../../terminal/times.ts';
import { requirementInWords } from '../approvals/requirement-text.ts';

const TERMINAL: Record<TerminalStatus, Tone> = {
  succeeded: 'good',
  failed_terminal: 'bad',
  needs_human: 'bad',
  timed_out: 'bad',
  canceled: 'quiet',
};

const STATUSES: Record<RunStatus, Tone> = {
  queued: 'quiet',
  enriching: 'busy',
  ready: 'busy',
  running: 'busy',
  rolling_back: 'busy',
  failed_retryable: 'waiting',
  waiting_approval: 'waiting',
  waiting_external: 'waiting',
  paused: 'waiting',
  ...TERMINAL,
};

export const RUN_STATUSES = Object.keys(STATUSES);

export const hasEnded = (status: string) => Object.hasOwn(TERMINAL, status);

/** Steps share the words of runs, and `pending`. A newer server may know more; those stay plain. */
export function statusCell(status: string): Cell {
  const tone = (STATUSES as Record<string, Tone | undefined>)[status];
  return tone ? { text: status, tone } : status;
}

/** Whose actors are people: whoever gave an order, or decided. */
const NAMED: readonly Initiator[] = ['user', 'approval'];

/** What happened, as a person would say it; `at` is when. */
export function eventInWords(event: CommitEvent, at: string): string {
  switch (event.type) {
    case 'run.accepted':
      return `accepted ${event.source} ${event.event} for ${event.automation} (${event.workflow.name} v${event.workflow.version})`;
    case 'run.enriched':
      return 'title, actor and links were found in the trigger';
    case 'run.status_changed': {
      const why = event.error ? `: ${errorInWords(event.error)}` : event.reason ? ` (${event.reason})` : '';
      return `run: ${event.to}${NAMED.includes(event.initiator) ? ` by ${event.actor}` : ''}${why}`;
    }
    case 'run.stop_requested':
      return `${event.actor} asks to ${event.kind === 'rollback' ? 'roll back' : event.kind} the run${event.reason ? `: ${event.reason}` : ''}`;
    case 'run.resumed':
      return `run: resumed (${event.resumeCount}): ${resumedInWords(event, at)}`;
    case 'step.claimed':
      return `${event.step}: attempt ${event.attempt} of ${event.tool}, lease until ${clockNear(event.leaseExpiresAt, at)}`;
    case 'step.succeeded':
      return `${event.step}: ${event.skipped ? 'skipped' : 'succeeded'}`;
    case 'step.waiting':
      return `${event.step}: waits for ${event.signal ? `the signal "${event.signal}" ` : ''}until ${clockNear(event.until, at)}`;
    case 'step.signaled':
      return `${event.step}: ${event.actor} gave the signal "${event.signal}"`;
    case 'step.retry_requested':
      return `${event.step}: ${event.actor} asks for another try`;
    case 'step.canceled':
      return `${event.step}: closed with the run`;
    case 'step.retry_scheduled':
      return `${event.step}: tries again at ${clockNear(event.retryAt, at)}: ${errorInWords(event.error)}`;
    case 'step.failed':
      return `${event.step}: failed: ${errorInWords(event.error)}`;
    case 'write.intended':
      return `${event.step}: intends to write to ${event.target}`;
    case 'write.settled':
      return `${event.step}: ${outcomeInWords(event)}`;
    case 'write.reused':
      return `${event.step}: ${event.firstRunId} has made this very write; nothing is written again`;
    case 'write.reversed':
      return `${event.step}: taken back`;
    case 'write.compensated':
      return `${event.step}: ${compensationInWords(event)}`;
    case 'policy.decided':
      return `${event.step}: policy ${verdictInWords(event)}`;
    case 'approval.requested':
      return `${event.step}: waits until ${clockNear(event.expiresAt, at)} for ${requirementInWords(event)}`;
    case 'approval.covered':
      return `${event.step}: covered by the approval of its phase, ${event.approvalId}`;
    case 'approval.auto_approved':
      return `${event.step}: confidence ${event.confidence} passes the gate of the validation mode by itself`;
    case 'approval.voted':
      return `${event.step}: ${event.person} says ${event.decision} ${viaInWords(event.via)}${event.onBehalfOf ? ` for ${event.onBehalfOf}` : ''}`;
    case 'approval.edited':
      return `${event.step}: ${event.person} edited ${event.fields.join(', ')}; earlier votes are void`;
    case 'approval.decided':
      return `${event.step}: ${event.status} by ${event.people.join(' and ')}`;
    case 'approval.stale':
      return `${event.step}: ${STALE_BECAUSE[event.because]}; asked anew`;
    case 'approval.reminded':
      return `${event.step}: approvers were reminded`;
    case 'approval.overdue':
    case 'approval.escalated':
      return `${event.step}: nobody decided in time; others were called`;
    case 'approval.expired':
      return `${event.step}: approval ${event.approvalId} expired`;
    case 'approval.canceled':
      return `${event.step}: approval ${event.approvalId} is no longer asked for`;
    default:
      return newerEvent(event);
  }
}

function resumedInWords(resumed: Resumed, at: string): string {
  switch (resumed.because) {
    case 'orphaned':
      return `nothing had happened since ${clockNear(resumed.silentSince, at)}`;
    case 'lease_expired':
      return 'the lease of a step had expired';
    case 'operator':
      return `by ${resumed.actor}`;
  }
}

export const viaInWords = (via: string) => (via === 'api' ? 'over the API' : `in ${via}`);

const STALE_BECAUSE: Record<Extract<CommitEvent, { type: 'approval.stale' }>['because'], string> = {
  changed: 'what was approved is not what would be written now',
  expired: 'its approval expired before it was used',
  voters: 'somebody whose approval counted may not approve it any more',
  used: 'its approval was for one request, and that one did not work',
};

function verdictInWords({ verdict, ...said }: PolicyDecided): string {
  const why = whyOf(said) && `: ${whyOf(said)}`;
  switch (verdict) {
    case 'allow':
      return `allows it${why}`;
    case 'needs_approval':
      return `says people must approve it${why}`;
    case 'deny':
      return `denies it${why}`;
  }
}

export function compensationInWords({ outcome, reason }: Pick<Compensation, 'outcome' | 'reason'>): string {
  const why = reason === undefined ? '' : `: ${reason}`;
  switch (outcome) {
    case 'reversed':
      return 'its write was taken back';
    case 'drifted':
      return `not taken back${why}`;
    case 'irreversible':
      return `cannot be taken back${why}`;
    case 'refused':
      return `taking it back was refused${why}`;
    case 'unknown':
      return `nobody knows whether it was taken back${why}`;
    case 'kept':
      return 'its write stays';
  }
}

/** An event this program does not know yet is still shown. */
function newerEvent(event: never): string {
  const { type, ...details } = event as { type: string };
  return `${type} ${JSON.stringify(details)}`;
}

function outcomeInWords({ outcome, recovered }: { outcome: Receipt['outcome']; recovered?: true }): string {
  if (recovered) return 'the write was found at the target: recovered, not repeated';
  switch (outcome) {
    case 'intent':
      return 'the write is intended';
    case 'succeeded':
      return 'written';
    case 'reversed':
      return 'written, and taken back since';
    case 'failed':
      return 'the write was not made';
    case 'unknown':
      return 'nobody knows yet whether the write happened';
  }
}

export function eventTone(event: CommitEvent): Tone | undefined {
  if (event.type === 'run.status_changed') return (STATUSES as Record<string, Tone | undefined>)[event.to];
  if (event.type === 'step.failed') return 'bad';
  if (event.type === 'policy.decided' && event.verdict === 'deny') return 'bad';
  if (event.type === 'step.retry_scheduled' || event.type === 'approval.requested') return 'waiting';
  return undefined;
}

export const errorInWords = ({ code, message }: RecordedError) => `${code}: ${message}`;

/** Hashes and sys_ids in full only matter to a machine. */
export const withShortIds = (text: string) => text.replace(/\b((?:run_)?[0-9a-f]{8})[0-9a-f]{24,}\b/g, '$1…');

/** `servicenow:acme:INC0010001` is known by its end. */
export const shortSubject = (subject: string) => subject.slice(subject.lastIndexOf(':') + 1);
