import { execFile } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildProgram } from '../../bin/build/build-cli.ts';
import { temporaryFolder } from '../local/cloud/wire.ts';
import { enrolled } from './agent-under-test.ts';
import { FakeRuntime } from './fake-runtime.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const read = (...path: string[]) => readFileSync(join(ROOT, ...path), 'utf8');
const CONTAINERFILE = read('agent', 'install', 'Containerfile').replaceAll('\\\n', ' ').split('\n');
const SERVICE = read('agent', 'install', 'countersign-agent.service');
const run = promisify(execFile);
const folder = temporaryFolder();
/** The folder `dist` of the repository, which is the context of the image. */
const dist = join(folder.path, 'dist');
/** A host with this one file and nothing of the repository. */
const host = join(folder.path, 'host');
const program = join(host, 'countersign-agent.mjs');

beforeAll(async () => {
  await buildProgram('countersign-agent', dist);
  mkdirSync(host);
  copyFileSync(join(dist, basename(program)), program);
}, 60_000);
afterAll(() => folder.remove());

/** What the lines of an instruction say, in their order. */
const instructions = (name: string) =>
  CONTAINERFILE.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1).trim());

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}
const agent = (...args: string[]): Promise<Ended> =>
  run(process.execPath, [program, ...args], { cwd: host, env: { PATH: '/usr/bin:/bin' } }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: Ended) => error,
  );

describe('the container file', () => {
  it('copies files that the build has made, with the command that it and the docs name', () => {
    const copies = instructions('COPY').map((line) => line.split(/\s+/));
    expect(copies).toHaveLength(1);
    for (const [source = ''] of copies) expect(existsSync(join(dist, source)), source).toBe(true);
    const command = 'docker build -f agent/install/Containerfile -t countersign-agent dist';
    expect(CONTAINERFILE.join('\n')).toContain(command);
    expect(read('docs', 'agents.md')).toContain(command);
    expect(read('package.json')).toContain('"build": "node bin/build/build-cli.ts"');
  });

  it('starts the copied file, as a user who is not root and owns the folder of the agent', () => {
    const [, destination = ''] = instructions('COPY')[0]?.split(/\s+/) ?? [];
    expect(instructions('ENTRYPOINT')).toEqual([`["tini", "--", "node", "${destination}"]`]);
    const [, home, user] =
      /useradd .*--uid [1-9]\d* --home-dir (\S+) --create-home (\S+)/.exec(CONTAINERFILE.join('\n')) ?? [];
    expect(instructions('USER')).toEqual([user]);
    expect(instructions('ENV')).toEqual([`COUNTERSIGN_AGENT_DIR=${home}/agent`]);
    expect(instructions('VOLUME')).toEqual([home]);
    const at = (name: string) => CONTAINERFILE.findIndex((line) => line.startsWith(`${name} `));
    expect(at('USER')).toBeLessThan(at('ENTRYPOINT'));
  });

  it('and the systemd unit start the program with the same path, options and folder', () => {
    const [, destination] = instructions('COPY')[0]?.split(/\s+/) ?? [];
    const options: string[] = JSON.parse(instructions('CMD')[0] ?? '');
    expect(SERVICE).toContain(`ExecStart=/usr/bin/node ${destination} ${options.join(' ')}\n`);
    expect(SERVICE).toContain(`Environment=${instructions('ENV')[0]}\n`);
    expect(SERVICE).toContain(`User=${instructions('USER')[0]}\n`);
  });
});

describe('the installed program', () => {
  it('starts on a host without this repository and its packages', async () => {
    expect(readdirSync(host)).toEqual([basename(program)]);
    const help = await agent('--help');
    expect(help).toMatchObject({ code: 0, stderr: '' });
    for (const command of ['enrol', 'run', 'doctor', 'drain']) expect(help.stdout).toContain(`agent ${command}`);
  });

  it('knows the options with which the container and the unit start it, and says what to do without an identity', async () => {
    const options: string[] = JSON.parse(instructions('CMD')[0] ?? '');
    for (const args of [options, ['doctor']]) {
      const { code, stdout, stderr } = await agent(...args, '--dir', join(host, 'nothing'));
      expect(code).toBeGreaterThan(0);
      expect(stdout + stderr).toMatch(/there is no agent in .*countersign agent enrol/);
      expect(stdout + stderr).not.toMatch(/unknown|Cannot find|ERR_/);
    }
  });

  it('examines an enrolled agent', async () => {
    const runtime = await new FakeRuntime().start();
    try {
      const dir = await enrolled(runtime, join(folder.path, 'agent'));
      chmodSync(dir, 0o700);
      const { code, stdout } = await agent('doctor', '--dir', dir);
      expect(stdout).toMatch(/^ok +identity /m);
      expect(stdout).toMatch(/^ok +profile dev-flex +available on this host$/m);
      expect(code).toBe(0);
    } finally {
      await runtime.stop();
    }
  });
});
