import { parentPort } from 'node:worker_threads';
import { type Job, runJob } from './jobs.ts';

/** Runs jobs in sequence and reports the result of each. */
parentPort?.on('message', async (job: Job) => {
  parentPort?.postMessage(await runJob(job));
});
