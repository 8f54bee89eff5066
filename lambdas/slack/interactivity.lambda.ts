import { httpHandler } from '../entry/http.ts';
import { interact } from './interactivity.ts';
import { interactivityPorts } from './interactivity-ports.ts';

const slack = interactivityPorts();

export const handler = httpHandler((event) => interact(slack, event));
