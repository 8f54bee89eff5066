import middy from '@middy/core';
import { readEnvironment } from '../entry/environment.ts';
import { moverPorts } from '../worker/worker-ports.ts';
import { SweepEnvironment } from './environment.ts';
import { type Swept, sweep } from './sweep.ts';

const sweeper = moverPorts(readEnvironment(SweepEnvironment));

export const handler = middy<unknown, Swept>().handler(() => sweep(sweeper));
