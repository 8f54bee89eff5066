/** Reports which invariant is violated, and where. */
export type Report = (invariant: string, what: string) => void;
