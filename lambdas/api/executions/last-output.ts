import { readOutput } from '../../agents/read-output.ts';
import { isAgentTool } from '../../run/lease.ts';
import type { Run } from '../../run/run.ts';
import type { Step } from '../../run/step.ts';
import type { Execution } from '../contract/runs/executions.ts';
import type { OutputPorts } from '../runs/step-output.ts';

const CHUNKS_SHOWN = 20;
const SHOWN_MAX_BYTES = 64 * 1024;

/** The end of the output of the command that was started last, while its rows are stored. */
export async function lastOutput(ports: OutputPorts, run: Run, steps: readonly Step[]): Promise<Execution['output']> {
  const started = steps.filter(({ tool, leaseVersion }) => isAgentTool(tool) && leaseVersion > 0);
  const last = started.reduce<Step | undefined>((a, b) => (a && a.updatedAt > b.updatedAt ? a : b), undefined);
  if (!last) return null;
  const place = { tenant: run.tenant, runId: run.runId, stepIndex: last.index };
  const leaseVersion = (await ports.output.lastLease(place)) ?? last.leaseVersion;
  const head = await ports.output.head({ ...place, leaseVersion });
  if (!head) return null;
  const from = Math.max(0, head.nextSeq - CHUNKS_SHOWN);
  const { chunks, more, closed } = await readOutput(ports, { ...place, leaseVersion }, from, SHOWN_MAX_BYTES);
  return {
    step_number: last.index + 1,
    chunks: chunks.map(({ seq, stream, at, data }) => ({
      ...{ stream_seq: seq, chunk_type: stream, timestamp: at, data },
    })),
    complete: closed && !more,
  };
}
