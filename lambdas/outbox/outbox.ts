import * as z from 'zod';

/** When an approval's state machine climbs to the next rung of its ladder; a rung that is late delays no other. */
export const ApprovalClocks = z.object({ remindAt: z.string(), slaAt: z.string(), expiresAt: z.string() });

const promisedOf = <Kind extends string, Details extends z.ZodRawShape>(kind: Kind, details: Details) =>
  z.object({
    id: z.string(),
    kind: z.literal(kind),
    tenant: z.string(),
    runId: z.string(),
    ...details,
    attempts: z.int(),
    createdAt: z.string(),
    dueAt: z.string(),
    /** It can never be sent as it is: nobody sends it again until an operator redrives it. */
    failed: z.object({ at: z.string(), reason: z.string() }).optional(),
  });

/** An effect a commit promised. It is kept until the effect's own write removes it, so a lost message loses nothing. */
export const OutboxEntry = z.discriminatedUnion('kind', [
  promisedOf('seal_evidence', {}),
  /** What others read of a finished run could not be written beside its evidence; it is written later. */
  promisedOf('export_run', {}),
  /** A state machine is to hold this approval and keep its time. */
  promisedOf('start_approval', { approvalId: z.string(), clocks: ApprovalClocks }),
  /** An approval changed: its card is to show it, and its state machine to be woken if it is closed. */
  promisedOf('follow_approval', { approvalId: z.string(), revision: z.int() }),
]);
export type OutboxEntry = z.infer<typeof OutboxEntry>;

/** How long the fast path has before the sweeper sends a promised effect again, and again until it has happened. */
const FIRST_RESEND_MS = 30_000;
const LONGEST_RESEND_MS = 5 * 60_000;
/** Sent so often in vain, a quarter of an hour has passed: an alarm is raised, every time from then on. */
export const OUTBOX_ALARM_ATTEMPTS = 5;
const SLOW_RESEND_MS = 60 * 60_000;

/** min(30 s x 2^n, 5 min) until the alarm, then 1 h. */
export function resendDelayMs(attempts: number): number {
  if (attempts > OUTBOX_ALARM_ATTEMPTS) return SLOW_RESEND_MS;
  return Math.min(FIRST_RESEND_MS * 2 ** attempts, LONGEST_RESEND_MS);
}

/** Why an entry can never be sent, if it cannot; it may be of a version that is not deployed any more. */
export function entryFlaw(entry: OutboxEntry): string | undefined {
  const { error } = OutboxEntry.safeParse(entry);
  if (!error) return undefined;
  const paths = error.issues.map(({ path }) => path.join('.') || 'entry');
  return paths.includes('kind') ? 'its kind is not known' : `malformed: ${[...new Set(paths)].join(', ')}`;
}

/** An operator has to look at it: it failed for good, or was sent too often in vain. */
export const isStuck = ({ failed, attempts }: OutboxEntry): boolean =>
  failed !== undefined || attempts >= OUTBOX_ALARM_ATTEMPTS;

type WithoutBookkeeping<Entry> = Entry extends unknown ? Omit<Entry, 'id' | 'attempts' | 'createdAt' | 'dueAt'> : never;

/** Tenant and run lead the id: its shard can be found from the id alone. The same effect has the same id. */
export function promised(effect: WithoutBookkeeping<OutboxEntry>, at: string): OutboxEntry {
  const approval = 'approvalId' in effect ? [effect.approvalId] : [];
  const revision = 'revision' in effect ? [effect.revision] : [];
  return {
    ...effect,
    id: [effect.tenant, effect.runId, effect.kind, ...approval, ...revision].join('.'),
    attempts: 0,
    createdAt: at,
    dueAt: new Date(Date.parse(at) + resendDelayMs(0)).toISOString(),
  };
}

/** Sends a promised effect to whoever performs it. Sending twice must be harmless: the performer removes the entry. */
export interface OutboxDispatcher {
  dispatch(entry: OutboxEntry): Promise<void>;
}
