import middy from '@middy/core';
import type { Context } from 'aws-lambda';
import { readEnvironment } from '../entry/environment.ts';
import { moverPorts } from '../worker/worker-ports.ts';
import { SweepEnvironment } from './environment.ts';
import { type Swept, sweep } from './sweep.ts';

/** Of the sweep's 50 s, reading may take all but these, and sending all but the last ones. */
const TIME_TO_SEND_MS = 25_000;
const TIME_FOR_A_BATCH_MS = 8_000;

const ports = moverPorts(readEnvironment(SweepEnvironment));

export const handler = middy<unknown, Swept>().handler((_event: unknown, context: Context) => {
  const left = () => context.getRemainingTimeInMillis();
  return sweep({
    ...ports,
    hasTimeToRead: () => left() > TIME_TO_SEND_MS,
    hasTimeToSend: () => left() > TIME_FOR_A_BATCH_MS,
  });
});
