import { requirementText } from '../../../lambdas/policy/approval-requirement.ts';
import { whyOf } from '../../../lambdas/policy/policy.ts';
import type { CommitEvent, PolicyDecided } from '../../../lambdas/run/commit.ts';
import type { RecordedError } from '../../../lambdas/run/errors.ts';
import type { Receipt } from '../../../lambdas/run/receipt.ts';
import type { Compensation, Resumed, RunStatus, TerminalStatus } from '../../../lambdas/run/run.ts';
import type { Initiator } from '../../../lambdas/run/transitions.ts';
import type { TonedText } from '../../terminal/table.ts';
import type { Tone } from '../../terminal/terminal.ts';
import { clockNear } from '../../terminal/times.ts';

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

/** For runs and steps. A status of a newer server has no tone. */
export const statusCell = (status: string): TonedText => ({
  text: status,
  tone: (STATUSES as Record<string, Tone | undefined>)[status],
});

/** Initiators whose actor is a person. */
const PEOPLE: readonly Initiator[] = ['user', 'approval'];

/** One sentence for an event that was committed at `at`. */
export function eventText(event: CommitEvent, at: string): string {
  switch (event.type) {
    case 'run.accepted':
      return `accepted ${event.source} ${event.event} for ${event.automation} (${event.workflow.name} v${event.workflow.version})`;
    case 'run.enriched':
      return 'title, actor and links were extracted from the trigger';
    case 'run.status_changed': {
      const why = event.error ? `: ${errorText(event.error)}` : event.reason ? ` (${event.reason})` : '';
      return `run: ${event.to}${PEOPLE.includes(event.initiator) ? ` by ${event.actor}` : ''}${why}`;
    }
    case 'run.stop_requested':
      return `${event.actor} requested ${event.kind === 'rollback' ? 'a rollback' : event.kind}${event.reason ? `: ${event.reason}` : ''}`;
    case 'run.resumed':
      return `run: resumed (${event.resumeCount}): ${resumedText(event, at)}`;
    case 'step.claimed':
      return `${event.step}: attempt ${event.attempt} of ${event.tool}, lease until ${clockNear(event.leaseExpiresAt, at)}`;
    case 'step.succeeded':
      return `${event.step}: ${event.skipped ? 'skipped' : 'succeeded'}`;
    case 'step.waiting':
      return `${event.step}: waiting ${event.signal ? `for the signal "${event.signal}" ` : ''}until ${clockNear(event.until, at)}`;
    case 'step.signaled':
      return `${event.step}: ${event.actor} sent the signal "${event.signal}"`;
    case 'step.retry_requested':
      return `${event.step}: ${event.actor} requested a retry`;
    case 'step.canceled':
      return `${event.step}: canceled with the run`;
    case 'step.retry_scheduled':
      return `${event.step}: retry at ${clockNear(event.retryAt, at)}: ${errorText(event.error)}`;
    case 'step.failed':
      return `${event.step}: failed: ${errorText(event.error)}`;
    case 'write.intended':
      return `${event.step}: write to ${event.target} is about to start`;
    case 'write.settled':
      return `${event.step}: ${outcomeText(event)}`;
    case 'write.reused':
      return `${event.step}: ${event.firstRunId} already made the identical write; nothing is written again`;
    case 'write.reversed':
      return `${event.step}: write reversed`;
    case 'write.compensated':
      return `${event.step}: ${compensationText(event)}`;
    case 'policy.decided':
      return `${event.step}: policy ${verdictText(event)}`;
    case 'approval.requested':
      return `${event.step}: approval requested from ${requirementText(event)}, until ${clockNear(event.expiresAt, at)}`;
    case 'approval.covered':
      return `${event.step}: covered by the approval of its phase, ${event.approvalId}`;
    case 'approval.auto_approved':
      return `${event.step}: approved automatically with confidence ${event.confidence}`;
    case 'approval.voted':
      return `${event.step}: ${event.person} voted ${event.decision} ${viaText(event.via)}${event.onBehalfOf ? ` for ${event.onBehalfOf}` : ''}`;
    case 'approval.edited':
      return `${event.step}: ${event.person} edited ${event.fields.join(', ')}; earlier votes are void`;
    case 'approval.decided':
      return `${event.step}: ${event.status} by ${event.people.join(' and ')}`;
    case 'approval.stale':
      return `${event.step}: ${STALE_BECAUSE[event.because]}; approval requested again`;
    case 'approval.reminded':
      return `${event.step}: approvers were reminded`;
    case 'approval.overdue':
    case 'approval.escalated':
      return `${event.step}: no decision in time; escalated to more approvers`;
    case 'approval.expired':
      return `${event.step}: approval ${event.approvalId} expired`;
    case 'approval.canceled':
      return `${event.step}: approval ${event.approvalId} is no longer needed`;
    default:
      return newerEvent(event);
  }
}

function resumedText(resumed: Resumed, at: string): string {
  switch (resumed.because) {
    case 'orphaned':
      return `no progress since ${clockNear(resumed.silentSince, at)}`;
    case 'lease_expired':
      return 'the lease of a step expired';
    case 'operator':
      return `by ${resumed.actor}`;
  }
}

export const viaText = (via: string) => (via === 'api' ? 'through the API' : `in ${via}`);

const STALE_BECAUSE: Record<Extract<CommitEvent, { type: 'approval.stale' }>['because'], string> = {
  changed: 'the write differs from the approved one',
  expired: 'the approval expired before it was used',
  voters: 'a person who approved lost the right to approve it',
  used: 'the approval was for one request, and that request failed',
};

function verdictText({ verdict, ...said }: PolicyDecided): string {
  const why = whyOf(said) && `: ${whyOf(said)}`;
  switch (verdict) {
    case 'allow':
      return `allows it${why}`;
    case 'needs_approval':
      return `requires approval${why}`;
    case 'deny':
      return `denies it${why}`;
  }
}

export function compensationText({ outcome, reason }: Pick<Compensation, 'outcome' | 'reason'>): string {
  const why = reason === undefined ? '' : `: ${reason}`;
  switch (outcome) {
    case 'reversed':
      return 'write reversed';
    case 'drifted':
      return `not reversed${why}`;
    case 'irreversible':
      return `irreversible${why}`;
    case 'refused':
      return `the reversal was refused${why}`;
    case 'unknown':
      return `unknown whether the write was reversed${why}`;
    case 'kept':
      return 'the write stays';
  }
}

/** An event of a newer server. */
function newerEvent(event: never): string {
  const { type, ...details } = event as { type: string };
  return `${type} ${JSON.stringify(details)}`;
}

function outcomeText({ outcome, recovered }: { outcome: Receipt['outcome']; recovered?: true }): string {
  if (recovered) return 'the write was found at the target; it was not repeated';
  switch (outcome) {
    case 'intent':
      return 'the write is about to start';
    case 'succeeded':
      return 'written';
    case 'reversed':
      return 'written, later reversed';
    case 'failed':
      return 'not written';
    case 'unknown':
      return 'unknown whether the write was made';
  }
}

export function eventTone(event: CommitEvent): Tone | undefined {
  if (event.type === 'run.status_changed') return (STATUSES as Record<string, Tone | undefined>)[event.to];
  if (event.type === 'step.failed') return 'bad';
  if (event.type === 'policy.decided' && event.verdict === 'deny') return 'bad';
  if (event.type === 'step.retry_scheduled' || event.type === 'approval.requested') return 'waiting';
  return undefined;
}

export const errorText = ({ code, message }: RecordedError) => `${code}: ${message}`;

/** `INC0010001` of `servicenow:acme:INC0010001`. */
export const shortSubject = (subject: string) => subject.slice(subject.lastIndexOf(':') + 1);
