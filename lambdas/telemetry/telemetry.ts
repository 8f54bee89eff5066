import { type Clock, isoNow } from '../entry/ports.ts';
import { type EmbeddedLine, embedded } from './embedded-metrics.ts';
import type { Measurement, Metrics } from './metrics.ts';
import { type Level, type Observed, type Transition, transitionsOf } from './transitions.ts';

/** Logs what happens to runs, with the metrics that follow from it. It never fails and never waits. */
export interface Telemetry extends Metrics {
  /** After a commit: one line for each transition. */
  committed(observed: Omit<Observed, 'environment'>, also?: readonly Measurement[]): void;
  /** Something that is no commit. */
  note(transition: Transition): void;
}

const LEVELS: readonly Level[] = ['DEBUG', 'INFO', 'WARN', 'ERROR'];

interface TelemetryOptions {
  stage: string;
  environment: Observed['environment'];
  /** Lines below this level are not written; their metrics are. */
  level: Level;
  clock: Clock;
  write(line: string): void;
}

export class LogTelemetry implements Telemetry {
  readonly #options: TelemetryOptions;

  constructor(options: TelemetryOptions) {
    this.#options = options;
  }

  committed(observed: Omit<Observed, 'environment'>, also: readonly Measurement[] = []): void {
    const [first, ...others] = transitionsOf({ ...observed, environment: this.#options.environment });
    if (first) this.note({ ...first, measurements: [...first.measurements, ...also] });
    else this.record(...also);
    for (const each of others) this.note(each);
  }

  note({ level, fields, measurements }: Transition): void {
    const isWritten = LEVELS.indexOf(level) >= LEVELS.indexOf(this.#options.level);
    this.#write(embedded(this.#now(), measurements, isWritten ? { level, ...fields } : {}));
  }

  record(...measurements: readonly Measurement[]): void {
    this.#write(embedded(this.#now(), measurements));
  }

  #now = () => ({ stage: this.#options.stage, now: this.#options.clock.now() });

  #write(lines: readonly EmbeddedLine[]): void {
    const { level, clock, write } = this.#options;
    // Lambda takes a line without level or time for INFO, and would drop the metrics of a stage with a higher level.
    const isFiltered = LEVELS.indexOf(level) > LEVELS.indexOf('INFO');
    const added = isFiltered ? { level, timestamp: isoNow(clock) } : {};
    for (const line of lines) write(`${JSON.stringify({ ...added, ...line })}\n`);
  }
}
