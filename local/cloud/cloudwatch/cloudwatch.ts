import type { HostClock, Timer } from '../../host/clock.ts';
import type { ResolvedStack } from '../../template/template.ts';
import {
  type AlarmDefinition,
  type AlarmState,
  compositeAlarm,
  EVALUATED_EVERY_MS,
  type EvaluationContext,
  metricAlarm,
} from './alarm-state.ts';
import { dashboardSvg } from './dashboard-svg.ts';
import { embeddedMetrics, type LogLine } from './log-line.ts';
import { MetricFilters } from './metric-filters.ts';
import { MetricStore } from './metric-store.ts';

interface CloudWatchOptions {
  stack: ResolvedStack;
  clock: Pick<HostClock, 'now' | 'at'>;
  log(line: string): void;
}

export interface ShownAlarm {
  name: string;
  logicalId: string;
  description: string;
  state: AlarmState;
  /** When it got this state. */
  since: string;
}

/** What a topic received. */
export interface AlarmNotification {
  topicArn: string;
  alarm: string;
  state: AlarmState;
  description: string;
  at: string;
}

/** After a longer jump of the clock, only this part of it is evaluated. */
const CAUGHT_UP_MAX_MS = 8 * 60 * 60_000;
const NOTIFICATIONS_MAX = 1_000;

/**
 * CloudWatch on one machine: metrics of services and of log lines, and the alarms of the template. Alarms are evaluated at
 * every minute of the clock, also at those that a jump of the clock skipped.
 */
export class LocalCloudWatch {
  readonly metrics: MetricStore;
  readonly #clock: CloudWatchOptions['clock'];
  readonly #log: (line: string) => void;
  readonly #filters: MetricFilters;
  readonly #alarms: AlarmDefinition[];
  readonly #states = new Map<string, { state: AlarmState; sinceMs: number }>();
  readonly #notifications: AlarmNotification[] = [];
  readonly #samplers: ((minutesMs: readonly number[]) => void)[] = [];
  readonly #dashboardBody: string;
  readonly #startedMs: number;
  #evaluatedMs: number;
  #timer?: Timer;

  constructor({ stack, clock, log }: CloudWatchOptions) {
    this.#clock = clock;
    this.#log = log;
    this.metrics = new MetricStore(() => clock.now());
    this.#filters = new MetricFilters(stack, this.metrics);
    // Composite alarms come last: they combine the states of the others.
    this.#alarms = [
      ...stack.ofType('AWS::CloudWatch::Alarm').map(metricAlarm),
      ...stack.ofType('AWS::CloudWatch::CompositeAlarm').map(compositeAlarm),
    ];
    this.#dashboardBody = String(
      stack.ofType('AWS::CloudWatch::Dashboard')[0]?.properties.DashboardBody ?? '{"widgets":[]}',
    );
    this.#startedMs = clock.now();
    this.#evaluatedMs = wholeMinutes(clock.now());
    this.#schedule();
  }

  /** Reads a log line of a function: embedded metrics and metric filters. */
  collect(functionLogicalId: string, line: LogLine): void {
    this.#filters.read(functionLogicalId, line);
    for (const { namespace, name, dimensions, values } of embeddedMetrics(line)) {
      for (const value of values) this.metrics.put({ namespace, name, dimensions }, value);
    }
  }

  /** A metric of an AWS service that happens with each request. */
  put(namespace: string, dimensions: Readonly<Record<string, string>>, values: Readonly<Record<string, number>>): void {
    for (const [name, value] of Object.entries(values)) this.metrics.put({ namespace, name, dimensions }, value);
  }

  /** A service that CloudWatch asks once a minute. After a jump of the clock, it is asked once for all minutes. */
  sample(sampler: (minutesMs: readonly number[]) => void): void {
    this.#samplers.push(sampler);
  }

  alarms(): { alarms: ShownAlarm[]; notifications: AlarmNotification[] } {
    this.evaluate();
    const alarms = this.#alarms.map(({ name, arn, logicalId, description }) => {
      const { state = 'OK', sinceMs = this.#startedMs } = this.#states.get(arn) ?? {};
      return { name, logicalId, description, state, since: new Date(sinceMs).toISOString() };
    });
    return { alarms, notifications: [...this.#notifications] };
  }

  /** The dashboard of the template, as an SVG image. */
  dashboard(): string {
    const { alarms } = this.alarms();
    return dashboardSvg({ body: this.#dashboardBody, metrics: this.metrics, alarms, nowMs: this.#clock.now() });
  }

  /** Evaluates the alarms at every minute since the last time. */
  evaluate(): void {
    const untilMs = wholeMinutes(this.#clock.now());
    const fromMs = Math.max(this.#evaluatedMs, untilMs - CAUGHT_UP_MAX_MS);
    const minutes = Math.max(0, (untilMs - fromMs) / EVALUATED_EVERY_MS);
    const minutesMs = Array.from({ length: minutes }, (_, index) => fromMs + index * EVALUATED_EVERY_MS);
    for (const sampler of this.#samplers) sampler(minutesMs);
    for (const atMs of minutesMs) this.#evaluateAt(atMs + EVALUATED_EVERY_MS);
    this.#evaluatedMs = untilMs;
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #schedule(): void {
    this.#timer = this.#clock.at(wholeMinutes(this.#clock.now()) + EVALUATED_EVERY_MS, () => {
      this.evaluate();
      this.#schedule();
    });
  }

  #evaluateAt(atMs: number): void {
    const context: EvaluationContext = {
      metrics: this.metrics,
      startedMs: this.#startedMs,
      stateOf: (arn) => this.#states.get(arn)?.state,
    };
    for (const alarm of this.#alarms) {
      const state = alarm.stateAt(atMs, context);
      if (state === (this.#states.get(alarm.arn)?.state ?? 'OK')) continue;
      this.#states.set(alarm.arn, { state, sinceMs: atMs });
      this.#notify(alarm, state, atMs);
    }
  }

  #notify({ name, description, actions, okActions }: AlarmDefinition, state: AlarmState, atMs: number): void {
    const at = new Date(atMs).toISOString();
    for (const topicArn of state === 'ALARM' ? actions : okActions) {
      this.#notifications.push({ topicArn, alarm: name, state, description, at });
      if (this.#notifications.length > NOTIFICATIONS_MAX) this.#notifications.shift();
      this.#log(`${state === 'ALARM' ? 'alarm' : 'recovered'}: ${name} (${description})`);
    }
  }
}

const wholeMinutes = (ms: number): number => Math.floor(ms / EVALUATED_EVERY_MS) * EVALUATED_EVERY_MS;
