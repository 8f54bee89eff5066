import { json } from '../entry/http.ts';
import { type Answers, byRoute } from './answers.ts';
import { mayOrRefuse } from './caller.ts';

/** Messages that failed too often, and the way back for them once their cause is mended. */
export interface DeadLetters {
  counts(): Promise<{ queue: string; messages: number }[]>;
  /** Sends all of them back to where they came from; a run that has moved on meanwhile is not disturbed by its message. */
  redrive(): Promise<void>;
}

const ANSWERS: Answers<DeadLetters, 'deadLetters'> = {
  'GET /api/v1/dead-letters': async (deadLetters, caller) => {
    mayOrRefuse(caller, 'control', 'look at dead letters');
    return json(200, { queues: await deadLetters.counts() });
  },
  'POST /api/v1/dead-letters/redrive': async (deadLetters, caller) => {
    mayOrRefuse(caller, 'control', 'send dead letters back');
    const redriven = await deadLetters.counts();
    await deadLetters.redrive();
    return json(202, { redriven });
  },
};

export const answerDeadLetters = byRoute(ANSWERS);
