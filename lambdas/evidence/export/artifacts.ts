import { canonicalJson } from '../../run/canonical-json.ts';
import type { Enrichment, TerminalRun } from '../../run/run.ts';
import type { Step } from '../../run/step.ts';

/**
 * The values that evidence shows only as hashes, in a bucket where they can be deleted. The hash in the events is that of
 * these bytes (`run.enriched`) or of an output in them (`step.succeeded`).
 */
export const artifactKey = (
  { tenant, runId }: Pick<TerminalRun, 'tenant' | 'runId'>,
  file: `${string}.jsonl` | 'enrichment.json' | 'completion.json' | 'values.json',
) => `artifacts/${tenant}/${runId}/${file}`;

export const enrichmentArtifact = (enrichment: Enrichment): Buffer => Buffer.from(canonicalJson(enrichment));

/** The part of a step, as bytes, which need less memory than the parsed output. */
export const stepArtifact = (step: Step): Buffer =>
  Buffer.from(
    canonicalJson({
      id: step.id,
      tool: step.tool,
      status: step.status,
      ...('error' in step && { error: { ...step.error } }),
      ...('output' in step && { output: step.output ?? null }),
    }),
  );

/** In canonical form: `steps` is the last name in the order of RFC 8785. */
export function completionArtifact(run: TerminalRun, steps: readonly Buffer[]): Buffer {
  const { runId, status, completedAt, durationMs, error } = run;
  const head = canonicalJson({ runId, status, completedAt, durationMs, ...(error && { error: { ...error } }) });
  const list = steps.flatMap((step, index) => (index === 0 ? [step] : [Buffer.from(','), step]));
  return Buffer.concat([Buffer.from(`${head.slice(0, -1)},"steps":[`), ...list, Buffer.from(']}')]);
}
