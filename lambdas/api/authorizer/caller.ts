import * as z from 'zod';
import { type HttpEvent, Problem } from '../../entry/http.ts';
import { may, type Right, ROLES } from '../../people/rights.ts';

/** A token with scopes `tool:NAME` is for calls of these tools over MCP, and for nothing else. */
export const TOOL_SCOPE = 'tool:';

/** How a caller signed in. */
const Credential = z.object({
  kind: z.enum(['api_key', 'oidc']),
  /** The name of the key or of the issuer. */
  name: z.string().optional(),
  expiresAt: z.string().optional(),
  /** Somebody else created this key for the person, so they may know it. */
  issuedBy: z.string().optional(),
});
export type Credential = z.infer<typeof Credential>;

/** Who calls, as the authorizer established. The tenant of a request comes from here and nowhere else. */
export const Caller = z.object({
  tenant: z.string(),
  person: z.string(),
  role: z.enum(ROLES),
  /** The key belongs to a program; `person` is the name of the program. */
  machine: z.boolean().optional(),
  credential: Credential.optional(),
  /** Of the scopes `tool:NAME` of the token. */
  tools: z.array(z.string()).optional(),
});
export type Caller = z.infer<typeof Caller>;

/** What the authorizer passes to the router instead of a caller, because API Gateway itself responds without a reason. */
export interface RefusedCaller {
  refused: string;
}

export const NO_CREDENTIAL =
  'send a token of your issuer in the header Authorization (Bearer …), or an API key in the header x-api-key';

/** Throws a 403 for a token that is only for tools: only the MCP server knows what it allows. */
export function callerOf(event: HttpEvent): Caller {
  const caller = callerForTools(event);
  if (caller.tools === undefined) return caller;
  throw new Problem(403, 'FORBIDDEN', 'the scopes of this token are for tools of the MCP server only; sign in again');
}

export function callerForTools(event: HttpEvent): Caller {
  const context = event.requestContext.authorizer?.lambda;
  const parsed = Caller.safeParse(context);
  if (parsed.success && context?.refused === undefined) return parsed.data;
  const reason = typeof context?.refused === 'string' ? context.refused : NO_CREDENTIAL;
  throw new Problem(401, 'UNAUTHORIZED', reason);
}

export function requireRight({ role }: Caller, right: Right): void {
  if (may(role, right)) return;
  // Created here, because it loads the data of a language: 9 ms.
  const oneOf = new Intl.ListFormat('en', { type: 'disjunction' });
  const roles = oneOf.format(ROLES.filter((each) => may(each, right)));
  throw new Problem(403, 'FORBIDDEN', `the role ${role} lacks the right ${right}; ask somebody with the role ${roles}`);
}

/**
 * Nobody knows who uses the key of a machine, or a key that one person created for another. It could be the same person
 * who must not act alone.
 */
export function requirePerson({ person, machine, credential }: Caller, action: string): void {
  if (machine) {
    throw new Problem(403, 'FORBIDDEN', `${person} is a machine, and only a person may ${action}; sign in yourself`);
  }
  if (credential?.issuedBy === undefined) return;
  throw new Problem(
    403,
    'FORBIDDEN',
    `${credential.issuedBy} created this API key and may know it, and only ${person} may ${action}; sign in with countersign login, or decide in Slack`,
  );
}
