/**
 * Wraps every call to a fake, so that a test can delay, lose, repeat or refuse it. The name identifies the call: `commit`,
 * `queue.send`, `PATCH servicenow`.
 */
export type Passage = <T>(name: string, run: () => Promise<T>) => Promise<T>;

export const undisturbed: Passage = (_name, run) => run();
