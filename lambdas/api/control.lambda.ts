import { httpHandler } from '../entry/http.ts';
import { workerPorts } from '../worker/worker-ports.ts';
import { answerControl } from './control-api.ts';

const worker = workerPorts();

export const handler = httpHandler((event) => answerControl(worker, event));
