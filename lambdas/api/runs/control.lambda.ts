import { httpHandler } from '../../entry/http.ts';
import { moverPorts } from '../../worker/worker-ports.ts';
import { handleControl } from './control.ts';

const mover = moverPorts();

export const handler = httpHandler((event) => handleControl(mover, event));
