import { httpHandler } from '../entry/http.ts';
import { handleCommand } from './handle-command.ts';
import { wireSlack } from './slack.wiring.ts';

const slack = wireSlack();

export const handler = httpHandler((event) => handleCommand(slack, event));
