import type { Clock } from '../../../lambdas/entry/ports.ts';
import { LogTelemetry } from '../../../lambdas/telemetry/telemetry.ts';
import { Metrics as CollectedMetrics } from '../../../local/lambda/metrics.ts';

/** The real telemetry, whose lines stay here. Metrics are read from the lines, as CloudWatch does. */
export class MemoryTelemetry extends LogTelemetry {
  readonly texts: string[];
  readonly #collected: CollectedMetrics;

  constructor(
    clock: Clock,
    {
      level = 'INFO' as const,
      stage = 'acme-prod',
    }: { level?: 'DEBUG' | 'INFO' | 'WARN' | 'ERROR'; stage?: string } = {},
  ) {
    const texts: string[] = [];
    const collected = new CollectedMetrics();
    super({
      ...{ stage, environment: 'prod', level, clock },
      write: (line) => {
        texts.push(line);
        collected.collect('Function', JSON.parse(line));
      },
    });
    this.texts = texts;
    this.#collected = collected;
  }

  get lines(): Record<string, unknown>[] {
    return this.texts.map((text) => JSON.parse(text));
  }

  get metrics() {
    return this.#collected.list().map(({ name, unit, dimensions, count, sum, max }) => ({
      ...{ name, unit, dimensions, count, sum, max },
    }));
  }
}
