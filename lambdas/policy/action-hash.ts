import { hashOf } from '../run/canonical-json.ts';
import type { ProposedAction } from './policy.ts';

/**
 * What an approval is for: this very action with its whole input, under this policy, of this workflow version. One changed
 * byte is another hash. Who had a hand in it is not part of what is done.
 */
export function actionHash(
  { makers: _whoeverTheyAre, ...action }: ProposedAction,
  input: unknown,
  policyHash: string,
  workflow: { name: string; version: number },
): string {
  return hashOf(JSON.parse(JSON.stringify({ action, input, policyHash, workflow })));
}
