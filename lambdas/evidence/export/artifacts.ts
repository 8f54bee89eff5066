import { canonicalJson } from '../../run/canonical-json.ts';
import type { Enrichment, TerminalRun } from '../../run/run.ts';
import type { Step } from '../../run/step.ts';

/**
 * What evidence shows only the hashes of, in full: for people who may read it, in a bucket where it can be deleted. The
 * hash in the bundle's events is that of these very bytes (`run.enriched`) or of an output in them (`step.succeeded`).
 */
export const artifactKey = ({ tenant, runId }: TerminalRun, name: 'enrichment' | 'completion') =>
  `artifacts/${tenant}/${runId}/${name}.json`;

export const enrichmentArtifact = (enrichment: Enrichment): Buffer => Buffer.from(canonicalJson(enrichment));

/** A step's part of the completion, made as the step is read: as bytes, outputs take the least room. */
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

/** In canonical form: of all its names `steps` is the last. */
export function completionArtifact(run: TerminalRun, steps: readonly Buffer[]): Buffer {
  const { runId, status, completedAt, durationMs, error } = run;
  const head = canonicalJson({ runId, status, completedAt, durationMs, ...(error && { error: { ...error } }) });
  const list = steps.flatMap((step, index) => (index === 0 ? [step] : [Buffer.from(','), step]));
  return Buffer.concat([Buffer.from(`${head.slice(0, -1)},"steps":[`), ...list, Buffer.from(']}')]);
}
