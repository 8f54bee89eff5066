import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildCli } from '../bin/build/build-cli.ts';

const ROOT = join(import.meta.dirname, '..');
const TIMES = 9;

/** Of one start, with warm caches. CPU time is comparable also on a busy machine. */
interface Start {
  cpuMs: number;
  /** CPU time in units of an empty program. */
  timesNode: number;
  wallMs: number;
}

export interface CliStart {
  /** An empty program, which every other figure includes. */
  node: Omit<Start, 'timesNode'>;
  /** By command: from the sources, from the single file, and from the sources through npx. */
  commands: Record<string, Record<'source' | 'singleFile' | 'npx', Start>>;
}

export async function cliStart(url: string): Promise<CliStart> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-bench-cli-'));
  try {
    await buildCli(folder);
    const vectors = JSON.parse(readFileSync(join(ROOT, 'test/evidence/vectors/vectors.json'), 'utf8'));
    writeFileSync(join(folder, 'bundle.json'), vectors.document);
    writeFileSync(join(folder, 'bundle.dsse.json'), vectors.envelope);
    writeFileSync(join(folder, 'key.pem'), vectors.publicKey);
    const commands: Record<string, string[]> = {
      '--help': ['--help'],
      'runs list': ['runs', 'list', '--url', url],
      'evidence verify': ['evidence', 'verify', join(folder, 'bundle.json'), '--key', join(folder, 'key.pem')],
    };
    const node = await measured([process.execPath, '-e', '0']);
    const start = async (program: string[], args: string[]): Promise<Start> => {
      const { cpuMs, wallMs } = await measured([...program, ...args]);
      return { cpuMs, timesNode: Math.round((10 * cpuMs) / node.cpuMs) / 10, wallMs };
    };
    const figures: CliStart['commands'] = {};
    for (const [name, args] of Object.entries(commands)) {
      figures[name] = {
        source: await start([process.execPath, join(ROOT, 'bin', 'countersign.mjs')], args),
        singleFile: await start([process.execPath, join(folder, 'countersign.mjs')], args),
        npx: await start(['npx', 'countersign'], args),
      };
    }
    return { node, commands: figures };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The mean CPU time and the median time of several starts. */
async function measured(command: string[]): Promise<{ cpuMs: number; wallMs: number }> {
  // The first start fills the caches of the disk and of compiled modules.
  await started(command);
  const starts: { cpuMs: number; wallMs: number }[] = [];
  for (let count = 0; count < TIMES; count += 1) starts.push(await started(command));
  const walls = starts.map(({ wallMs }) => wallMs).sort((a, b) => a - b);
  return {
    cpuMs: Math.round(starts.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / TIMES),
    wallMs: Math.round(walls[Math.floor(TIMES / 2)] ?? 0),
  };
}

/** A shell reports the CPU time of its children, which Node.js does not. */
const SHELL = '"$@" >/dev/null 2>&1; code=$?; times; exit $code';

function started(command: string[]): Promise<{ cpuMs: number; wallMs: number }> {
  const beganMs = performance.now();
  return new Promise((resolve, reject) => {
    execFile('sh', ['-c', SHELL, 'sh', ...command], { cwd: ROOT }, (error, stdout) => {
      const wallMs = performance.now() - beganMs;
      const [, ofChildren = ''] = stdout.split('\n');
      const times = [...ofChildren.matchAll(/(\d+)m([\d.]+)s/g)].map(([, minutes, seconds]) => [minutes, seconds]);
      const cpuMs = times.reduce(
        (sum, [minutes, seconds]) => sum + 60_000 * Number(minutes) + 1000 * Number(seconds),
        0,
      );
      if (error) reject(new Error(`${command.join(' ')} failed`, { cause: error }));
      else resolve({ cpuMs, wallMs });
    });
  });
}
