import { cachedAssembly } from '../../local/template/assembly-cache.ts';

/** The assembly of the part `firewall` of a stage, without checks, as `synthesize` makes those of stages. */
export async function synthesizeFirewall(
  folder: string,
  stage: string,
  stages: Record<string, unknown>,
): Promise<void> {
  const part = 'firewall';
  await cachedAssembly(folder, { stage, stages, part }, async (outdir) => {
    process.env.CDK_VALIDATION = 'false';
    const { countersignApp } = await import('../../lib/app.ts');
    countersignApp({ stage, part, outdir, context: { stages } }).synth();
  });
}
