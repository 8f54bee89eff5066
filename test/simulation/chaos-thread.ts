import { parentPort } from 'node:worker_threads';
import { doJob, type Job } from './trials.ts';

/** Does jobs, one after the other, and tells what came of each. */
parentPort?.on('message', async (job: Job) => {
  parentPort?.postMessage(await doJob(job));
});
