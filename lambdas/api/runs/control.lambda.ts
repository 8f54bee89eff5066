import { httpHandler } from '../../entry/http.ts';
import { systemIds } from '../../entry/system.ts';
import { wireRunChanger } from '../../run-changes/run-changer.wiring.ts';
import { handleControl } from './control.ts';

const ports = { ...wireRunChanger(), ids: systemIds };

export const handler = httpHandler((event) => handleControl(ports, event));
