import { httpHandler } from '../entry/http.ts';
import { handleInteraction } from './handle-interaction.ts';
import { wireInteractivity } from './interactivity.wiring.ts';

const slack = wireInteractivity();

export const handler = httpHandler((event) => handleInteraction(slack, event));
