import type { Context } from 'aws-lambda';
import { DynamoAgentRegistry } from '../agents/dynamo-agent-registry.ts';
import { readEnvironment } from '../entry/environment.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { systemClock } from '../entry/system.ts';
import { DynamoLiveStore } from '../live/dynamo-live-store.ts';
import { wireRunChanger } from '../run-changes/run-changer.wiring.ts';
import { fireSchedule } from '../schedules/fire-schedule.ts';
import { wireFirer } from '../schedules/firer.wiring.ts';
import { SweepEnvironment } from './environment.ts';
import { recordGauges } from './record-gauges.ts';
import { type Swept, sweep } from './sweep.ts';

/** Of the 50 s of a sweep, reading stops when this much is left, and sending when the next value is left. */
const TIME_TO_SEND_MS = 25_000;
const TIME_FOR_A_BATCH_MS = 8_000;

const environment = readEnvironment(SweepEnvironment);
const ports = wireRunChanger(environment);
const firer = wireFirer();
const gauges = {
  ...ports,
  agents: new DynamoAgentRegistry(ports.dynamo, environment.RUN_TABLE),
  ...(environment.LIVE_FEED === 'true' && {
    live: new DynamoLiveStore(ports.dynamo, environment.RUN_TABLE, systemClock),
  }),
  tenants: environment.TENANTS,
  metrics: ports.telemetry,
};

export const handler = functionHandler<unknown, Swept>().handler(async (_event: unknown, context: Context) => {
  const left = () => context.getRemainingTimeInMillis();
  const swept = await sweep({
    ...ports,
    tenants: environment.TENANTS,
    fireSchedule: (due) => fireSchedule(firer, due),
    hasTimeToRead: () => left() > TIME_TO_SEND_MS,
    hasTimeToSend: () => left() > TIME_FOR_A_BATCH_MS,
  });
  await recordGauges(gauges, swept);
  return swept;
});
