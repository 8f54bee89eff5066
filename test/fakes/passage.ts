/**
 * Wraps every call to a fake, so that a test can delay, lose, repeat or refuse it. The name identifies the call: `commit`,
 * `queue.send`, `PATCH servicenow`.
 */
export type Passage = <T>(name: string, run: () => Promise<T>) => Promise<T>;

export const undisturbed: Passage = (_name, run) => run();

/** Crashes at this call, counted from 1, before or after it took effect. */
export const crashesAt = (call: number, when: 'before' | 'after'): Passage => {
  let calls = 0;
  return async (_name, run) => {
    calls += 1;
    if (calls === call && when === 'before') throw new Error('crashed');
    const result = await run();
    if (calls === call) throw new Error('crashed');
    return result;
  };
};
