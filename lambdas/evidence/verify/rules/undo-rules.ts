import { attemptsWith } from './call-rules.ts';
import { isUndo, text, undoneBy } from './event-fields.ts';
import type { Rule } from './rule.ts';
import type { Attempt, PlacedEvent, RunHistory } from './run-history.ts';

const firstUndoOf = ({ attempts }: RunHistory, { index, intended }: Attempt): boolean =>
  !attempts.some((earlier) => earlier.index === index && earlier.intended.place < intended.place);

/** Rules about rollback. The writes that a rollback run undoes are in the bundle of another run. */
export const UNDO_RULES: readonly Rule[] = [
  {
    number: 15,
    name: 'only-writes-are-undone',
    description:
      'An undo is of a step that began a write in this run, which did not fail (a command may have failed) and was not reversed before; in a run with `rollbackOf`, of a step that it names.',
    check: (history) =>
      attemptsWith(history, (attempt) => {
        if (!isUndo(attempt.index)) return undefined;
        const { rollbackOf } = history.document.run;
        if (!rollbackOf) return whyNotUndoable(history, attempt);
        const undone = attempt.step.replace(/^undo_/, '');
        return rollbackOf.steps.includes(undone)
          ? undefined
          : `undoes ${undone}, which the run was not started to undo`;
      }),
  },
  {
    number: 16,
    name: 'newest-write-is-undone-first',
    description:
      'When an undo first begins, every write of the run that succeeded later (by the time of its commit, then by its index) has a `write.compensated`.',
    notCheckable: ({ document }) =>
      document.run.rollbackOf && 'the undone writes and their order are in the bundle of the run that it rolls back',
    check: (history) =>
      attemptsWith(history, (attempt) => {
        if (!isUndo(attempt.index) || !firstUndoOf(history, attempt)) return undefined;
        const newer = newerWrite(history, attempt);
        return newer && `is undone before ${newer}, which was written later`;
      }),
  },
];

function whyNotUndoable(history: RunHistory, { index, intended }: Attempt): string | undefined {
  const made = history.attempts.findLast(
    (each) => each.index === undoneBy(index) && each.intended.place < intended.place,
  );
  if (!made) return 'undoes a step that wrote nothing';
  const key = text(made.intended.event.receiptKey);
  const since = history.events
    .slice(made.intended.place, intended.place)
    .filter(({ event }) => event.receiptKey === key);
  if (since.some(({ event }) => event.type === 'write.reversed')) return 'undoes a write that was reversed before';
  const isCommand = since.some(({ event }) => event.type === 'step.command_ended' || event.type === 'step.assigned');
  const settled = since.findLast(({ event }) => event.type === 'write.settled');
  const tool = text(made.intended.event.tool);
  if (settled?.event.outcome !== 'failed' || isCommand || tool.startsWith('agent.')) return undefined;
  return 'undoes a write that failed';
}

/** A step whose write succeeded after the one that is undone, and whose result of the rollback is not recorded yet. */
function newerWrite(history: RunHistory, { index, intended }: Attempt): string | undefined {
  const past = history.events.slice(0, intended.place);
  const undone = endOf(history, past, undoneBy(index));
  const logged = new Set(past.filter(({ event }) => event.type === 'write.compensated').map(({ event }) => event.step));
  const written = new Set(
    history.attempts.filter((each) => each.intended.place < intended.place).map((each) => each.index),
  );
  for (const other of written) {
    if (isUndo(other) || other === undoneBy(index)) continue;
    const end = endOf(history, past, other);
    if (!end || !undone || logged.has(end.event.step)) continue;
    if (end.at > undone.at || (end.at === undone.at && other > undoneBy(index))) return text(end.event.step);
  }
  return undefined;
}

/** The success of a step that made a write; undefined if its last call was a read or did not succeed. */
function endOf({ attempts, steps }: RunHistory, past: readonly PlacedEvent[], index: number): PlacedEvent | undefined {
  if (steps.get(index)?.action?.effect === 'read') return undefined;
  const end = past.findLast(({ event }) => event.type === 'step.succeeded' && event.index === index);
  const made = attempts.findLast(
    (each) => each.index === index && end !== undefined && each.intended.place < end.place,
  );
  return made && end;
}
