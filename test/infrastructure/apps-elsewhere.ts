import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { LARGEST, STAGE } from './limits/largest-stage.ts';

/**
 * The app that `cdk synth` starts in cdk-synth.test.ts: the stage that the command line asks for, and other ones. They
 * share a process, because the checks need many seconds for their first template, and one for each further template. It
 * runs from another folder, in a later year, and in the time zone that is farthest from UTC.
 */
const AHEAD_MS = 500 * 24 * 3_600_000;
const RealDate = Date;
const now = () => RealDate.now() + AHEAD_MS;
globalThis.Date = new Proxy(RealDate, {
  construct: (target, parts, type) => Reflect.construct(target, parts.length > 0 ? parts : [now()], type),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
});
process.env.TZ = 'Pacific/Kiritimati';
// Other tests of the process may have set it, and this one is about the checks.
delete process.env.CDK_VALIDATION;

const [folder = ''] = process.argv.slice(2);
process.chdir(folder);
const ROOT = join(import.meta.dirname, '..', '..');
const CLONE = join(folder, 'a clone');
const asked = JSON.parse(process.env.CDK_CONTEXT_JSON ?? '');
const inFile = JSON.parse(readFileSync(join(CLONE, 'cdk.json'), 'utf8')).context;
const largest = { ...inFile, stage: STAGE, stages: { [STAGE]: LARGEST } };

// The largest first: the checks then know the types of all resources, and need not start again.
await run('largest', CLONE, largest);
await run('acme-prod', ROOT, { ...asked, stage: 'acme-prod' });
await run(asked.stage, ROOT, asked);
await run('firewall', CLONE, { ...largest, part: 'firewall' });

/** The query makes Node.js run the file again. */
async function run(name: string, root: string, context: object): Promise<void> {
  process.env.CDK_CONTEXT_JSON = JSON.stringify(context);
  process.env.CDK_OUTDIR = join(folder, name);
  await import(`${pathToFileURL(join(root, 'bin', 'app.ts'))}?${name}`);
}
