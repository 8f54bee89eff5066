import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { rateMs, type Schedules, startSchedules } from '../../../local/cloud/schedules.ts';
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

  function start(invoke: () => Promise<unknown> = async () => null): void {
    schedules = startSchedules({
      clock,
      rules: [{ logicalId: 'Sweep', arn: ruleArn, expression: 'rate(1 minute)', functionArns: [functionArn] }],
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
    start();
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

  it('runs a rule once when the clock advances by many periods, then again after one period', async () => {
    start();
    clock.advance(60 * MINUTE_MS);
    await fired(1);
    await turn();
    expect(events).toHaveLength(1);
    clock.advance(MINUTE_MS);
    await fired(2);
  });

  it('does not start a rule again while its target still runs', async () => {
    let finish = () => {};
    start(() => new Promise((resolve) => (finish = () => resolve(null))));
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

  it('runs again after a target failed, and runs on demand', async () => {
    start(async () => Promise.reject(new Error('boom')));
    clock.advance(MINUTE_MS);
    await fired(1);
    await turn();
    clock.advance(MINUTE_MS);
    await fired(2);
    await expect(schedules?.runAll()).rejects.toThrow('boom');
    expect(events).toHaveLength(3);
  });

  it('runs nothing after it was stopped', async () => {
    start();
    await schedules?.stop();
    clock.advance(MINUTE_MS);
    await turn();
    expect(events).toEqual([]);
  });

  it.each([
    ['rate(1 minute)', MINUTE_MS],
    ['rate(2 hours)', 120 * MINUTE_MS],
    ['rate(1 day)', 1_440 * MINUTE_MS],
  ])('reads %s', (expression, expectedMs) => {
    expect(rateMs(expression)).toBe(expectedMs);
  });

  it.each(['rate(1 minutes)', 'rate(5 minute)', 'rate(0 minutes)', 'every minute', 'cron(0 12 * * ? *)'])(
    'refuses %s',
    (expression) => {
      expect(() => rateMs(expression)).toThrow(expression);
    },
  );
});
