import type { CommitEvent } from '../../../lambdas/run/events/events.ts';
import { groupedBy } from '../../../lambdas/run/grouped-by.ts';
import type { ShownStep } from '../../client/api-client.ts';

/** A row of the table of steps. The steps of a loop or a call are below it, one level deeper. */
export type StepRow = { depth: number } & (
  | { step: ShownStep; status: string; items?: number }
  /** Slots of a loop for which its list has no item. */
  | { unusedSlots: number; status: string }
);

/**
 * A run has a fixed list of steps (expand-workflow.ts): a loop `x` has `x__0` for its list, a slot `x__1`, `x__2`, … for each
 * item, and `x` for the outputs. A call `x` has `x__0` for its inputs, its steps as `x__…`, and `x` for its outputs.
 */
export function stepRows(steps: readonly ShownStep[]): StepRow[] {
  const tree = new StepTree(steps);
  return steps.filter((step) => tree.parentOf(step) === undefined).flatMap((step) => rowsOf(tree, step, 0));
}

function rowsOf(tree: StepTree, step: ShownStep, depth: number): StepRow[] {
  const first = tree.firstOf(step);
  if (!first) return [{ depth, step, status: statusOf(step) }];
  const within = tree.childrenOf(step);
  const items = step.tool === LOOP ? itemsOf(first) : undefined;
  const row = { depth, step, status: composedStatus(tree, step), ...(items !== undefined && { items }) };
  if (statusOf(first) === 'skipped') return [{ ...row, status: 'skipped' }];
  const unused = items === undefined ? [] : within.filter((each) => positionOf(each) > items);
  const shown = within.filter((each) => !unused.includes(each) && !(each === first && UNREMARKABLE.has(first.status)));
  return [
    row,
    ...shown.flatMap((each) => rowsOf(tree, each, depth + 1)),
    ...(unused[0] ? [{ depth: depth + 1, unusedSlots: unused.length, status: statusOf(unused[0]) }] : []),
  ];
}

const LOOP = 'forEach';
const COMPOSED: readonly string[] = [LOOP, 'workflow.call'];
/** The step for the list or the inputs is only worth a row if it fails. */
const UNREMARKABLE: ReadonlySet<string> = new Set(['succeeded', 'pending']);

class StepTree {
  readonly #byId: ReadonlyMap<string, ShownStep>;
  readonly #children: ReadonlyMap<string | undefined, ShownStep[]>;

  constructor(steps: readonly ShownStep[]) {
    this.#byId = new Map(steps.map((step) => [step.id, step]));
    this.#children = groupedBy(steps, (step) => this.parentOf(step));
  }

  /** The step for the list of a loop, or for the inputs of a call. */
  firstOf({ id, tool }: ShownStep): ShownStep | undefined {
    return COMPOSED.includes(tool) ? this.#byId.get(`${id}__0`) : undefined;
  }

  /** The id of the innermost loop or call that the step belongs to. */
  parentOf({ id }: ShownStep): string | undefined {
    for (let end = id.lastIndexOf('__'); end > 0; end = id.lastIndexOf('__', end - 1)) {
      const found = this.#byId.get(id.slice(0, end));
      if (found && this.firstOf(found)) return found.id;
    }
    return undefined;
  }

  childrenOf({ id }: ShownStep): readonly ShownStep[] {
    return this.#children.get(id) ?? [];
  }

  allWithin(step: ShownStep): ShownStep[] {
    return this.childrenOf(step).flatMap((each) => [each, ...this.allWithin(each)]);
  }
}

const statusOf = (step: ShownStep): string => ('skipped' in step && step.skipped ? 'skipped' : step.status);

/** Until its last step, a loop or a call has the status of the step that it has reached. */
function composedStatus(tree: StepTree, step: ShownStep): string {
  if (step.status !== 'pending') return statusOf(step);
  const statuses = tree.allWithin(step).map(statusOf);
  const reached = statuses.filter((status) => status !== 'pending');
  return (
    reached.find((status) => status !== 'succeeded' && status !== 'skipped') ?? (reached[0] ? 'running' : 'pending')
  );
}

/** How many items the list has; undefined if that is not known, or the response leaves the list out because of its size. */
function itemsOf(list: ShownStep): number | undefined {
  const output = 'output' in list ? list.output : undefined;
  return Array.isArray(output) ? output.length : undefined;
}

/** 0 for the step of the list. */
const positionOf = ({ id }: ShownStep): number => Number(/__(\d+)$/.exec(id)?.[1] ?? 0);

/** The events of a commit, where several slots of a loop that were skipped one after another are one entry. */
export function eventEntries(events: readonly CommitEvent[]): { event: CommitEvent; last?: string }[] {
  const entries: { event: CommitEvent; last?: string }[] = [];
  for (const event of events) {
    const before = entries.at(-1);
    const [slot, slotBefore] = [skippedSlot(event), before && skippedSlot(before.event)];
    if (before && slot && slot.loop === slotBefore?.loop) before.last = slot.id;
    else entries.push({ event });
  }
  return entries;
}

function skippedSlot(event: CommitEvent): { loop: string; id: string } | undefined {
  if (event.type !== 'step.succeeded' || !event.skipped) return undefined;
  const loop = /^(.+)__[1-9]\d*$/.exec(event.step)?.[1];
  return loop === undefined ? undefined : { loop, id: event.step };
}
