import { Problem } from '../entry/http.ts';
import type { Caller } from './api-keys.ts';

const MAY_DEFINE: readonly Caller['role'][] = ['owner', 'admin'];

export function assertMayDefine({ role }: Caller): void {
  if (MAY_DEFINE.includes(role)) return;
  throw new Problem(403, 'FORBIDDEN', `a ${role} may look at definitions; ask an owner or admin to change one`);
}
