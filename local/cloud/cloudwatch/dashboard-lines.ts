import { mathValue } from './metric-math.ts';
import { type MetricStore, MINUTE_MS } from './metric-store.ts';

/** A line of a graph: one value for each period, undefined where there is none. */
export interface Line {
  label: string;
  values: (number | undefined)[];
}

interface Options {
  id?: string;
  label?: string;
  stat?: string;
  period?: number;
  visible?: boolean;
  expression?: string;
}

type MetricRow = (string | Options)[];

const DEFAULT_PERIOD_SECONDS = 300;

/** The lines of a graph of the dashboard, from `fromMs` to `toMs`. */
export function linesOf(rows: readonly MetricRow[], metrics: MetricStore, fromMs: number, toMs: number): Line[] {
  const parsed = rows.map(parseRow);
  const stepMs = 1000 * Math.max(...parsed.map(({ options }) => options.period ?? 0), DEFAULT_PERIOD_SECONDS);
  const ends = Array.from(
    { length: Math.floor((toMs - fromMs) / stepMs) },
    (_, index) => fromMs + (index + 1) * stepMs,
  );
  const valueAt = ({ series, options }: Parsed, toMs: number) =>
    series && metrics.statistic(series, options.stat ?? 'Average', toMs - stepMs, toMs);
  const expressionAt = (expression: string, endMs: number) => {
    const values = parsed.flatMap((each) => (each.options.id ? [[each.options.id, valueAt(each, endMs)]] : []));
    return mathValue(expression, Object.fromEntries(values));
  };
  return parsed
    .filter(({ options }) => options.visible !== false)
    .map((each) => ({
      label: each.options.label ?? each.series?.name ?? '',
      values: ends.map((endMs) =>
        each.options.expression ? expressionAt(each.options.expression, endMs) : valueAt(each, endMs),
      ),
    }));
}

type Parsed = ReturnType<typeof parseRow>;

function parseRow(row: MetricRow) {
  const options = (row.find((part) => typeof part === 'object') ?? {}) as Options;
  const [namespace, name, ...dimensions] = row.filter((part) => typeof part === 'string');
  if (namespace === undefined || name === undefined) return { options, series: undefined };
  const pairs = dimensions.flatMap((part, index) => (index % 2 === 0 ? [[part, dimensions[index + 1] ?? '']] : []));
  return { options, series: { namespace, name, dimensions: Object.fromEntries(pairs) as Record<string, string> } };
}

/** As wide as what the dashboard shows at first. */
export const SHOWN_MS = 6 * 60 * MINUTE_MS;
