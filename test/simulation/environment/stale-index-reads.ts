import type { Fault } from '../faults.ts';

const REMEMBERED = 4;

/** Earlier results of index reads: a stale read returns one of them again. */
export class StaleIndexReads {
  readonly #before = new Map<string, unknown[]>();
  readonly #choose: (count: number) => number;

  constructor(choose: (count: number) => number) {
    this.#choose = choose;
  }

  async read<T>(name: string, args: unknown[], fault: Fault | undefined, fresh: () => Promise<T>): Promise<T> {
    // Times are not part of the key: they differ with every call, so no earlier result would be found.
    const view = `${name} ${args.filter((arg) => typeof arg !== 'string' || !arg.endsWith('Z')).join(' ')}`;
    const before = this.#before.get(view) ?? [];
    if (fault === 'stale' && before.length > 0) return before[this.#choose(before.length)] as T;
    const result = await fresh();
    this.#before.set(view, [...before, result].slice(-REMEMBERED));
    return result;
  }
}
