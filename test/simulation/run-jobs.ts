import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { addTo, emptyTally, type Job, runJob, type Tally } from './jobs.ts';

/** Runs all jobs on every core until they are done or a violation was found. */
export async function runAll(jobs: Job[], progress: (sum: Tally) => void, threads = availableParallelism()) {
  const sum = emptyTally();
  const left = [...jobs];
  const finished = (tally: Tally) => {
    addTo(sum, tally);
    progress(sum);
    if (sum.found) left.length = 0;
  };
  if (threads <= 1) {
    for (let job = left.shift(); job; job = left.shift()) finished(await runJob(job));
  } else await Promise.all(Array.from({ length: threads }, () => runInThread(left, finished)));
  return sum;
}

function runInThread(left: Job[], finished: (tally: Tally) => void): Promise<void> {
  const thread = new Worker(new URL('./chaos-thread.ts', import.meta.url));
  return new Promise<void>((resolve, reject) => {
    const next = () => {
      const job = left.shift();
      if (job) thread.postMessage(job);
      else resolve();
    };
    thread.on('error', reject);
    thread.on('message', (tally: Tally) => {
      finished(tally);
      next();
    });
    next();
  }).finally(() => thread.terminate());
}
