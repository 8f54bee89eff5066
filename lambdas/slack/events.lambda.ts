import { httpHandler } from '../entry/http.ts';
import { handleEvent } from './handle-event.ts';
import { wireSlack } from './slack.wiring.ts';

const slack = wireSlack();

export const handler = httpHandler((event) => handleEvent(slack, event));
