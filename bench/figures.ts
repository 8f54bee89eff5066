export const round = (value: number): number => Math.round(value * 100) / 100;

/** By the nearest rank: the smallest value that `percent` of all values do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return round(sorted[Math.ceil((sorted.length * percent) / 100) - 1] ?? Number.NaN);
}
