import { parentPort } from 'node:worker_threads';
import { doJob, type Job } from './trials.ts';

/** Runs jobs in sequence and reports the result of each. */
parentPort?.on('message', async (job: Job) => {
  parentPort?.postMessage(await doJob(job));
});
