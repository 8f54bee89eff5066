import * as z from 'zod';
import { effectiveRole, ROLES } from '../../people/people.ts';
import type { ChangeAuthor } from '../../pipeline/definition-changes.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { sha256Hex } from '../../run/canonical-json.ts';

/** Who calls: the tenant comes from here and nowhere else. */
export const Caller = z.object({
  tenant: z.string(),
  person: z.string(),
  role: z.enum(ROLES),
  /** The key belongs to a program: `person` is only its name. */
  machine: z.boolean().optional(),
});
export type Caller = z.infer<typeof Caller>;

/** API keys are kept as hashes: whoever reads the table cannot call the API. */
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
 * Who calls with this key, with no more rights than the key and its person both have. A key whose person is gone is
 * nobody's; only one that is marked as a machine's needs no person.
 */
export async function callerWith({ keys, definitions }: KeyHolders, apiKey: string): Promise<Caller | undefined> {
  const holder = await keys.find(apiKey);
  // A key that nobody has takes as many reads as one that somebody has.
  const person = await definitions.person(holder?.tenant ?? '', holder?.person ?? '');
  if (!holder || (!person && !holder.machine)) return undefined;
  return { ...holder, role: effectiveRole(holder.role, person) };
}
