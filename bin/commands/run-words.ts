import type { CommitEvent } from '../../lambdas/run/commit.ts';
import type { RecordedError } from '../../lambdas/run/errors.ts';
import type { Receipt } from '../../lambdas/run/receipt.ts';
import type { RunStatus, TerminalStatus } from '../../lambdas/run/run.ts';
import type { Cell } from './table.ts';
import type { Tone } from './terminal.ts';
import { clockTime } from './times.ts';

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

/** What happened, as a person would say it. */
export function eventInWords(event: CommitEvent): string {
  switch (event.type) {
    case 'run.accepted':
      return `accepted ${event.source} ${event.event} for ${event.automation} (${event.workflow.name} v${event.workflow.version})`;
    case 'run.enriched':
      return 'title, actor and links were found in the trigger';
    case 'run.status_changed': {
      const why = event.error ? `: ${errorInWords(event.error)}` : event.reason ? ` (${event.reason})` : '';
      return `run: ${event.to}${why}`;
    }
    case 'run.stop_requested':
      return `${event.actor} asks to ${event.kind} the run${event.reason ? `: ${event.reason}` : ''}`;
    case 'step.claimed':
      return `${event.step}: attempt ${event.attempt} of ${event.tool}, lease until ${clockTime(event.leaseExpiresAt)}`;
    case 'step.succeeded':
      return `${event.step}: ${event.skipped ? 'skipped' : 'succeeded'}`;
    case 'step.waiting':
      return `${event.step}: waits for ${event.event ? `the signal "${event.event}" ` : ''}until ${clockTime(event.until)}`;
    case 'step.signaled':
      return `${event.step}: ${event.actor} gave the signal "${event.event}"`;
    case 'step.retry_requested':
      return `${event.step}: ${event.actor} asks for another try`;
    case 'step.canceled':
      return `${event.step}: closed with the run`;
    case 'step.retry_scheduled':
      return `${event.step}: tries again at ${clockTime(event.retryAt)}: ${errorInWords(event.error)}`;
    case 'step.failed':
      return `${event.step}: failed: ${errorInWords(event.error)}`;
    case 'write.intended':
      return `${event.step}: intends to write to ${event.target}`;
    case 'write.settled':
      return `${event.step}: ${outcomeInWords(event)}`;
    case 'write.reused':
      return `${event.step}: ${event.firstRunId} has made this very write; nothing is written again`;
    case 'approval.requested':
      return `${event.step}: waits for approval ${event.approvalId} until ${clockTime(event.expiresAt)}`;
    case 'approval.expired':
      return `${event.step}: approval ${event.approvalId} expired`;
    case 'approval.canceled':
      return `${event.step}: approval ${event.approvalId} is no longer asked for`;
    default:
      return newerEvent(event);
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
    case 'failed':
      return 'the target refused the write';
    case 'unknown':
      return 'nobody knows yet whether the write happened';
  }
}

export function eventTone(event: CommitEvent): Tone | undefined {
  if (event.type === 'run.status_changed') return (STATUSES as Record<string, Tone | undefined>)[event.to];
  if (event.type === 'step.failed') return 'bad';
  if (event.type === 'step.retry_scheduled' || event.type === 'approval.requested') return 'waiting';
  return undefined;
}

export const errorInWords = ({ code, message }: RecordedError) => `${code}: ${message}`;

/** Hashes and sys_ids in full only matter to a machine. */
export const withShortIds = (text: string) => text.replace(/\b((?:run_)?[0-9a-f]{8})[0-9a-f]{24,}\b/g, '$1…');
