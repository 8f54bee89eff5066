import { httpHandler } from '../entry/http.ts';
import { interact } from './handle-interaction.ts';
import { wireInteractivity } from './interactivity.wiring.ts';

const slack = wireInteractivity();

export const handler = httpHandler((event) => interact(slack, event));
