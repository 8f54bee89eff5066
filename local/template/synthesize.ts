import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cachedAssembly } from './assembly-cache.ts';
import type { CloudFormationTemplate } from './template.ts';

const CDK_JSON = join(import.meta.dirname, '..', '..', 'cdk.json');
const STACK = 'Countersign';

/** What `cdk synth` leaves behind: the template and the code of its functions. */
export interface Assembly {
  template: CloudFormationTemplate;
  stackName: string;
  /** The folder of a function's bundle, by the key of its code in the template. */
  codeFolder(s3Key: string): string;
}

/**
 * Runs the CDK app in this process: the same app, context and stage settings as `npx cdk synth`, the same template.
 * `stages` replaces those of cdk.json.
 */
export async function synthesize(folder: string, stage = 'local', stages?: Record<string, unknown>): Promise<Assembly> {
  await cachedAssembly(folder, { stage, stages }, async (outdir) => {
    // The checks belong to CI and `npm run synth`; here they would take longer than everything else together.
    process.env.CDK_VALIDATION = 'false';
    const { countersignApp } = await import('../../lib/app.ts');
    const { context } = JSON.parse(readFileSync(CDK_JSON, 'utf8'));
    countersignApp({ stage, outdir, context: stages ? { ...context, stages } : context }).synth();
  });
  return readAssembly(folder, stage);
}

export function readAssembly(folder: string, stage = 'local'): Assembly {
  return {
    template: JSON.parse(readFileSync(join(folder, `${STACK}.template.json`), 'utf8')),
    stackName: `countersign-${stage}`,
    codeFolder: (s3Key) => join(folder, `asset.${s3Key.replace(/\.zip$/, '')}`),
  };
}
