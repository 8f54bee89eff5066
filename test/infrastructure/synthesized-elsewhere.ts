import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..', '..');
const SOURCES = ['bin', 'client', 'console', 'docs', 'lambdas', 'lib', 'policies'];
const FILES = ['cdk.json', 'package.json', 'package-lock.json', 'tsconfig.json'];

/** A later year, in the time zone that is farthest from UTC. */
const LATER = `
const { Date: Real } = globalThis;
const ahead = 500 * 24 * 3_600_000;
globalThis.Date = class extends Real {
  constructor(...parts) { if (parts.length > 0) super(...parts); else super(Real.now() + ahead); }
  static now() { return Real.now() + ahead; }
};`;

export interface Elsewhere {
  /** The bytes of the template. */
  template: string;
  /** What the checks of AwsSolutions found. */
  findings: unknown[];
}

/** Runs the CDK app in a copy of the sources, from another folder, in a later year, with all checks. */
export async function synthesizedElsewhere(
  folder: string,
  stage: string,
  stages: Record<string, unknown>,
): Promise<Elsewhere> {
  const [copy, workingFolder, outdir] = ['a clone', 'elsewhere', 'out'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const name of [...SOURCES, ...FILES]) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  mkdirSync(workingFolder);
  const { context } = JSON.parse(readFileSync(join(ROOT, 'cdk.json'), 'utf8'));
  const { CDK_VALIDATION: _off, ...environment } = process.env;
  const env = {
    ...environment,
    CDK_OUTDIR: outdir,
    CDK_CONTEXT_JSON: JSON.stringify({ ...context, stage, stages }),
    TZ: 'Pacific/Kiritimati',
  };
  const later = `data:text/javascript,${encodeURIComponent(LATER)}`;
  await promisify(execFile)(process.execPath, ['--import', later, join(copy, 'bin', 'app.ts')], {
    cwd: workingFolder,
    env,
  });
  const report = JSON.parse(readFileSync(join(outdir, 'validation-report.json'), 'utf8'));
  return { template: readFileSync(join(outdir, 'Countersign.template.json'), 'utf8'), findings: report.pluginReports };
}
