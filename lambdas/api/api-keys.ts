import * as z from 'zod';
import { ROLES } from '../approval/people.ts';
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
