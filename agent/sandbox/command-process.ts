import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import type { SandboxedCommand } from './sandboxed-command.ts';

export interface CommandEnd {
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  /** The sandbox could not be created, so the command did not run. */
  neverStarted: boolean;
}

export interface CommandProcess {
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly pid: number;
  /** After the process has ended and its output was read. */
  readonly ended: Promise<CommandEnd>;
  /** Asks the command to end. `kill` does not ask. */
  terminate(): void;
  /** Ends the command and everything that it started. */
  kill(): void;
}

/** A variable that every process of a command inherits, so that those which left its process group are found. */
export const ASSIGNMENT_VARIABLE = 'COUNTERSIGN_ASSIGNMENT';

/** Shells report the end by signal N as exit code 128 + N, and so does bubblewrap. */
const SIGSYS_EXIT_CODE = 128 + 31;

/** Whether the seccomp filter ended the command. */
export const endedByFilter = ({ exitCode, signal }: CommandEnd): boolean =>
  signal === 'SIGSYS' || exitCode === SIGSYS_EXIT_CODE;

/** Starts a command in its own process group. `environment` is complete: nothing of the agent's own is added. */
export function startCommand(
  { file, args, descriptors, user }: SandboxedCommand,
  environment: Readonly<Record<string, string>>,
  stdin?: string,
): CommandProcess {
  const child = spawn(file, args, {
    cwd: '/',
    env: environment,
    detached: true,
    ...(user && { uid: user.uid, gid: user.gid }),
    stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe', ...descriptors.map(() => 'pipe' as const)],
  });
  if (child.pid === undefined) {
    // The reason comes later, as an event. Without file descriptors there are no streams, either.
    child.once('error', () => {});
    throw new Error(`this host could not start ${file}; raise the limits of processes and open files of the agent`);
  }
  // A command that does not read its input is not an error.
  child.stdin?.on('error', () => {}).end(stdin);
  const status = new StatusReader();
  descriptors.forEach((descriptor, index) => {
    const stream = child.stdio[FIRST_DESCRIPTOR + index];
    // A command that does not read its descriptors is not an error.
    stream?.on('error', () => {});
    if (descriptor === 'status') (stream as Readable).on('data', (bytes: Buffer) => status.take(bytes));
    else (stream as Writable).end(descriptor);
  });
  const isNamespaced = descriptors.includes('status');
  return {
    stdout: child.stdout as Readable,
    stderr: child.stderr as Readable,
    pid: child.pid,
    ended: endOf(child, () => isNamespaced && status.firstProcess === undefined),
    terminate: () => {
      if (isNamespaced) void status.firstProcessKnown.then(terminateIn);
      else terminate(child, environment);
    },
    kill: () => kill(child, isNamespaced, environment),
  };
}

const FIRST_DESCRIPTOR = 3;

function endOf(child: ChildProcess, neverStarted: () => boolean): Promise<CommandEnd> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    // `exit` and not `close`: a process that the command left behind may hold its output open.
    child.once('exit', (exitCode, signal) => {
      const end = () => resolve({ exitCode, signal, neverStarted: neverStarted() });
      const streams = [child.stdout, child.stderr].filter((stream) => stream !== null);
      const drained = Promise.all(streams.map((stream) => (stream.readableEnded ? undefined : ended(stream))));
      const giveUp = setTimeout(end, OUTPUT_AFTER_EXIT_MS);
      void drained.then(() => {
        clearTimeout(giveUp);
        end();
      });
    });
  });
}

/** How long the agent reads output of a command that has ended, if another process holds it open. */
const OUTPUT_AFTER_EXIT_MS = 1_000;

const ended = (stream: Readable): Promise<void> =>
  new Promise((resolve) => {
    stream.once('close', resolve).once('end', resolve);
  });

/** Reads what bubblewrap reports: lines of JSON, of which one has the first process of the sandbox. */
class StatusReader {
  #text = '';
  readonly #known = Promise.withResolvers<number>();

  take(bytes: Buffer): void {
    this.#text += bytes.toString('latin1');
    if (this.firstProcess !== undefined) this.#known.resolve(this.firstProcess);
  }

  /** A command can be canceled before this report was read, although it runs already. Never ends if there is no sandbox. */
  get firstProcessKnown(): Promise<number> {
    return this.#known.promise;
  }

  get firstProcess(): number | undefined {
    const pid = /"child-pid": *(\d+)/.exec(this.#text)?.[1];
    return pid === undefined ? undefined : Number(pid);
  }
}

/** In a sandbox the first process starts the command, and must go on until the command has ended. */
function terminateIn(firstProcess: number): void {
  for (const pid of childrenOf(firstProcess)) signal(pid, 'SIGTERM');
}

function terminate(child: ChildProcess, environment: Readonly<Record<string, string>>): void {
  if (child.exitCode === null && child.pid !== undefined) signal(-child.pid, 'SIGTERM');
  for (const pid of strays(environment)) signal(pid, 'SIGTERM');
}

function kill(child: ChildProcess, isNamespaced: boolean, environment: Readonly<Record<string, string>>): void {
  // With the first process of a PID namespace the kernel ends all others.
  if (child.pid !== undefined) signal(-child.pid, 'SIGKILL');
  if (!isNamespaced) for (const pid of strays(environment)) signal(pid, 'SIGKILL');
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Ends what is left of a command that an earlier process of the agent has started. */
export function killStrays(environment: Readonly<Record<string, string>>): void {
  for (const pid of strays(environment)) signal(pid, 'SIGKILL');
}

/** Processes of the command that left its process group: they have inherited its variable. */
function strays(environment: Readonly<Record<string, string>>): number[] {
  const id = environment[ASSIGNMENT_VARIABLE];
  if (id === undefined || process.platform !== 'linux') return [];
  const mark = `${ASSIGNMENT_VARIABLE}=${id}`;
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => environmentOf(pid).includes(mark))
    .map(Number);
}

function environmentOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
  } catch {
    return [];
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}
