import { httpHandler } from '../entry/http.ts';
import { receiveEvent } from './events.ts';
import { slackPorts } from './slack-ports.ts';

const slack = slackPorts();

export const handler = httpHandler((event) => receiveEvent(slack, event));
