import { setTimeout as delay } from 'node:timers/promises';

const POLL_EVERY_MS = 20;
/** Only a test that fails waits this long. Less than the timeout of a test, so that the error says what was expected. */
const WITHIN_MS = 120_000;

export interface Waiting {
  withinMs?: number;
  lastSeen?: () => string;
  /** The pause between two tries. */
  pause?: () => Promise<unknown>;
}

/** Tries until there is a result. Without one in time, fails with the last state. */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | undefined>,
  { withinMs = WITHIN_MS, lastSeen = () => '', pause = () => delay(POLL_EVERY_MS) }: Waiting = {},
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > deadline) throw new Error(`${what}: not within ${withinMs} ms. ${lastSeen()}`);
    await pause();
  }
}

/** Processes all items, at most `concurrency` at a time; results are in the order of the items. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  concurrency: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(items.length);
  const left = items.entries();
  const lane = async () => {
    for (const [index, item] of left) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  return results;
}
