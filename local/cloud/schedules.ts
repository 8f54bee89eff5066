/** EventBridge rules with a rate. A rule runs once for all the times that passed while the clock advanced or its target ran. */
import { randomUUID } from 'node:crypto';
import { ACCOUNT, type InvokeFunction, REGION } from '../aws/aws.ts';
import type { HostClock, Timer } from '../host/clock.ts';

export interface ScheduleRule {
  logicalId: string;
  arn: string;
  /** `rate(1 minute)` */
  expression: string;
  functionArns: string[];
}

export interface Schedules {
  /** Runs all rules now. Resolves when their targets have ended; rejects with the first failure. */
  runAll(): Promise<void>;
  /** Starts nothing more. Resolves when the running targets have ended. */
  stop(): Promise<void>;
}

const UNITS_MS: Record<string, number> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

export function rateMs(expression: string): number {
  const [, count = '', unit = '', plural] = /^rate\((\d+) (minute|hour|day)(s?)\)$/.exec(expression) ?? [];
  const periodMs = Number(count) * (UNITS_MS[unit] ?? 0);
  if (!(periodMs > 0) || (count === '1') !== (plural === '')) {
    throw new Error(`the local host supports only rates such as rate(1 minute) or rate(5 minutes), not ${expression}`);
  }
  return periodMs;
}

export function startSchedules(options: {
  clock: HostClock;
  rules: ScheduleRule[];
  invoke: InvokeFunction;
  onError: (error: unknown) => void;
}): Schedules {
  const { clock, rules, invoke, onError } = options;
  const timers = new Map<ScheduleRule, Timer>();
  const running = new Map<ScheduleRule, Promise<void>>();
  const startMs = clock.now();

  const run = async (rule: ScheduleRule): Promise<void> => {
    const event = scheduledEvent(rule, new Date(clock.now()));
    await Promise.all(rule.functionArns.map((functionArn) => invoke(functionArn, event)));
  };

  function schedule(rule: ScheduleRule): void {
    const periodMs = rateMs(rule.expression);
    const nextMs = startMs + (Math.floor((clock.now() - startMs) / periodMs) + 1) * periodMs;
    const timer = clock.at(nextMs, () => {
      if (!running.has(rule)) {
        const ended = run(rule)
          .catch(onError)
          .finally(() => running.delete(rule));
        running.set(rule, ended);
      }
      schedule(rule);
    });
    timers.set(rule, timer);
  }

  for (const rule of rules) schedule(rule);
  return {
    async runAll() {
      for (const rule of rules) await run(rule);
    },
    async stop() {
      for (const timer of timers.values()) timer.cancel();
      await Promise.all(running.values());
    },
  };
}

function scheduledEvent({ arn }: ScheduleRule, time: Date): unknown {
  return {
    version: '0',
    id: randomUUID(),
    'detail-type': 'Scheduled Event',
    source: 'aws.events',
    account: ACCOUNT,
    // Whole seconds, as EventBridge writes it.
    time: `${time.toISOString().slice(0, 19)}Z`,
    region: REGION,
    resources: [arn],
    detail: {},
  };
}
