import { hashOf } from '../run/canonical-json.ts';
import type { ProposedAction } from './policy.ts';

/**
 * Identifies what an approval covers: the action, its complete input, the policies and the workflow version. The makers are
 * not part of it: they do not change what is written.
 */
export function actionHash(
  { makers: _ignored, ...action }: ProposedAction,
  input: unknown,
  policyHash: string,
  workflow: { name: string; version: number },
): string {
  return hashOf(JSON.parse(JSON.stringify({ action, input, policyHash, workflow })));
}
