import { httpHandler } from '../../entry/http.ts';
import { wireStarter } from '../../intake/starter.wiring.ts';
import { handleStart } from './start.ts';

const starter = wireStarter();

export const handler = httpHandler((event) => handleStart(starter, event));
