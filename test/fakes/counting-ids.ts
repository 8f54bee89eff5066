import type { Ids } from '../../lambdas/entry/ports.ts';

/** `run_00000001`, `lease_00000002`: as unique as the real ones, and the same every time. */
export class CountingIds implements Ids {
  #last = 0;

  next(prefix: string): string {
    // Every run has one, and the ids that tests name stay as they are.
    if (prefix === 'salt') return 'salt_of_a_run';
    this.#last += 1;
    return `${prefix}_${this.#last.toString(16).padStart(8, '0')}`;
  }
}
