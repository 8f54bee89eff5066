import { json } from '../../entry/http.ts';
import { mayOrRefuse } from '../authorizer/caller.ts';
import { byRoute, type Handlers } from '../router.ts';

export interface QueueCount {
  queue: string;
  /** Of the caller's tenant. */
  messages: number;
  /** False if the queue holds more messages, of whichever tenant, than one request reads: ask again. */
  complete: boolean;
}

/** Messages that failed too often, and the way back for them once their cause is mended: of one tenant only. */
export interface DeadLetters {
  counts(tenant: string): Promise<QueueCount[]>;
  /** Sends them back to where they came from; a run that has moved on meanwhile is not disturbed by its message. */
  redrive(tenant: string): Promise<QueueCount[]>;
}

const HANDLERS: Handlers<DeadLetters, 'deadLetters'> = {
  'GET /api/v1/dead-letters': async (deadLetters, caller) => {
    mayOrRefuse(caller, 'control', 'look at dead letters');
    return json(200, { queues: await deadLetters.counts(caller.tenant) });
  },
  'POST /api/v1/dead-letters/redrive': async (deadLetters, caller) => {
    mayOrRefuse(caller, 'control', 'send dead letters back');
    return json(202, { redriven: await deadLetters.redrive(caller.tenant) });
  },
};

export const handleDeadLetters = byRoute(HANDLERS);
