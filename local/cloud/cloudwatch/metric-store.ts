/** The values of a metric in one minute. */
interface Bucket {
  count: number;
  sum: number;
  min: number;
  max: number;
  /** For percentiles. */
  values: number[];
}

/** Which values: a metric has one series for each combination of dimension values. */
export interface Series {
  namespace: string;
  name: string;
  dimensions: Readonly<Record<string, string>>;
}

export const MINUTE_MS = 60_000;
/** Longer than every window of an alarm and than what the dashboard shows. */
const RETAINED_MS = 25 * 60 * MINUTE_MS;
/** A percentile of more values in one minute is that of the first ones. */
const VALUES_MAX = 1_000;

/** The metrics of the host in memory, by minute, as CloudWatch stores them. */
export class MetricStore {
  readonly #series = new Map<string, { series: Series; buckets: Map<number, Bucket> }>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  put(series: Series, value: number, atMs = this.#now()): void {
    if (!Number.isFinite(value)) return;
    const key = keyOf(series);
    const entry = this.#series.get(key) ?? { series, buckets: new Map<number, Bucket>() };
    this.#series.set(key, entry);
    const minute = Math.floor(atMs / MINUTE_MS);
    let bucket = entry.buckets.get(minute);
    if (!bucket) {
      bucket = { count: 0, sum: 0, min: Infinity, max: -Infinity, values: [] };
      entry.buckets.set(minute, bucket);
      this.#forget(entry.buckets, minute);
    }
    bucket.count += 1;
    bucket.sum += value;
    bucket.min = Math.min(bucket.min, value);
    bucket.max = Math.max(bucket.max, value);
    if (bucket.values.length < VALUES_MAX) bucket.values.push(value);
  }

  list(): Series[] {
    return [...this.#series.values()].map(({ series }) => series);
  }

  /** The statistic of the values in `[fromMs, toMs)`, in whole minutes. Undefined without values. */
  statistic(series: Series, statistic: string, fromMs: number, toMs: number): number | undefined {
    const { buckets } = this.#series.get(knownKeyOf(series)) ?? {};
    if (!buckets) return undefined;
    const [first, end] = [Math.floor(fromMs / MINUTE_MS), Math.floor(toMs / MINUTE_MS)];
    const found: Bucket[] = [];
    for (let minute = first; minute < end; minute += 1) {
      const bucket = buckets.get(minute);
      if (bucket) found.push(bucket);
    }
    return found.length === 0 ? undefined : statisticOf(found, statistic);
  }

  #forget(buckets: Map<number, Bucket>, newest: number): void {
    for (const minute of buckets.keys()) if (minute < newest - RETAINED_MS / MINUTE_MS) buckets.delete(minute);
  }
}

/** Names and values contain no line breaks. */
function keyOf({ namespace, name, dimensions }: Series): string {
  let key = `${namespace}\n${name}`;
  for (const dimension of Object.keys(dimensions).sort()) key += `\n${dimension}\n${dimensions[dimension]}`;
  return key;
}

/** Alarms ask for the same series at every minute, and a jump of the clock has hundreds of them. */
const KNOWN_KEYS = new WeakMap<Series, string>();

function knownKeyOf(series: Series): string {
  const key = KNOWN_KEYS.get(series) ?? keyOf(series);
  KNOWN_KEYS.set(series, key);
  return key;
}

function statisticOf(buckets: readonly Bucket[], statistic: string): number {
  const count = total(buckets.map((each) => each.count));
  const sum = total(buckets.map((each) => each.sum));
  switch (statistic.toLowerCase()) {
    case 'sum':
      return sum;
    case 'average':
      return sum / count;
    case 'samplecount':
      return count;
    case 'minimum':
      return Math.min(...buckets.map(({ min }) => min));
    case 'maximum':
      return Math.max(...buckets.map(({ max }) => max));
  }
  const values = buckets.flatMap((each) => each.values).sort((a, b) => a - b);
  const [, percent] = /^p(\d+(?:\.\d+)?)$/.exec(statistic) ?? [];
  if (percent !== undefined) return values[Math.max(0, Math.ceil((Number(percent) / 100) * values.length) - 1)] ?? 0;
  const [, upTo] = /^PR\(:(\d+(?:\.\d+)?)\)$/.exec(statistic) ?? [];
  if (upTo !== undefined) return (100 * values.filter((value) => value <= Number(upTo)).length) / values.length;
  throw new Error(`the local host does not support the statistic ${statistic}`);
}

const total = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0);
