import * as z from 'zod';

/** Used in names, paths and keys: lower-case words joined by dashes. */
const Name = z.string().regex(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/, 'use lower-case letters, digits and single dashes');

/** The settings of one stage, one entry of `context.stages` in cdk.json. */
export const StageConfig = z.strictObject({
  /** `prod` turns on what protects data that cannot be made again. */
  kind: z.enum(['prod', 'staging', 'dev']),
  tenants: z.array(Name.max(40)).min(1).max(20),
  /** How many worker functions may run at once. */
  workerConcurrency: z.int().min(2).max(1000).default(50),
  /** How long nobody, not even an administrator of a prod stage, can delete evidence. */
  evidenceRetentionDays: z.int().min(1).max(36_500),
});

export type StageConfig = z.infer<typeof StageConfig> & { stage: string };

/** Finds and checks a stage; every problem at once, each with what to do. */
export function readStageConfig(stage: unknown, stages: unknown): StageConfig {
  const name = Name.max(40).safeParse(stage);
  if (!name.success) {
    throw new StageError(
      `"${String(stage)}" is not a stage name, e.g. -c stage=acme-prod:\n${z.prettifyError(name.error)}`,
    );
  }
  const known = z.record(z.string(), z.unknown()).safeParse(stages);
  const settings = known.success ? known.data[name.data] : undefined;
  if (settings === undefined) {
    const names = known.success ? Object.keys(known.data).join(', ') : 'none';
    throw new StageError(`there is no stage "${name.data}"; add it to context.stages in cdk.json (there: ${names})`);
  }
  const config = StageConfig.safeParse(settings);
  if (!config.success) {
    throw new StageError(`stage "${name.data}" in cdk.json, context.stages:\n${z.prettifyError(config.error)}`);
  }
  return { stage: name.data, ...config.data };
}

/** A mistake in settings, to be shown without a stack trace. */
export class StageError extends Error {
  override name = 'StageError';
}
