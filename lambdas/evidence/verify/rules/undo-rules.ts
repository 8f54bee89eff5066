import { groupedBy } from '../../../run/grouped-by.ts';
import { attemptsWith } from './call-rules.ts';
import { isUndo, lastBefore, text, undoneBy } from './event-fields.ts';
import type { Rule } from './rule.ts';
import type { Attempt, PlacedEvent, RunHistory } from './run-history.ts';

/** Rules about rollback. The writes that a rollback run undoes are in the bundle of another run. */
export const UNDO_RULES: readonly Rule[] = [
  {
    number: 15,
    name: 'only-writes-are-undone',
    description:
      'An undo undoes a step of this run that began a write. The write has not failed (a command may have failed) and was not reversed before. In a run with `rollbackOf`, an undo undoes a step that `rollbackOf` names instead.',
    check: (history) => {
      const { rollbackOf } = history.document.run;
      const named = new Set(rollbackOf?.steps);
      const byIndex = groupedBy(history.attempts, ({ index }) => index);
      return attemptsWith(history, (attempt) => {
        if (!isUndo(attempt.index)) return undefined;
        if (!rollbackOf) return whyNotUndoable(history, attempt, byIndex.get(undoneBy(attempt.index)) ?? []);
        const undone = attempt.step.replace(/^undo_/, '');
        return named.has(undone) ? undefined : `undoes ${undone}, which the run was not started to undo`;
      });
    },
  },
  {
    number: 16,
    name: 'newest-write-is-undone-first',
    description:
      'When an undo first begins, every write of the run that succeeded later (by the time of its commit, then by its index) has a `write.compensated`.',
    notCheckable: ({ document }) =>
      document.run.rollbackOf && 'the undone writes and their order are in the bundle of the run that it rolls back',
    check: (history) => {
      const newer = newerWrites(history);
      return attemptsWith(history, (attempt) => {
        const step = newer.get(attempt);
        return step && `is undone before ${step}, which was written later`;
      });
    },
  },
];

/** `attempts`: those of the undone step. */
function whyNotUndoable(
  { ofWrite }: RunHistory,
  { intended }: Attempt,
  attempts: readonly Attempt[],
): string | undefined {
  const made = lastBefore(attempts, intended.place, (each) => each.intended.place);
  if (!made) return 'undoes a step that wrote nothing';
  const events = ofWrite.get(text(made.intended.event.receiptKey)) ?? [];
  const outcome = lastBefore(outcomesIn(events), intended.place, ({ placed }) => placed.place);
  if (!outcome || outcome.placed.place < made.intended.place) return undefined;
  const since = made.intended.place;
  if ((outcome.reversedAt ?? -1) >= since) return 'undoes a write that was reversed before';
  const isCommand = (outcome.commandAt ?? -1) >= since || text(made.intended.event.tool).startsWith('agent.');
  const hasFailed = outcome.settled !== undefined && outcome.settled.place >= since;
  if (!hasFailed || outcome.settled?.event.outcome !== 'failed' || isCommand) return undefined;
  return 'undoes a write that failed';
}

/** What is known about a write after each of its events. */
interface KnownOutcome {
  placed: PlacedEvent;
  reversedAt?: number;
  commandAt?: number;
  settled?: PlacedEvent;
}

const known = new WeakMap<readonly PlacedEvent[], KnownOutcome[]>();

function outcomesIn(events: readonly PlacedEvent[]): KnownOutcome[] {
  const before = known.get(events);
  if (before) return before;
  let now: Omit<KnownOutcome, 'placed'> = {};
  const outcomes = events.map((placed) => {
    const { type } = placed.event;
    if (type === 'write.reversed') now = { ...now, reversedAt: placed.place };
    if (type === 'step.command_ended' || type === 'step.assigned') now = { ...now, commandAt: placed.place };
    if (type === 'write.settled') now = { ...now, settled: placed };
    return { placed, ...now };
  });
  known.set(events, outcomes);
  return outcomes;
}

/**
 * For the first attempt of each undo: a step whose write succeeded after the one that is undone, and whose result of the
 * rollback is not recorded yet. There are at most 5,000 steps and 5,000 undos.
 */
function newerWrites({ events, attempts, steps }: RunHistory): Map<Attempt, string> {
  const attemptAt = new Map(attempts.map((attempt) => [attempt.intended.place, attempt]));
  const firstAttempt = new Map<number, number>();
  const succeeded = new Map<unknown, PlacedEvent>();
  const compensated = new Set<unknown>();
  const newer = new Map<Attempt, string>();
  /** The success of a step that made a write; undefined if its last call was a read or did not succeed. */
  const endOf = (index: number): PlacedEvent | undefined => {
    const end = succeeded.get(index);
    const isWrite = steps.get(index)?.action?.effect !== 'read';
    return isWrite && end && (firstAttempt.get(index) ?? end.place) < end.place ? end : undefined;
  };
  const laterThan = (index: number): string | undefined => {
    const undone = endOf(index);
    if (!undone) return undefined;
    for (const other of firstAttempt.keys()) {
      const end = isUndo(other) || other === index ? undefined : endOf(other);
      if (!end || compensated.has(end.event.step)) continue;
      if (end.at > undone.at || (end.at === undone.at && other > index)) return text(end.event.step);
    }
    return undefined;
  };
  for (const placed of events) {
    const { event, place } = placed;
    if (event.type === 'step.succeeded') succeeded.set(event.index, placed);
    if (event.type === 'write.compensated') compensated.add(event.step);
    const attempt = attemptAt.get(place);
    if (!attempt || firstAttempt.has(attempt.index)) continue;
    const step = isUndo(attempt.index) ? laterThan(undoneBy(attempt.index)) : undefined;
    if (step !== undefined) newer.set(attempt, step);
    firstAttempt.set(attempt.index, place);
  }
  return newer;
}
