import { type HttpEvent, Problem } from '../entry/http.ts';
import { Caller } from './api-keys.ts';

const MAY_CONTROL: readonly Caller['role'][] = ['owner', 'admin', 'operator'];

/** Who the authorizer said is calling: the tenant comes from here and nowhere else. */
export function callerOf(event: HttpEvent): Caller {
  const parsed = Caller.safeParse(event.requestContext.authorizer?.lambda);
  if (!parsed.success) throw new Problem(401, 'UNAUTHORIZED', 'send an API key in the header x-api-key');
  return parsed.data;
}

export function assertMayControl({ role }: Caller): void {
  if (MAY_CONTROL.includes(role)) return;
  throw new Problem(403, 'FORBIDDEN', `a ${role} may look at runs; ask an operator to change one`);
}
