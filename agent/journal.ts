import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import * as z from 'zod';
import { ProfileName } from '../lambdas/agents/agent-terms.ts';
import type { AssignmentStatement } from '../lambdas/agents/protocol.ts';
import { AgentError } from './agent-error.ts';
import { jsonOrUndefined, writePrivate } from './agent-folder.ts';

const Entry = z.discriminatedUnion('event', [
  z.object({
    event: z.literal('acknowledged'),
    at: z.string(),
    assignment_id: z.string(),
    session_id: z.string(),
    step_id: z.string(),
    lease_version: z.int(),
    idempotency_key: z.string(),
    sandbox_profile: ProfileName,
    issued_at: z.string(),
  }),
  z.object({ event: z.literal('started'), at: z.string(), assignment_id: z.string() }),
  z.object({ event: z.literal('ended'), at: z.string(), assignment_id: z.string() }),
]);
type Entry = z.infer<typeof Entry>;
type Acknowledged = Extract<Entry, { event: 'acknowledged' }>;

export interface JournaledAssignment extends Omit<Acknowledged, 'event' | 'at'> {
  acknowledgedAt: string;
  startedAt?: string;
  endedAt?: string;
}

/** An assignment cannot start after its `start_before`, so its entry is not needed for long. */
const RETAINED_MS = 7 * 24 * 60 * 60_000;
/** A running agent removes old entries when it has this many, and again when they have doubled. */
const SHORTENED_FROM = 1_000;

/**
 * What the agent has done with each assignment. An entry is on disk before the agent does what it says, so an assignment is
 * never run twice, not even if the agent or its machine crashes at any moment.
 */
export class Journal {
  readonly #file: string;
  readonly #assignments: Map<string, JournaledAssignment>;
  #descriptor: number;
  #shortenAt = SHORTENED_FROM;

  private constructor(file: string, assignments: Map<string, JournaledAssignment>) {
    this.#file = file;
    this.#assignments = assignments;
    this.#descriptor = openSync(file, 'a', 0o600);
  }

  /** Reads the journal, and writes it again without old entries and without a line that a crash has cut. */
  static open(file: string, nowMs: number): Journal {
    const assignments = readJournal(file);
    writeJournal(file, assignments, nowMs);
    return new Journal(file, assignments);
  }

  get(assignmentId: string): JournaledAssignment | undefined {
    return this.#assignments.get(assignmentId);
  }

  /** True if the agent has acknowledged this assignment, or one of the same step with a later lease. */
  hasSeen({ assignment_id, session_id, step_id, lease_version }: AssignmentStatement): boolean {
    if (this.#assignments.has(assignment_id)) return true;
    return [...this.#assignments.values()].some(
      (each) => each.session_id === session_id && each.step_id === step_id && each.lease_version >= lease_version,
    );
  }

  /** When the newest acknowledged statement was issued; 0 if there is none. */
  get newestIssue(): number {
    let newest = 0;
    for (const { issued_at } of this.#assignments.values()) newest = Math.max(newest, Date.parse(issued_at));
    return newest;
  }

  /** Assignments that were acknowledged and have no end: after a crash, the agent must report them. */
  unfinished(): JournaledAssignment[] {
    return [...this.#assignments.values()].filter(({ endedAt }) => endedAt === undefined);
  }

  acknowledged(statement: AssignmentStatement, at: string): void {
    if (this.#assignments.size >= this.#shortenAt) this.#shorten(Date.parse(at));
    const { assignment_id, session_id, step_id, lease_version, idempotency_key, sandbox_profile, issued_at } =
      statement;
    this.#append({
      event: 'acknowledged',
      at,
      assignment_id,
      session_id,
      step_id,
      lease_version,
      idempotency_key,
      sandbox_profile,
      issued_at,
    });
  }

  /** To be called before the command starts. */
  started(assignmentId: string, at: string): void {
    this.#append({ event: 'started', at, assignment_id: assignmentId });
  }

  /** The result is delivered. */
  ended(assignmentId: string, at: string): void {
    this.#append({ event: 'ended', at, assignment_id: assignmentId });
  }

  close(): void {
    closeSync(this.#descriptor);
    this.#descriptor = -1;
  }

  /** An agent that runs for months would otherwise remember every command that it ever ran. */
  #shorten(nowMs: number): void {
    writeJournal(this.#file, this.#assignments, nowMs);
    closeSync(this.#descriptor);
    this.#descriptor = openSync(this.#file, 'a', 0o600);
    this.#shortenAt = Math.max(SHORTENED_FROM, 2 * this.#assignments.size);
  }

  #append(entry: Entry): void {
    const { size } = fstatSync(this.#descriptor);
    try {
      // Not `writeSync`, which writes a part of the line to a disk that is almost full, and does not throw.
      writeFileSync(this.#descriptor, lineOf(entry));
      fsyncSync(this.#descriptor);
    } catch (cause) {
      // The next line would otherwise continue this one, and the journal would be damaged.
      ftruncateSync(this.#descriptor, size);
      throw new AgentError(`cannot write ${this.#file}: ${(cause as Error).message}; free space on its disk`, {
        cause,
      });
    }
    apply(this.#assignments, entry);
  }
}

/** Writes the journal without old entries, and forgets them. */
function writeJournal(file: string, assignments: Map<string, JournaledAssignment>, nowMs: number): void {
  for (const [id, { endedAt }] of assignments) {
    if (endedAt !== undefined && Date.parse(endedAt) < nowMs - RETAINED_MS) assignments.delete(id);
  }
  writePrivate(file, [...assignments.values()].flatMap(entriesOf).map(lineOf).join(''));
}

const lineOf = (entry: Entry): string => `${JSON.stringify(entry)}\n`;

function readJournal(file: string): Map<string, JournaledAssignment> {
  const lines = textOf(file).split('\n');
  // A crash can cut the last line. Its entry was not yet in effect.
  lines.pop();
  const assignments = new Map<string, JournaledAssignment>();
  for (const [index, line] of lines.entries()) {
    const { data } = Entry.safeParse(jsonOrUndefined(line));
    if (!data) {
      throw new AgentError(
        `${file}, line ${index + 1} is damaged, so the agent cannot know what it has already run. Restore the file, or ` +
          'wait until no assignment of this agent is open, and delete it',
      );
    }
    apply(assignments, data);
  }
  return assignments;
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

function apply(assignments: Map<string, JournaledAssignment>, entry: Entry): void {
  const known = assignments.get(entry.assignment_id);
  if (entry.event === 'acknowledged') {
    const { event: _event, at, ...statement } = entry;
    assignments.set(entry.assignment_id, { ...statement, acknowledgedAt: at });
  } else if (known) {
    assignments.set(entry.assignment_id, { ...known, [entry.event === 'started' ? 'startedAt' : 'endedAt']: entry.at });
  }
}

function entriesOf({ acknowledgedAt, startedAt, endedAt, ...statement }: JournaledAssignment): Entry[] {
  const { assignment_id } = statement;
  return [
    { event: 'acknowledged', at: acknowledgedAt, ...statement },
    ...(startedAt === undefined ? [] : [{ event: 'started' as const, at: startedAt, assignment_id }]),
    ...(endedAt === undefined ? [] : [{ event: 'ended' as const, at: endedAt, assignment_id }]),
  ];
}
