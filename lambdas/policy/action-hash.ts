import { hashOf } from '../run/canonical-json.ts';
import type { ProposedAction } from './policy.ts';

/** What an approval is for: this very action, under this policy, of this workflow version. One changed byte is another hash. */
export function actionHash(
  action: Omit<ProposedAction, 'makers'>,
  policyHash: string,
  workflow: { name: string; version: number },
): string {
  return hashOf(JSON.parse(JSON.stringify({ action, policyHash, workflow })));
}
