import { type AttemptDeadline, withinDeadline } from '../connectors/attempt-deadline.ts';
import type { Connections } from '../connectors/connections.ts';
import type { Access, Inspected, Operation } from '../connectors/connector.ts';
import { TargetRefused } from '../connectors/target-errors.ts';
import { type Clock, isoNow, type Log } from '../entry/ports.ts';
import { CountersignError } from '../run/errors.ts';
import { later } from '../run/lease.ts';
import type { ProposedCall } from './propose-call.ts';

/** For operations that use no connection of the tenant. */
const NO_CONNECTION: Access = { baseUrl: '', instance: '', credential: undefined };

export async function accessFor(
  { connections }: { connections: Connections },
  tenant: string,
  operation: Pick<Operation, 'connection' | 'connectionIn'>,
  input?: unknown,
): Promise<Access> {
  const named = connectionFor(operation, input);
  return named === undefined ? NO_CONNECTION : connections.open(tenant, named);
}

export const connectionFor = (
  { connection, connectionIn }: Pick<Operation, 'connection' | 'connectionIn'>,
  input: unknown,
): string | undefined => connection ?? connectionIn?.(input);

export interface TargetReader {
  connections: Connections;
  log: Log;
}

export interface Unreadable {
  why: string;
  retryable: boolean;
  retryAfterMs?: number;
}

/** When the target may be called again, if it said so. It responded after the draft began, so the time counts from now. */
export const callableFrom = ({ clock }: { clock: Clock }, { retryAfterMs }: Unreadable): string | undefined =>
  retryAfterMs === undefined ? undefined : later(isoNow(clock), retryAfterMs);

/** Reads the current values that a write would change: for approvers to see, and to compare with. */
export async function readTarget(
  reader: TargetReader,
  tenant: string,
  { operation, parsed }: Pick<ProposedCall, 'operation' | 'parsed'>,
  deadline?: AttemptDeadline,
): Promise<Partial<Inspected> | Unreadable> {
  const { before, inspect } = operation;
  if (!parsed || !(before || inspect)) return {};
  return tryToRead(reader, tenant, operation, async (access) => {
    const read = async () =>
      inspect ? inspect(parsed.input, access) : { before: await before?.(parsed.input, access) };
    return deadline ? withinDeadline(deadline, read) : read();
  });
}

/**
 * The input of a call with ids instead of names of records. The worker calls it once, before the call is first proposed:
 * policy, approval and write all see the ids. The target is read only if there is a name.
 */
export async function resolveNames(
  reader: Pick<TargetReader, 'connections'>,
  tenant: string,
  operation: Operation,
  input: unknown,
  deadline?: AttemptDeadline,
): Promise<unknown> {
  const { byName } = operation;
  if (!byName || byName.named(input).length === 0) return input;
  const access = await accessFor(reader, tenant, operation);
  const resolve = () => byName.resolve(input, access);
  return deadline ? withinDeadline(deadline, resolve) : resolve();
}

/** Opens the connection and reads. A failure is a result, because the caller can continue without the values. */
export async function tryToRead<Found>(
  reader: TargetReader,
  tenant: string,
  operation: Operation,
  read: (access: Access) => Promise<Found>,
): Promise<Found | Unreadable> {
  try {
    return await read(await accessFor(reader, tenant, operation));
  } catch (error) {
    reader.log.warn('a target could not be read', { tool: operation.tool, error });
    const known = error instanceof CountersignError ? error : undefined;
    return {
      why: known?.message ?? 'the connector failed',
      retryable: error instanceof TargetRefused ? error.retryable : known === undefined,
      ...(error instanceof TargetRefused && { retryAfterMs: error.retryAfterMs }),
    };
  }
}
