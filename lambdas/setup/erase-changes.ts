import * as z from 'zod';
import type { Clock, Ids } from '../entry/ports.ts';
import { type Change, changeAuthor } from '../pipeline/definition-changes.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { findChange } from '../pipeline/find-change.ts';
import { CountersignError } from '../run/errors.ts';

const CHANGES_MAX = 25;
const REASON_MAX_CHARACTERS = 500;
/** By then the file of its day is signed, so that it stays known that there was a change. */
const ERASABLE_AFTER_MS = 48 * 60 * 60 * 1000;

export const EraseChanges = z.strictObject({
  tenant: z.string(),
  changeIds: z.array(z.string().max(200)).min(1).max(CHANGES_MAX),
  reason: z.string().trim().min(1).max(REASON_MAX_CHARACTERS),
});
export type EraseChanges = z.infer<typeof EraseChanges>;

export interface ErasePorts {
  definitions: Pick<Definitions, 'changes' | 'eraseChange'>;
  clock: Clock;
  ids: Ids;
}

/**
 * Deletes personal data from the history of changes, for the operator of the stage: who changed what, and the values
 * before and after. The signed files have only digests, which nobody can open without the salt that is deleted too.
 */
export async function eraseChanges(ports: ErasePorts, request: EraseChanges): Promise<{ erased: string[] }> {
  const { tenant, changeIds, reason } = request;
  const changes: Change[] = [];
  for (const changeId of new Set(changeIds)) changes.push(await erasable(ports, tenant, changeId));
  for (const change of changes) {
    await ports.definitions.eraseChange(tenant, change, changeAuthor(ports, 'operator'), reason);
  }
  return { erased: changes.map(({ changeId }) => changeId) };
}

async function erasable({ definitions, clock }: ErasePorts, tenant: string, changeId: string): Promise<Change> {
  const change = await findChange(definitions, tenant, changeId);
  if (!change) {
    throw new CountersignError(
      'NOT_FOUND',
      `${tenant} has no change ${changeId}; nothing was erased. countersign changes list shows the ids`,
    );
  }
  const erasableAt = Date.parse(change.at) + ERASABLE_AFTER_MS;
  if (clock.now() >= erasableAt) return change;
  throw new CountersignError(
    'INPUT_INVALID',
    `${changeId} is not signed yet; nothing was erased. Try again after ${new Date(erasableAt).toISOString()}`,
  );
}
