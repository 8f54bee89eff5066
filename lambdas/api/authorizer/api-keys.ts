import { effectiveRole } from '../../people/rights.ts';
import type { ChangeAuthor } from '../../pipeline/definition-changes.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import type { Caller } from './caller.ts';

/** API keys are stored as hashes, so that reading the table is not enough to call the API. */
export interface ApiKeys {
  find(apiKey: string): Promise<Caller | undefined>;
  save(apiKey: string, caller: Caller, by: ChangeAuthor): Promise<void>;
}

export const apiKeyHash = (apiKey: string) => sha256Hex(apiKey);

interface KeyHolders {
  keys: Pick<ApiKeys, 'find'>;
  definitions: Pick<Definitions, 'person'>;
}

/**
 * The caller with this key. The caller has the rights that the key's role and its person's role share. A key whose
 * person was deleted is refused; only a machine's key needs no person.
 */
export async function callerWith({ keys, definitions }: KeyHolders, apiKey: string): Promise<Caller | undefined> {
  const holder = await keys.find(apiKey);
  // An unknown key takes as many reads as a known one, so that the time reveals nothing.
  const person = await definitions.person(holder?.tenant ?? '', holder?.person ?? '');
  if (!holder || (!person && !holder.machine)) return undefined;
  return { ...holder, role: effectiveRole(holder.role, person) };
}
