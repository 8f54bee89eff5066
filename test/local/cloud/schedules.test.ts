import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseSchedule } from '../../../local/cloud/scheduler/cron.ts';
import { type ScheduleRule, type Schedules, startSchedules } from '../../../local/cloud/scheduler/schedules.ts';
import { HostClock } from '../../../local/host/clock.ts';
import { temporaryFolder, until } from './wire.ts';

const MINUTE_MS = 60_000;
const ruleArn = 'arn:aws:events:us-east-1:000000000000:rule/sweep';
const functionArn = 'arn:aws:lambda:us-east-1:000000000000:function:sweep';

describe('schedules', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let clock: HostClock;
  let schedules: Schedules | undefined;
  let events: unknown[];

  beforeEach(() => {
    folder = temporaryFolder();
    clock = new HostClock(folder.path);
    events = [];
  });
  afterEach(async () => {
    await schedules?.stop();
    clock.stop();
    folder.remove();
  });

  function start(rule: Partial<ScheduleRule>, invoke: () => Promise<unknown> = async () => null): void {
    const whole = {
      logicalId: 'Sweep',
      expression: 'rate(1 minute)',
      enabled: true,
      targets: [{ functionArn, ruleArn }],
    };
    schedules = startSchedules({
      clock,
      rules: [{ ...whole, ...rule }],
      invoke: (_arn, event) => {
        events.push(event);
        return invoke();
      },
      onError: () => {},
    });
  }
  const fired = (times: number) => until(() => events.length === times, `${times} events`);
  /** Resolves after every timer that is due by now has run: the clock runs them in order. */
  const turn = () => new Promise<void>((done) => clock.at(clock.now(), done));

  it('sends the event that EventBridge sends', async () => {
    start({});
    clock.advance(MINUTE_MS);
    await fired(1);
    expect(events[0]).toEqual({
      version: '0',
      id: expect.any(String),
      'detail-type': 'Scheduled Event',
      source: 'aws.events',
      account: '000000000000',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      region: 'us-east-1',
      resources: [ruleArn],
      detail: {},
    });
  });

  it('fires a minutely rule once for an hour that passes at once, then again a minute later', async () => {
    start({});
    clock.advance(60 * MINUTE_MS);
    await fired(1);
    await turn();
    expect(events).toHaveLength(1);
    clock.advance(MINUTE_MS);
    await fired(2);
  });

  it('does not start a rule again while its target still runs', async () => {
    let finish = () => {};
    start({}, () => new Promise((resolve) => (finish = () => resolve(null))));
    clock.advance(MINUTE_MS);
    await fired(1);
    clock.advance(MINUTE_MS);
    await turn();
    expect(events).toHaveLength(1);
    finish();
    await turn();
    clock.advance(MINUTE_MS);
    await fired(2);
    finish();
  });

  it('goes on after a target failed, sends constant input, and fires on demand', async () => {
    start({ targets: [{ functionArn, ruleArn, input: '{"sweep":true}' }] }, async () =>
      Promise.reject(new Error('boom')),
    );
    clock.advance(MINUTE_MS);
    await fired(1);
    clock.advance(MINUTE_MS);
    await fired(2);
    expect(events[0]).toEqual({ sweep: true });
    await expect(schedules?.fire('Sweep')).rejects.toThrow('boom');
    expect(events).toHaveLength(3);
  });

  it('fires neither a disabled rule nor a stopped one', async () => {
    start({ enabled: false });
    clock.advance(MINUTE_MS);
    await turn();
    await schedules?.stop();
    start({});
    await schedules?.stop();
    clock.advance(MINUTE_MS);
    await turn();
    expect(events).toEqual([]);
  });

  it.each([
    ['cron(0 12 * * ? *)', '2026-11-16T12:00:00Z', '2026-11-17T12:00:00Z'],
    ['cron(0/15 * * * ? *)', '2026-11-16T12:07:30Z', '2026-11-16T12:15:00Z'],
    ['cron(30 8 ? * MON-FRI *)', '2026-11-20T09:00:00Z', '2026-11-23T08:30:00Z'],
    ['cron(0 0 L * ? *)', '2027-02-01T00:00:00Z', '2027-02-28T00:00:00Z'],
    ['cron(0 0 29 2 ? *)', '2026-01-01T00:00:00Z', '2028-02-29T00:00:00Z'],
    ['cron(5,10 6-7 1 JAN,JUL ? 2027)', '2026-11-16T00:00:00Z', '2027-01-01T06:05:00Z'],
    ['cron(59 23 31 12 ? 2026)', '2026-12-31T23:59:00Z', undefined],
    ['rate(1 day)', '2026-01-03T05:00:00Z', '2026-01-04T00:00:00Z'],
    ['rate(2 hours)', '2026-01-01T00:00:00Z', '2026-01-01T02:00:00Z'],
  ])('finds the next slot of %s after %s', (expression, after, next) => {
    const schedule = parseSchedule(expression, Date.parse('2026-01-01T00:00:00Z'));
    const slot = schedule.next(Date.parse(after));
    expect(slot).toBe(next === undefined ? undefined : Date.parse(next));
  });

  it.each([
    'rate(1 minutes)',
    'rate(5 minute)',
    'rate(0 minutes)',
    'every minute',
    'cron(* * * * * *)',
    'cron(0 12 ? * MON#1 *)',
    'cron(61 * * * ? *)',
    'cron(0 12 * * ?)',
  ])('refuses %s', (expression) => {
    expect(() => parseSchedule(expression, 0)).toThrow(expression);
  });
});
