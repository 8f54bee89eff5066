import { setTimeout as delay } from 'node:timers/promises';

const POLL_EVERY_MS = 20;
/** Generous, for a test that fails only; less than a test may take, so that it is this that says what was waited for. */
const WITHIN_MS = 120_000;

export interface Waiting {
  withinMs?: number;
  lastSeen?: () => string;
  /** How long to wait before asking again. */
  pause?: () => Promise<unknown>;
}

/** Asks until there is an answer; one that does not come in time fails with what was last seen. */
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

/** Works on all items, at most `concurrency` at a time; results keep the order of the items. */
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
