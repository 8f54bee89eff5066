import * as z from 'zod';
import { effectiveRole, ROLES } from '../approval/people.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { sha256Hex } from '../run/canonical-json.ts';

/** Who calls: the tenant comes from here and nowhere else. */
export const Caller = z.object({ tenant: z.string(), person: z.string(), role: z.enum(ROLES) });
export type Caller = z.infer<typeof Caller>;

/** API keys are kept as hashes: whoever reads the table cannot call the API. */
export interface ApiKeys {
  find(apiKey: string): Promise<Caller | undefined>;
  save(apiKey: string, caller: Caller): Promise<void>;
}

export const apiKeyHash = (apiKey: string) => sha256Hex(apiKey);

interface KeyHolders {
  keys: Pick<ApiKeys, 'find'>;
  definitions: Pick<Definitions, 'people'>;
}

/** Who calls with this key, with no more rights than the key and its person both have; a machine's key names no person. */
export async function callerWith({ keys, definitions }: KeyHolders, apiKey: string): Promise<Caller | undefined> {
  const holder = await keys.find(apiKey);
  if (!holder) return undefined;
  const people = await definitions.people(holder.tenant);
  const person = people.find(({ id }) => id === holder.person);
  return { ...holder, role: effectiveRole(holder.role, person) };
}
