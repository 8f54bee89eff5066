import type { ChangeAuthor } from '../../lambdas/pipeline/definition-changes.ts';
import { BY_SETUP } from './memory-changes.ts';

let changes = 0;

/** Whoever sets a tenant up for a test; each change is one of its own in the history. */
export function byTest(differing: Partial<ChangeAuthor> = {}): ChangeAuthor {
  changes += 1;
  return { ...BY_SETUP, changeId: `chg_test${String(changes).padStart(6, '0')}`, ...differing };
}
