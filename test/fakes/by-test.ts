import type { ChangeAuthor } from '../../lambdas/pipeline/definition-changes.ts';
import { BY_SETUP } from './memory/memory-changes.ts';

let changes = 0;

/** The actor that sets up a tenant for a test; each change has its own entry in the history. */
export function byTest(differing: Partial<ChangeAuthor> = {}): ChangeAuthor {
  changes += 1;
  return { ...BY_SETUP, changeId: `chg_test${String(changes).padStart(6, '0')}`, ...differing };
}
