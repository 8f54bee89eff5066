import * as z from 'zod';
import { type HttpEvent, Problem } from '../../entry/http.ts';
import { may, type Right, ROLES } from '../../people/rights.ts';

/** Who calls, as the authorizer established. The tenant of a request comes from here and nowhere else. */
export const Caller = z.object({
  tenant: z.string(),
  person: z.string(),
  role: z.enum(ROLES),
  /** The key belongs to a program; `person` is the name of the program. */
  machine: z.boolean().optional(),
});
export type Caller = z.infer<typeof Caller>;

export function callerOf(event: HttpEvent): Caller {
  const parsed = Caller.safeParse(event.requestContext.authorizer?.lambda);
  if (!parsed.success) throw new Problem(401, 'UNAUTHORIZED', 'send an API key in the header x-api-key');
  return parsed.data;
}

const oneOf = new Intl.ListFormat('en', { type: 'disjunction' });

export function requireRight({ role }: Caller, right: Right): void {
  if (may(role, right)) return;
  const roles = oneOf.format(ROLES.filter((each) => may(each, right)));
  throw new Problem(403, 'FORBIDDEN', `the role ${role} lacks the right ${right}; ask somebody with the role ${roles}`);
}

/**
 * Nobody knows who uses the key of a machine. It could be the same person who must not act alone.
 */
export function requirePerson({ person, machine }: Caller, action: string): void {
  if (!machine) return;
  throw new Problem(403, 'FORBIDDEN', `${person} is a machine, and only a person may ${action}; use your own API key`);
}
