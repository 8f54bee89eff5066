/** Says which invariant does not hold, and where it was seen. */
export type Report = (invariant: string, what: string) => void;
