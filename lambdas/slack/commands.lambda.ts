import { readEnvironment } from '../entry/environment.ts';
import { httpHandler } from '../entry/http.ts';
import { wireStarter } from '../intake/starter.wiring.ts';
import { CommandsEnvironment } from './environment.ts';
import { handleCommand } from './handle-command.ts';
import { wireSlackRequests } from './slack.wiring.ts';

const starter = wireStarter();
const slack = { ...starter, ...wireSlackRequests(starter.definitions, readEnvironment(CommandsEnvironment)) };

export const handler = httpHandler((event) => handleCommand(slack, event));
