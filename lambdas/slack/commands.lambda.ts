import { httpHandler } from '../entry/http.ts';
import { command } from './commands.ts';
import { slackPorts } from './slack-ports.ts';

const slack = slackPorts();

export const handler = httpHandler((event) => command(slack, event));
