/** EventBridge rules with a schedule. Slots missed by an advance of the clock or by a run that takes long are one run. */
import { randomUUID } from 'node:crypto';
import { ACCOUNT, type InvokeFunction, REGION } from '../../aws/aws.ts';
import type { HostClock, Timer } from '../../host/clock.ts';
import { parseSchedule, type Schedule } from './cron.ts';

export interface ScheduleTarget {
  functionArn: string;
  /** Constant JSON to send instead of the event. */
  input?: string;
  ruleArn: string;
}

export interface ScheduleRule {
  logicalId: string;
  expression: string;
  enabled: boolean;
  targets: ScheduleTarget[];
}

export interface Schedules {
  /** Fires a rule now, enabled or not; resolves when its targets have run, rejects with the first failure. */
  fire(logicalId: string): Promise<void>;
  /** Starts nothing more; resolves when the running targets have ended. */
  stop(): Promise<void>;
}

export function startSchedules(options: {
  clock: HostClock;
  rules: ScheduleRule[];
  invoke: InvokeFunction;
  onError?: (error: unknown, rule: ScheduleRule) => void;
}): Schedules {
  const { clock, rules, invoke } = options;
  const onError = options.onError ?? ((error, rule) => console.error(`schedule ${rule.logicalId}:`, error));
  const timers = new Map<ScheduleRule, Timer>();
  const running = new Map<ScheduleRule, Promise<void>>();
  let stopped = false;

  const run = async (rule: ScheduleRule): Promise<void> => {
    const time = new Date(clock.now());
    await Promise.all(rule.targets.map((target) => invoke(target.functionArn, eventFor(target, time))));
  };

  function arm(rule: ScheduleRule, schedule: Schedule): void {
    const atMs = schedule.next(clock.now());
    if (atMs === undefined || stopped) return;
    timers.set(
      rule,
      clock.at(atMs, () => {
        if (!running.has(rule)) {
          const ended = run(rule)
            .catch((error) => onError(error, rule))
            .finally(() => running.delete(rule));
          running.set(rule, ended);
        }
        arm(rule, schedule);
      }),
    );
  }

  for (const rule of rules) {
    const schedule = parseSchedule(rule.expression, clock.now());
    if (rule.enabled) arm(rule, schedule);
  }
  return {
    async fire(logicalId) {
      const rule = rules.find((candidate) => candidate.logicalId === logicalId);
      if (rule === undefined) throw new Error(`no schedule ${logicalId}`);
      await run(rule);
    },
    async stop() {
      stopped = true;
      for (const timer of timers.values()) timer.cancel();
      await Promise.all(running.values());
    },
  };
}

function eventFor({ input, ruleArn }: ScheduleTarget, time: Date): unknown {
  if (input !== undefined) return JSON.parse(input);
  return {
    version: '0',
    id: randomUUID(),
    'detail-type': 'Scheduled Event',
    source: 'aws.events',
    account: ACCOUNT,
    // Whole seconds, as EventBridge writes it.
    time: `${time.toISOString().slice(0, 19)}Z`,
    region: REGION,
    resources: [ruleArn],
    detail: {},
  };
}
