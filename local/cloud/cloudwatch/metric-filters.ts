import type { ResolvedStack } from '../../template/template.ts';
import type { LogLine } from './log-line.ts';
import type { MetricStore } from './metric-store.ts';

interface LogFilter {
  /** Logical ids of the functions that write to the log group. */
  functions: ReadonlySet<string>;
  path: string[];
  text: string;
  namespace: string;
  name: string;
}

const PATTERN = /^\{ \$\.([\w.]+) = "(.*)" \}$/;

/** The metric filters of the template: each counts log lines in which a field has a certain text. */
export class MetricFilters {
  readonly #filters: LogFilter[];
  readonly #metrics: MetricStore;

  constructor(stack: ResolvedStack, metrics: MetricStore) {
    this.#metrics = metrics;
    this.#filters = stack.ofType('AWS::Logs::MetricFilter').map(({ logicalId, properties }) => {
      const [, path, text] = PATTERN.exec(String(properties.FilterPattern)) ?? [];
      const [transformation, ...others] = (properties.MetricTransformations ?? []) as Record<string, unknown>[];
      if (!path || text === undefined || !transformation || others.length > 0 || transformation.MetricValue !== '1') {
        throw new Error(
          `${logicalId}: the local host supports only filters that count lines with one text in one field`,
        );
      }
      const functions = stack.ofType('AWS::Lambda::Function').filter((each) => {
        const { LogGroup } = (each.properties.LoggingConfig ?? {}) as { LogGroup?: unknown };
        return LogGroup === properties.LogGroupName;
      });
      return {
        functions: new Set(functions.map((each) => each.logicalId)),
        path: path.split('.'),
        text,
        namespace: String(transformation.MetricNamespace),
        name: String(transformation.MetricName),
      };
    });
  }

  read(functionLogicalId: string, line: LogLine): void {
    for (const { functions, path, text, namespace, name } of this.#filters) {
      if (functions.has(functionLogicalId) && valueAt(line, path) === text) {
        this.#metrics.put({ namespace, name, dimensions: {} }, 1);
      }
    }
  }
}

function valueAt(line: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], line);
}
