import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildCli } from '../../bin/build/build-cli.ts';
import vectors from '../evidence/vectors/vectors.json' with { type: 'json' };
import { temporaryFolder } from '../local/cloud/wire.ts';
import { ROOT } from './command-line.ts';

const run = promisify(execFile);
const folder = temporaryFolder();
const built = join(folder.path, 'built');
const program = join(built, 'countersign.mjs');
/** An empty folder with nothing of this repository above it. */
const elsewhere = join(folder.path, 'elsewhere');
/** Without `NODE_*` variables and without the packages of this repository on the path. */
const environment = { PATH: '/usr/bin:/bin', TMPDIR: join(folder.path, 'tmp') };

/** The Node.js of the tests, and the one of the system if it is new enough. */
async function plainNodes(): Promise<string[]> {
  const path = (process.env.PATH ?? '').split(':').filter((each) => !each.includes('node_modules'));
  const [system] = await run('/bin/sh', ['-c', 'command -v node'], { env: { PATH: path.join(':') } }).then(
    ({ stdout }) => [stdout.trim()],
    () => [],
  );
  const version = system ? (await run(system, ['--version'])).stdout : '';
  return [process.execPath, ...(system && Number(/^v(\d+)/.exec(version)?.[1]) >= 20 ? [system] : [])];
}

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}
const countersign = (node: string, ...args: string[]): Promise<Ended> =>
  run(node, [program, ...args], { cwd: elsewhere, env: environment }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: Ended) => error,
  );

let nodes: string[];
beforeAll(async () => {
  for (const each of [elsewhere, environment.TMPDIR]) mkdirSync(each);
  [nodes] = await Promise.all([plainNodes(), buildCli(built)]);
});
afterAll(() => folder.remove());

describe('the single-file command line', () => {
  it('prints its help and version with a plain Node.js, outside of the repository', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    for (const node of nodes) {
      expect(await countersign(node, '--help')).toMatchObject({
        code: 0,
        stderr: '',
        stdout: expect.stringContaining('runs list'),
      });
      expect(await countersign(node, '--version')).toMatchObject({ code: 0, stdout: `${version}\n` });
    }
  });

  it('verifies evidence, and finds a changed byte', async () => {
    const put = (name: string, content: string) => writeFileSync(join(elsewhere, name), content);
    put('bundle.json', vectors.document);
    put('bundle.dsse.json', vectors.envelope);
    put('changed.json', vectors.document.replace('failed_terminal', 'succeeded'));
    put('changed.dsse.json', vectors.envelope);
    put('key.pem', vectors.publicKey);
    for (const node of nodes) {
      const valid = await countersign(node, 'evidence', 'verify', 'bundle.json', '--key', 'key.pem');
      expect([valid.code, valid.stdout.split('\n')[0]]).toEqual([0, 'valid: acme/run_00000001, failed_terminal']);
      const changed = await countersign(node, 'evidence', 'verify', 'changed.json', '--key', 'key.pem');
      expect([changed.code, changed.stdout]).toEqual([1, expect.stringMatching(/^tampered: /)]);
    }
  });

  it('contains the policies, their test cases and the policy engine, and leaves no files behind', async () => {
    for (const node of nodes) {
      const { code, stdout, stderr } = await countersign(node, 'policy', 'test', '--json');
      expect([code, stderr]).toEqual([0, '']);
      expect(JSON.parse(stdout).cases.length).toBeGreaterThan(5);
    }
    expect(readdirSync(environment.TMPDIR)).toEqual([]);
  });

  it('checks workflows', async () => {
    const file = join(ROOT, 'workflows', 'triage-incident.yaml');
    for (const node of nodes) {
      const { code, stdout } = await countersign(node, 'workflow', 'validate', file);
      expect([code, stdout]).toEqual([0, expect.stringContaining('triage-incident is valid')]);
    }
  });
});

describe('the build', () => {
  it('has the same bytes when it is made in another folder', async () => {
    const copy = join(folder.path, 'a copy');
    const parts = [
      'agent',
      'bin',
      'client',
      'lambdas',
      'lib',
      'policies',
      'package.json',
      'package-lock.json',
      'tsconfig.json',
    ];
    for (const part of parts) cpSync(join(ROOT, part), join(copy, part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    const again = join(folder.path, 'built-again');
    await run(process.execPath, [join(copy, 'bin/build/build-cli.ts'), again], { cwd: copy });
    expect(readdirSync(again).sort()).toEqual(readdirSync(built).sort());
    for (const file of readdirSync(built)) {
      expect(readFileSync(join(again, file)).equals(readFileSync(join(built, file))), file).toBe(true);
    }
  });

  it('comes with its SHA-256, as sha256sum checks it', () => {
    const sha256 = createHash('sha256').update(readFileSync(program)).digest('hex');
    expect(readFileSync(`${program}.sha256`, 'utf8')).toBe(`${sha256}  countersign.mjs\n`);
  });

  it('comes with a CycloneDX list of exactly the packages in it', () => {
    const bom = JSON.parse(readFileSync(join(built, 'countersign.cdx.json'), 'utf8'));
    const schemas = JSON.parse(
      gunzipSync(readFileSync(join(ROOT, 'test/vendors/cyclonedx-1.6-schemas.json.gz'))).toString(),
    );
    const ajv = new Ajv({ strict: false, formats: { 'idn-email': true, 'iri-reference': true } });
    formats.default(ajv);
    const validate = ajv.addSchema(schemas.spdx).addSchema(schemas.jsf).compile(schemas.bom);
    validate(bom);
    expect(validate.errors).toBeNull();
    const names = bom.components.map(({ group, name }: Record<string, string>) => (group ? `${group}/${name}` : name));
    expect(names).toEqual(
      expect.arrayContaining(['zod', 'yaml', 'jsonata', 'canonicalize', '@cedar-policy/cedar-wasm']),
    );
    // Tools that build and test the program are not part of it. `tenant add` uses AWS credentials as every AWS tool does.
    expect(names.filter((name: string) => /esbuild|vitest|typescript|cdk/.test(name))).toEqual([]);
    expect(names.filter((name: string) => /aws-sdk\/client-/.test(name))).toEqual(['@aws-sdk/client-secrets-manager']);
    expect(
      bom.components.filter(({ hashes, licenses }: object & Record<string, unknown>) => !hashes || !licenses),
    ).toEqual([]);
  });
});
