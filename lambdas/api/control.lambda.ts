import { httpHandler } from '../entry/http.ts';
import { moverPorts } from '../worker/worker-ports.ts';
import { answerControl } from './control-api.ts';

const mover = moverPorts();

export const handler = httpHandler((event) => answerControl(mover, event));
