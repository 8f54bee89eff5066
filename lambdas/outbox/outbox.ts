import * as z from 'zod';
import type { TerminalRun } from '../run/run.ts';

/** The times of an approval's escalation stages. They are absolute, so a late stage does not delay the next. */
export const ApprovalClocks = z.object({ remindAt: z.string(), slaAt: z.string(), expiresAt: z.string() });

/** How long each stage lasts if the first one begins now. Step Functions needs at least a second. */
export function stageSeconds({ remindAt, slaAt, expiresAt }: z.infer<typeof ApprovalClocks>, nowMs: number) {
  const until = (from: number, to: string) => Math.max(1, Math.ceil((Date.parse(to) - Math.max(from, nowMs)) / 1000));
  return {
    notifySeconds: until(nowMs, remindAt),
    remindSeconds: until(Date.parse(remindAt), slaAt),
    escalateSeconds: until(Date.parse(slaAt), expiresAt),
  };
}

/**
 * An approval whose reminder is due later than this after its request is announced first: its card is posted without an
 * execution, which starts when the reminder is due. The sweeper starts it, up to a minute late, so approvals with shorter
 * clocks start at once.
 */
const ANNOUNCED_IF_REMINDED_AFTER_MS = 2 * 60_000;
export const isAnnouncedFirst = ({ requestedAt, remindAt }: { requestedAt: string; remindAt: string }): boolean =>
  Date.parse(remindAt) - Date.parse(requestedAt) >= ANNOUNCED_IF_REMINDED_AFTER_MS;

const entryOf = <Kind extends string, Details extends z.ZodRawShape>(kind: Kind, details: Details) =>
  z.object({
    id: z.string(),
    kind: z.literal(kind),
    tenant: z.string(),
    runId: z.string(),
    ...details,
    attempts: z.int(),
    createdAt: z.string(),
    dueAt: z.string(),
    /** It can never be sent. The sweeper ignores it until an operator redrives it. */
    failed: z.object({ at: z.string(), reason: z.string() }).optional(),
  });

/** A follow-up action of a commit, in its transaction. The action itself removes the entry, so a lost message is sent again. */
export const OutboxEntry = z.discriminatedUnion('kind', [
  entryOf('seal_evidence', {}),
  /** A commit after the end of the run, as an addendum to its evidence. */
  entryOf('seal_addendum', { seq: z.int() }),
  /** Retries the exports of a finished run that could not be written with its evidence. */
  entryOf('export_run', {}),
  /** Writes the output of a command to its object: S3 did not respond when it completed, or its agent is lost. */
  entryOf('store_output', { stepIndex: z.int(), leaseVersion: z.int() }),
  /** Notifies people of the end of the run. */
  entryOf('notify_run_end', {}),
  /** Shows a commit in the thread of the run. */
  entryOf('post_progress', { seq: z.int() }),
  /**
   * Starts the state machine that waits for the decision. With `announce` its first attempt posts the card instead; if that
   * succeeds, the entry is due when people are reminded, otherwise the state machine starts soon and posts the card.
   */
  entryOf('start_approval', { approvalId: z.string(), clocks: ApprovalClocks, announce: z.literal(true).optional() }),
  /** Publishes a change of an approval: updates its card, and ends its state machine if it is closed. */
  entryOf('follow_approval', { approvalId: z.string(), revision: z.int() }),
  /** The approval is overdue: it stays until a digest in Slack lists it. */
  entryOf('list_overdue', { approvalId: z.string() }),
  /** Repeats a digest, which lists this approval and perhaps others, for those that are still open. */
  entryOf('repeat_digest', { approvalId: z.string(), number: z.int() }),
]);
export type OutboxEntry = z.infer<typeof OutboxEntry>;

/** How long overdue approvals are collected before they are listed. */
const COLLECTED_FOR_MS = 60_000;
/** An agent that was cut off may still send output of a command whose lease has ended. Then the output is stored. */
const LATE_OUTPUT_AWAITED_MS = 10 * 60_000;
/** The sweeper sends these when they are due. Others are sent right after their commit. */
export const isSentLater = ({ createdAt, dueAt }: Pick<OutboxEntry, 'createdAt' | 'dueAt'>): boolean =>
  Date.parse(dueAt) - Date.parse(createdAt) > FIRST_RESEND_MS;

/** The sweeper sends an entry again after this time, until it is removed. */
const FIRST_RESEND_MS = 30_000;
const LONGEST_RESEND_MS = 5 * 60_000;
/** After this many attempts, about a quarter of an hour, every further attempt raises an alarm. */
const OUTBOX_ALARM_ATTEMPTS = 5;
const SLOW_RESEND_MS = 60 * 60_000;

/** min(30 s x 2^n, 5 min) until the alarm, then 1 h. Digests stay at 5 min: people need them soon after Slack is back. */
export function resendDelayMs(attempts: number, kind?: OutboxEntry['kind']): number {
  const isDigest = kind === 'list_overdue' || kind === 'repeat_digest';
  if (attempts > OUTBOX_ALARM_ATTEMPTS && !isDigest) return SLOW_RESEND_MS;
  return Math.min(FIRST_RESEND_MS * 2 ** attempts, LONGEST_RESEND_MS);
}

/** Why an entry can never be sent, if so; for example, another version wrote it. */
export function checkEntry(entry: OutboxEntry): string | undefined {
  const { error } = OutboxEntry.safeParse(entry);
  if (!error) return undefined;
  const paths = error.issues.map(({ path }) => path.join('.') || 'entry');
  return paths.includes('kind') ? 'unknown kind' : `malformed: ${[...new Set(paths)].join(', ')}`;
}

/** An operator has to check it: it can never be sent, or too many attempts had no effect. */
export const isStuck = ({ failed, attempts }: OutboxEntry): boolean =>
  failed !== undefined || attempts >= OUTBOX_ALARM_ATTEMPTS;

export type StartApproval = Extract<OutboxEntry, { kind: 'start_approval' }>;

/** The id of the entry that starts the execution of an approval. */
export const startEntryId = ({ tenant, runId, approvalId }: Pick<StartApproval, 'tenant' | 'runId' | 'approvalId'>) =>
  entryId({ kind: 'start_approval', tenant, runId }, [approvalId]);

/** Sent right after its commit, an entry with `announce` posts the card. The sweeper counts its attempts, and starts the state machine. */
export const isAnnouncement = ({ announce, attempts }: StartApproval): boolean => announce === true && attempts === 0;

/**
 * The entry after the card is posted: it starts the state machine when people are to be reminded. It keeps its count of attempts,
 * so that an announcement that is sent a second time cannot claim it.
 */
export function startWithReminder({ announce: _announced, ...entry }: StartApproval): StartApproval {
  return { ...entry, dueAt: entry.clocks.remindAt };
}

/** An operator has it sent again. If it announced an approval, its card may be posted, so it counts as attempted. */
export const redriven = ({ failed: _failed, ...entry }: OutboxEntry, dueAt: string): OutboxEntry => ({
  ...entry,
  attempts: 'announce' in entry && entry.announce ? 1 : 0,
  dueAt,
});

type Action<Entry> = Entry extends unknown ? Omit<Entry, 'id' | 'attempts' | 'createdAt' | 'dueAt'> : never;

/** The same action has the same id. The id starts with tenant and run, because they determine the shard. */
export function outboxEntryId(action: Action<OutboxEntry>): string {
  const approval = 'approvalId' in action ? [action.approvalId] : [];
  const revision = 'revision' in action ? [action.revision] : [];
  const seq = 'seq' in action ? [action.seq] : [];
  const command = 'stepIndex' in action ? [action.stepIndex, action.leaseVersion] : [];
  const number = 'number' in action ? [action.number] : [];
  return entryId(action, [...approval, ...revision, ...seq, ...command, ...number]);
}

const entryId = ({ tenant, runId, kind }: Pick<OutboxEntry, 'tenant' | 'runId' | 'kind'>, parts: (string | number)[]) =>
  [tenant, runId, kind, ...parts].join('.');

export function newOutboxEntry(action: Action<OutboxEntry>, at: string): OutboxEntry {
  return entryDue(action, at, action.kind === 'list_overdue' ? COLLECTED_FOR_MS : resendDelayMs(0));
}

/**
 * Seals an ended run. It is sent without being stored: the run stays due until it is sealed. A worker that finds it due stores
 * the entry, so that operators see a run that is not sealed for long.
 */
export const sealEntry = ({ tenant, runId, completedAt }: TerminalRun): OutboxEntry =>
  newOutboxEntry({ kind: 'seal_evidence', tenant, runId }, completedAt);

/** Stores the output of a command whose agent is lost, after the time in which the agent may come back. */
export const lostOutputEntry = (command: Omit<Action<StoreOutput>, 'kind'>, at: string): OutboxEntry =>
  entryDue({ ...command, kind: 'store_output' }, at, LATE_OUTPUT_AWAITED_MS);
type StoreOutput = Extract<OutboxEntry, { kind: 'store_output' }>;

const entryDue = (action: Action<OutboxEntry>, at: string, afterMs: number): OutboxEntry => ({
  ...action,
  id: outboxEntryId(action),
  attempts: 0,
  createdAt: at,
  dueAt: new Date(Date.parse(at) + afterMs).toISOString(),
});

/** Sends an entry to the function that performs its action and then removes it. Sending it twice must be harmless. */
export interface OutboxDispatcher {
  dispatch(entry: OutboxEntry): Promise<void>;
}

/** Tenant, run, kind, and for some kinds more: `acme.run_1.seal_addendum.8`. */
const ENTRY_ID = /^([^.]+)\.([^.]+)\.(\w+)(?:\.(.+))?$/;

type ReadClocks = (of: { tenant: string; runId: string; approvalId: string }) => Promise<Clocks | undefined>;
type Clocks = z.infer<typeof ApprovalClocks>;

/**
 * Makes an entry again from its id, if its other fields are damaged. The id says what to do; only the times of an approval
 * are read from the approval. Undefined if the id is of another version or the approval is gone.
 */
export async function entryFromId(id: string, at: string, readClocks: ReadClocks): Promise<OutboxEntry | undefined> {
  const [, tenant = '', runId = '', kind = '', rest = ''] = ENTRY_ID.exec(id) ?? [];
  const action = await actionOf({ tenant, runId }, kind, rest, readClocks);
  const entry = action && newOutboxEntry(action, at);
  return entry?.id === id && checkEntry(entry) === undefined ? entry : undefined;
}

async function actionOf(
  of: { tenant: string; runId: string },
  kind: string,
  rest: string,
  readClocks: ReadClocks,
): Promise<Action<OutboxEntry> | undefined> {
  switch (kind) {
    case 'seal_evidence':
    case 'export_run':
    case 'notify_run_end':
      return { kind, ...of };
    case 'seal_addendum':
    case 'post_progress':
      return { kind, ...of, seq: Number(rest) };
    case 'store_output': {
      const [stepIndex, leaseVersion] = rest.split('.').map(Number);
      return { kind, ...of, stepIndex: stepIndex ?? Number.NaN, leaseVersion: leaseVersion ?? Number.NaN };
    }
    case 'follow_approval': {
      const [, approvalId = '', revision = ''] = /^(.+)\.(\d+)$/.exec(rest) ?? [];
      return { kind, ...of, approvalId, revision: Number(revision) };
    }
    case 'list_overdue':
      return { kind, ...of, approvalId: rest };
    case 'repeat_digest': {
      const [, approvalId = '', number = ''] = /^(.+)\.(\d+)$/.exec(rest) ?? [];
      return { kind, ...of, approvalId, number: Number(number) };
    }
    case 'start_approval': {
      const clocks = await readClocks({ ...of, approvalId: rest });
      return clocks && { kind, ...of, approvalId: rest, clocks };
    }
    default:
      return undefined;
  }
}
