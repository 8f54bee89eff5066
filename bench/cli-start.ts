import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildCli } from '../bin/build/build-cli.ts';

const ROOT = join(import.meta.dirname, '..');
const TIMES = 9;

export interface CliStart {
  /** An empty program, which every other figure includes. */
  nodeMs: number;
  /** By command: from the sources, and from the single file. */
  commands: Record<string, { sourceMs: number; singleFileMs: number }>;
}

/** The median time from the start of a command to its end, with warm caches. */
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
    const measured: CliStart['commands'] = {};
    for (const [name, args] of Object.entries(commands)) {
      measured[name] = {
        sourceMs: await medianMs([join(ROOT, 'bin', 'countersign.ts'), ...args]),
        singleFileMs: await medianMs([join(folder, 'countersign.mjs'), ...args]),
      };
    }
    return { nodeMs: await medianMs(['-e', '0']), commands: measured };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function medianMs(args: string[]): Promise<number> {
  // The first start fills the caches of the disk and of compiled modules.
  await startedMs(args);
  const times: number[] = [];
  for (let count = 0; count < TIMES; count += 1) times.push(await startedMs(args));
  return Math.round(times.sort((a, b) => a - b)[Math.floor(TIMES / 2)] ?? 0);
}

function startedMs(args: string[]): Promise<number> {
  const beganMs = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: 'ignore' });
    child.on('error', reject);
    child.on('exit', (code) => {
      if (code === 0) resolve(performance.now() - beganMs);
      else reject(new Error(`countersign ${args.slice(1).join(' ')} ended with ${code}`));
    });
  });
}
