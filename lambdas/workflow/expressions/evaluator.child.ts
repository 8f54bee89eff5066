import { CountersignError } from '../../run/errors.ts';
import { evaluate, limitExceeded } from './evaluate.ts';
import type { EvaluationJob, JobReply } from './expression-process.ts';

/** The program of the evaluation process: performs one job after another until its parent ends it. */
process.on('message', (job: EvaluationJob) => {
  void perform(job).then((reply) => process.send?.(reply));
});
process.send?.({ ready: true });

async function perform({ sources, context, nowMs, resultsMaxBytes }: EvaluationJob): Promise<JobReply> {
  const parsedContext = JSON.parse(context);
  const values: unknown[] = [];
  let left = resultsMaxBytes;
  try {
    for (const source of sources) {
      const { value, bytes } = await evaluate(source, parsedContext, nowMs);
      left -= bytes;
      if (left < 0) throw limitExceeded(source, 'the expressions of this step return too much data');
      values.push(value);
    }
    return { values };
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    return { failure: { code: error.code, message: error.message } };
  }
}
