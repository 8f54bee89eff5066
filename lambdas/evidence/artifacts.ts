import { canonicalJson } from '../run/canonical-json.ts';
import type { Enrichment, TerminalRun } from '../run/run.ts';
import type { Step } from '../run/step.ts';

/**
 * What evidence shows only the hashes of, in full: for people who may read it, in a bucket where it can be deleted. The
 * hash in the bundle's events is that of these very bytes (`run.enriched`) or of an output in them (`step.succeeded`).
 */
export const artifactKey = ({ tenant, runId }: TerminalRun, name: 'enrichment' | 'completion') =>
  `artifacts/${tenant}/${runId}/${name}.json`;

export const enrichmentArtifact = (enrichment: Enrichment): Buffer => Buffer.from(canonicalJson(enrichment));

export function completionArtifact(run: TerminalRun, steps: readonly Step[]): Buffer {
  const { runId, status, completedAt, durationMs, error } = run;
  return Buffer.from(
    canonicalJson({
      runId,
      status,
      completedAt,
      durationMs,
      ...(error && { error: { ...error } }),
      steps: steps.map((step) => ({
        id: step.id,
        tool: step.tool,
        status: step.status,
        ...('error' in step && { error: { ...step.error } }),
        ...('output' in step && { output: step.output ?? null }),
      })),
    }),
  );
}
