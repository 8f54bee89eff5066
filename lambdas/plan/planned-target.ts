import { BEDROCK } from '../connectors/connections.ts';
import type { Names, Operation } from '../connectors/connector.ts';
import { TargetRefused } from '../connectors/target-errors.ts';
import { isoNow } from '../entry/ports.ts';
import type { ProposedCall } from '../proposal/propose-call.ts';
import { readTarget, resolveNames, tryToRead, type Unreadable } from '../proposal/read-target.ts';
import type { TouchedState } from '../run/receipt.ts';
import type { Planner } from './plan.ts';
import type { Walk } from './walk.ts';

/** What a plan read at a target, or why it did not read it. */
export interface Seen {
  before?: TouchedState;
  names?: Names;
  output?: unknown;
  unread?: string;
}

const UNKNOWN_TARGET: Seen = { unread: 'the target is known after apply' };
const CHANGED_BEFORE: Seen = { unread: 'an earlier step would have changed it by then' };
const NO_TIME: Seen = { unread: 'there was no time left to read it' };
const ASKED_TO_WAIT = 'the target asked to wait before the next request; simulate again later';

/** The values that a write would change, including the changes of earlier steps of the plan. */
export async function readBeforeWrite(
  planner: Planner,
  walk: Walk,
  tenant: string,
  proposed: ProposedCall,
): Promise<Seen> {
  const { operation, parsed } = proposed;
  if (!operation.before && !operation.inspect) return {};
  if (!parsed) return UNKNOWN_TARGET;
  if (operation.connection === undefined) return {};
  if (!planner.hasTime()) return NO_TIME;
  if (walk.askedToWait.has(operation.connection)) return { unread: ASKED_TO_WAIT };
  const found = await readTarget(planner, tenant, proposed);
  if ('why' in found) return unread(walk, operation, found);
  const names = found.names && { names: found.names };
  const now = found.before;
  if (!now) return { ...names };
  const changed = Object.entries(walk.left.get(recordOf(proposed)) ?? {}).filter(([key]) => key in now);
  return { before: { ...now, ...Object.fromEntries(changed) }, ...names };
}

/** The input of a call as the run would propose it: with ids instead of names of records. Stubs replace all reads. */
export async function plannedNames(
  planner: Planner,
  { askedToWait }: Walk,
  tenant: string,
  { operation, input }: { operation: Operation; input: unknown },
  stubs: unknown,
): Promise<{ input: unknown; foundByName?: string[]; unresolved?: string }> {
  const foundByName = operation.byName?.named(input) ?? [];
  if (foundByName.length === 0 || stubs !== undefined) return { input };
  const unresolved = (why: string) => ({
    input,
    unresolved: `${foundByName.join(', ')} was not found by name: ${why}`,
  });
  if (!planner.hasTime()) return unresolved('there was no time left');
  const { connection = '' } = operation;
  if (askedToWait.has(connection)) return unresolved(ASKED_TO_WAIT);
  try {
    return { input: await resolveNames(planner, tenant, operation, input), foundByName };
  } catch (error) {
    // A name that is unknown or not unique fails the step, as in a run.
    if (!(error instanceof TargetRefused)) throw error;
    if (error.retryAfterMs !== undefined) askedToWait.add(connection);
    return unresolved(error.message);
  }
}

/** Records the values that later steps of the plan will find. */
export function leaveWritten(walk: Walk, proposed: ProposedCall): void {
  const record = recordOf(proposed);
  const { target, after } = proposed.proposal;
  walk.written.add(target);
  if (after) walk.left.set(record, { ...walk.left.get(record), ...after });
}

/** `github.labels …`: adding and removing labels change the same record. */
const recordOf = ({ operation: { tool }, proposal: { target } }: ProposedCall): string =>
  `${tool.slice(0, tool.lastIndexOf('.'))} ${target}`;

/** Makes a read whose output later steps refer to. A model is not asked, because that costs money. */
export async function readNow(
  planner: Planner,
  walk: Walk,
  tenant: string,
  { operation, parsed, proposal }: ProposedCall,
): Promise<Seen> {
  if (operation.connection === BEDROCK) return {};
  if (!parsed) return UNKNOWN_TARGET;
  if (walk.written.has(proposal.target)) return CHANGED_BEFORE;
  if (operation.connection === undefined) return {};
  if (!planner.hasTime()) return NO_TIME;
  if (walk.askedToWait.has(operation.connection)) return { unread: ASKED_TO_WAIT };
  const found = await tryToRead(planner, tenant, operation, async (access): Promise<Seen> => {
    const performance = { access, mark: 'countersign:plan', openSince: isoNow(planner.clock) };
    return { output: (await operation.perform(parsed.input, performance)).output };
  });
  return 'why' in found ? unread(walk, operation, found) : found;
}

/** A plan continues without the targets that it cannot read. */
function unread(walk: Walk, { connection }: Operation, { why, retryAfterMs }: Unreadable): Seen {
  if (retryAfterMs !== undefined && connection !== undefined) walk.askedToWait.add(connection);
  return { unread: why };
}
