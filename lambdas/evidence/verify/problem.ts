/** The first thing wrong with a bundle: which entry, and what about it. */
export interface Problem {
  /** `commit 4`, `receipt 2 (label)`, `signature`. */
  entry: string;
  problem: string;
}

const ONE_OF: Record<string, string> = {
  steps: 'step',
  decisions: 'decision',
  approvals: 'approval',
  receipts: 'receipt',
  cost: 'cost',
  commits: 'commit',
};

/** How people call an entry: by its place in its list, and by its step where it has one. */
export function entryName(section: string, index?: number, entry?: unknown): string {
  if (index === undefined) return section;
  const { step, id } = (entry ?? {}) as { step?: unknown; id?: unknown };
  const label = typeof step === 'string' ? step : id;
  return `${ONE_OF[section] ?? section} ${index + 1}${typeof label === 'string' ? ` (${label})` : ''}`;
}
