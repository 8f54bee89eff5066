import { systemClock } from '../entry/system.ts';
import { EmbeddedMetrics } from './embedded-metrics.ts';
import type { Metrics } from './metrics.ts';

/** Writes to stdout directly: Lambda wraps lines of the console, and CloudWatch would not find the metric. */
export const systemMetrics = (stage: string): Metrics =>
  new EmbeddedMetrics(stage, systemClock, (line) => process.stdout.write(line));
