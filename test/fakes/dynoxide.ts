import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '../../local/host/free-port.ts';

/**
 * DynamoDB by another author, in memory. The contracts run with it, and test/local/core/local-dynamodb.test.ts compares the
 * local host's own with it.
 */
export interface Dynoxide {
  url: string;
  stop(): Promise<void>;
}

/** Another process may take the free port first. */
const PORTS_TRIED_MAX = 3;

/** The engine ends with the tests, also if they are killed: then the kernel closes the pipe, and `cat` ends. */
const WATCHER = '"$@" </dev/null & engine=$!; cat >/dev/null; kill "$engine"; wait "$engine"';

export async function startDynoxide(): Promise<Dynoxide> {
  for (let tried = 1; ; tried += 1) {
    const port = await freePort();
    const engine = ['--host', '127.0.0.1', '--port', String(port)];
    const child = spawn('sh', ['-c', WATCHER, 'watch', findDynoxide(process.env), ...engine], { detached: true });
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    if (await listens([child.stdout, child.stderr])) {
      return {
        url: `http://127.0.0.1:${port}`,
        stop: async () => {
          child.stdin.end();
          await exited;
        },
      };
    }
    child.stdin.end();
    if (tried === PORTS_TRIED_MAX) throw new Error('dynoxide does not start');
  }
}

/** Resolves when the engine says that it listens, or has closed its output. */
function listens(streams: NodeJS.ReadableStream[]): Promise<boolean> {
  return new Promise((resolve) => {
    for (const input of streams) {
      const lines = createInterface({ input });
      lines.on('line', (line) => {
        if (/\blistening on\b/.test(line)) resolve(true);
      });
      lines.once('close', () => resolve(false));
    }
  });
}

export function findDynoxide(env: NodeJS.ProcessEnv): string {
  if (env.DYNOXIDE_BIN) return env.DYNOXIDE_BIN;
  const packageName = `@dynoxide/${process.platform}-${process.arch}`;
  try {
    const manifest = createRequire(import.meta.url).resolve(`${packageName}/package.json`);
    return join(dirname(manifest), 'dynoxide');
  } catch {
    // An optional dependency that is absent on some platforms.
  }
  const onPath = (env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'dynoxide'));
  const found = onPath.find((candidate) => existsSync(candidate));
  if (found) return found;
  throw new Error(`install the npm package ${packageName}, set DYNOXIDE_BIN, or add dynoxide to the PATH`);
}
