import { BEDROCK } from '../connectors/connections.ts';
import type { Access, Operation } from '../connectors/connector.ts';
import { isoNow } from '../entry/ports.ts';
import { CountersignError } from '../run/errors.ts';
import type { TouchedState } from '../run/receipt.ts';
import type { Planner, Walk } from './plan.ts';

/** A call as far as it is known; without `parsed`, not well enough to look at its target. */
export interface KnownCall {
  tenant: string;
  operation: Operation;
  target: string;
  after?: TouchedState;
  parsed: { input: unknown } | undefined;
}

/** What a plan found at a target, or why it did not look. */
export interface Seen {
  before?: TouchedState;
  output?: unknown;
  unread?: string;
}

const UNKNOWN_TARGET: Seen = { unread: 'what to look at is known after apply' };
const CHANGED_BEFORE: Seen = { unread: 'an earlier step would have changed it by then' };
const NO_TIME: Seen = { unread: 'there was no time left to look at it' };

/** What the write would change. What an earlier step would have written there is there already, as far as this one goes. */
export async function lookBeforeWrite(planner: Planner, walk: Walk, call: KnownCall): Promise<Seen> {
  const { operation, parsed } = call;
  const look = operation.before;
  if (!look) return {};
  if (!parsed) return UNKNOWN_TARGET;
  return attempt(planner, call.tenant, operation, async (access) => {
    const now = await look(parsed.input, access);
    const changed = Object.entries(walk.left.get(thingOf(call)) ?? {}).filter(([key]) => key in now);
    return { before: { ...now, ...Object.fromEntries(changed) } };
  });
}

/** What later steps will find. */
export function leaveWritten(walk: Walk, call: KnownCall): void {
  const thing = thingOf(call);
  walk.written.add(call.target);
  if (call.after) walk.left.set(thing, { ...walk.left.get(thing), ...call.after });
}

/** `github.labels` for adding and removing alike: what their states are about. */
const thingOf = ({ operation: { tool }, target }: KnownCall): string =>
  `${tool.slice(0, tool.lastIndexOf('.'))} ${target}`;

/** A read is made for what later steps refer to. Asking a model is none of the tenant's reads: it costs money. */
export async function readNow(planner: Planner, { written }: Walk, call: KnownCall): Promise<Seen> {
  const { operation, parsed, tenant } = call;
  if (operation.connection === BEDROCK) return {};
  if (!parsed) return UNKNOWN_TARGET;
  if (written.has(call.target)) return CHANGED_BEFORE;
  return attempt(planner, tenant, operation, async (access) => {
    const performance = { access, mark: 'countersign:plan', openSince: isoNow(planner.clock) };
    return { output: (await operation.perform(parsed.input, performance)).output };
  });
}

/** A target that cannot be read keeps nobody from planning. */
async function attempt(
  { connections, hasTime }: Planner,
  tenant: string,
  { connection }: Operation,
  look: (access: Access) => Promise<Seen>,
): Promise<Seen> {
  if (connection === undefined) return {};
  if (!hasTime()) return NO_TIME;
  try {
    return await look(await connections.open(tenant, connection));
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    return { unread: error.message };
  }
}
