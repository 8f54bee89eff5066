import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { inject } from 'vitest';
import { eventually } from './eventually.ts';
import { HostClient } from './host-client.ts';

export const REPOSITORY = join(import.meta.dirname, '..', '..');
const ONE_AT_A_TIME_WITHIN_MS = 50_000;

/** Every synthesis bundles into the same folder, so commands that synthesize take turns, whichever file runs them. */
async function takingTurns<T>(work: () => Promise<T>): Promise<T> {
  const turn = join(dirname(inject('assemblies').local), 'synthesizing');
  const take = async () => {
    try {
      mkdirSync(turn);
      return true;
    } catch {
      return undefined;
    }
  };
  await eventually('a turn to synthesize', take, { withinMs: ONE_AT_A_TIME_WITHIN_MS });
  try {
    return await work();
  } finally {
    rmdirSync(turn);
  }
}

export interface Ended {
  code: number | null;
  output: string;
}

/** Runs a command of the repository to its end, with the node that runs the tests. */
export function runCommand(script: string, ...options: string[]): Promise<Ended> {
  return takingTurns(async () => {
    const { child, output } = start(script, options);
    const [code] = await once(child, 'close');
    return { code, output: output.join('\n') };
  });
}

export interface SpawnedHost extends HostClient {
  process: ChildProcess;
  /** Sends the signal; resolves when the process has ended. */
  end(signal: NodeJS.Signals): Promise<Ended>;
}

/** `npm start` as a process of its own, to be killed; resolves when it says that it is ready. */
export function spawnHost(...options: string[]): Promise<SpawnedHost> {
  return takingTurns(async () => {
    const { child, output } = start('local/start.ts', options);
    const ended = once(child, 'close').then(([code]): Ended => ({ code, output: output.join('\n') }));
    const ready = eventually('npm start', async () => output.find((line) => line.startsWith('ready ')));
    const first = await Promise.race([ready, ended]);
    if (typeof first !== 'string') throw new Error(`it ended with ${first.code}: ${first.output}`);
    return Object.assign(new HostClient(first.slice('ready '.length)), {
      process: child,
      end: (signal: NodeJS.Signals) => {
        child.kill(signal);
        return ended;
      },
    });
  });
}

function start(script: string, options: string[]): { child: ChildProcess; output: string[] } {
  const child = spawn(process.execPath, [script, ...options], { cwd: REPOSITORY, stdio: ['ignore', 'pipe', 'pipe'] });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => output.push(line));
  }
  return { child, output };
}
