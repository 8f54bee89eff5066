/** The first problem of a bundle. */
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

/** A readable name of an entry: its position and, if it has one, its step. */
export function entryName(section: string, index?: number, entry?: unknown): string {
  if (index === undefined) return section;
  const { step, id } = (entry ?? {}) as { step?: unknown; id?: unknown };
  const label = typeof step === 'string' ? step : id;
  return `${ONE_OF[section] ?? section} ${index + 1}${typeof label === 'string' ? ` (${label})` : ''}`;
}
