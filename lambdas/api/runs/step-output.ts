import type { OutputStore } from '../../agents/output-store.ts';
import { type OutputReader, readOutput } from '../../agents/read-output.ts';
import { Problem } from '../../entry/http.ts';
import type { LoadedRun } from '../../run/run-store.ts';
import { isFinished } from '../../run/step.ts';

export interface OutputPorts extends OutputReader {
  output: OutputReader['output'] & Pick<OutputStore, 'lastLease'>;
}

/** A response has at most 6 MB, in which JSON escapes the output twice. */
const PART_MAX_BYTES = 512 * 1024;

/** A part of the output of a step: of its last attempt that had output, or of the lease that is named. */
export async function stepOutput(
  ports: OutputPorts,
  { run, steps }: LoadedRun,
  { step: named, since, lease }: { step: string; since: number; lease?: number },
) {
  const step = steps.find(({ index, id }) => String(index) === named || id === named);
  if (!step) throw new Problem(404, 'NOT_FOUND', `the run has reached no step ${named}; runs show lists its steps`);
  const place = { tenant: run.tenant, runId: run.runId, stepIndex: step.index };
  // When the rows have expired, the last lease of the step has the object.
  const leaseVersion = lease ?? (await ports.output.lastLease(place)) ?? step.leaseVersion;
  const { chunks, next, more, closed, summary } = await readOutput(
    ports,
    { ...place, leaseVersion },
    since,
    PART_MAX_BYTES,
  );
  const isPerformed = !isFinished(step) && step.leaseVersion <= leaseVersion;
  return {
    step: step.id,
    index: step.index,
    leaseVersion,
    chunks: chunks.map(({ seq, stream, at, data }) => ({ seq, stream, at, data })),
    next,
    more,
    complete: !more && (closed || !isPerformed),
    ...(summary && { total: summary }),
  };
}
