import { httpHandler } from '../../entry/http.ts';
import { wireRunChanger } from '../../run-changes/run-changer.wiring.ts';
import { handleControl } from './control.ts';

const runChanger = wireRunChanger();

export const handler = httpHandler((event) => handleControl(runChanger, event));
