import { type HttpEvent, Problem } from '../../entry/http.ts';
import { may, type Right, ROLES } from '../../people/people.ts';
import { Caller } from './api-keys.ts';

/** Who the authorizer said is calling: the tenant comes from here and nowhere else. */
export function callerOf(event: HttpEvent): Caller {
  const parsed = Caller.safeParse(event.requestContext.authorizer?.lambda);
  if (!parsed.success) throw new Problem(401, 'UNAUTHORIZED', 'send an API key in the header x-api-key');
  return parsed.data;
}

const oneOf = new Intl.ListFormat('en', { type: 'disjunction' });

/** The caller has this right, or is told who has. */
export function mayOrRefuse({ role }: Caller, right: Right, what: string): void {
  if (may(role, right)) return;
  const who = oneOf.format(ROLES.filter((each) => may(each, right)));
  throw new Problem(403, 'FORBIDDEN', `the role ${role} may not ${what}; ask somebody with the role ${who}`);
}
