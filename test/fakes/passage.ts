/**
 * Everything a fake does for its caller passes here: the one place where a simulation can delay, lose, repeat or refuse.
 * The name says what passes: `commit`, `queue.send`, `PATCH servicenow`.
 */
export type Passage = <T>(name: string, run: () => Promise<T>) => Promise<T>;

export const undisturbed: Passage = (_name, run) => run();
