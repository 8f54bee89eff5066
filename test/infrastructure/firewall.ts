import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { countersignApp } from '../../lib/app.ts';
import type { CloudFormationTemplate } from '../../local/template/template.ts';

/** The template of the part `firewall` of a stage. */
export function synthesizeFirewall(
  outdir: string,
  stage: string,
  stages: Record<string, unknown>,
): CloudFormationTemplate {
  countersignApp({ stage, part: 'firewall', outdir, context: { stages } }).synth();
  return JSON.parse(readFileSync(join(outdir, 'Firewall.template.json'), 'utf8'));
}
