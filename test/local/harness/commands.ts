import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { eventually } from './eventually.ts';
import { HostClient } from './host-client.ts';

export const REPOSITORY = join(import.meta.dirname, '..', '..', '..');

export interface Ended {
  code: number | null;
  output: string;
}

/** Runs a command of the repository to its end, with the node that runs the tests. */
export async function runCommand(script: string, ...options: string[]): Promise<Ended> {
  const { child, output } = start(script, options);
  const [code] = await once(child, 'close');
  return { code, output: output.join('\n') };
}

export interface SpawnedHost extends HostClient {
  process: ChildProcess;
  /** Sends the signal; resolves when the process has ended. */
  end(signal: NodeJS.Signals): Promise<Ended>;
}

/** `npm start` as a separate process that a test can kill; resolves when it prints that it is ready. */
export async function spawnHost(...options: string[]): Promise<SpawnedHost> {
  const { child, output } = start('local/start.ts', options);
  const ended = once(child, 'close').then(([code]): Ended => ({ code, output: output.join('\n') }));
  const ready = eventually('npm start', async () => {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${output.join('\n')}`);
    return output.find((line) => line.startsWith('ready '));
  });
  const url = (await ready).slice('ready '.length);
  return Object.assign(new HostClient(url), {
    process: child,
    end: (signal: NodeJS.Signals) => {
      child.kill(signal);
      return ended;
    },
  });
}

function start(script: string, options: string[]): { child: ChildProcess; output: string[] } {
  const child = spawn(process.execPath, [script, ...options], {
    cwd: REPOSITORY,
    // Not in the home of the person who runs the tests.
    env: { ...process.env, COUNTERSIGN_PROFILES: join(tmpdir(), `countersign-profiles-${process.pid}.json`) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => output.push(line));
  }
  return { child, output };
}
