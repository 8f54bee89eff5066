import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../host/free-port.ts';
import { privateFolder } from '../host/private-files.ts';

export { createTables } from './tables.ts';

export interface DynamoDb {
  url: string;
  stop(): Promise<void>;
}

interface DynamoDbOptions {
  dataFolder: string;
  log(line: string): void;
  env?: NodeJS.ProcessEnv;
  /** How long the engine of a host that just ended may take to close the same file. */
  waitForPreviousMs?: number;
  /** How long the engine may take to end by itself when the host stops. */
  stopWithinMs?: number;
}

/** Far more than it takes: on a busy machine everything does. */
const READY_WITHIN_MS = 60_000;
const PREVIOUS_GONE_WITHIN_MS = 60_000;
const PORTS_TRIED_MAX = 3;
const STOP_WITHIN_MS = 3_000;
/** In the engine's own words: a port that accepts connections may be somebody else's by now. */
const LISTENS = /\blistening on\b/;
const POLL_EVERY_MS = 10;

/**
 * The engine must never outlive the host, not even on `kill -9`, when no handler of ours runs. So a shell holds the
 * reading end of a pipe from the host: when the host is gone the kernel closes the pipe, `cat` ends, the engine is ended.
 */
const WATCHER = `
umask 077
pid_file=$1; shift
exec 3<&0
"$@" </dev/null 3<&- & engine=$!
echo "$engine" >"$pid_file"
( cat <&3 >/dev/null; kill "$engine" ) 2>/dev/null & watch=$!
exec 3<&-
wait "$engine"; code=$?
kill "$watch" 2>/dev/null
exit "$code"
`;

/** Starts the embedded DynamoDB on a free port, or points at the one that the environment names. */
export async function startDynamoDb(options: DynamoDbOptions): Promise<DynamoDb> {
  const {
    dataFolder,
    log,
    env = process.env,
    waitForPreviousMs = PREVIOUS_GONE_WITHIN_MS,
    stopWithinMs = STOP_WITHIN_MS,
  } = options;
  if (env.AWS_ENDPOINT_URL_DYNAMODB) return { url: env.AWS_ENDPOINT_URL_DYNAMODB, stop: async () => {} };
  const binary = findBinary(env);
  privateFolder(dataFolder);
  const pidFile = join(dataFolder, 'dynamodb.pid');
  const database = join(dataFolder, 'dynamodb.sqlite');
  await previousGone(pidFile, database, waitForPreviousMs);
  const { child, exited, engineId, port } = await startEngine({ binary, database, pidFile, log });
  unrefPipes(child);
  let stopping = false;
  child.once('exit', (code) => {
    if (!stopping) log(`DynamoDB ended by itself with exit code ${code}`);
  });
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      stopping = true;
      child.stdin?.destroy();
      const late = setTimeout(() => endAtOnce(engineId), stopWithinMs);
      if (child.exitCode === null && child.signalCode === null) await exited;
      clearTimeout(late);
      rmSync(pidFile, { force: true });
    },
  };
}

interface EngineFiles {
  binary: string;
  database: string;
  pidFile: string;
  log(line: string): void;
}

/** Somebody may take a free port just before the engine does, which then exits: another port is tried. */
async function startEngine(files: EngineFiles): Promise<Engine> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await startEngineOn(await freePort(), files);
    } catch (error) {
      if (!(error instanceof EngineExited) || tried === PORTS_TRIED_MAX) throw error;
    }
  }
}

interface Engine {
  child: ChildProcess;
  exited: Promise<void>;
  engineId: number;
  port: number;
}

async function startEngineOn(port: number, { binary, database, pidFile, log }: EngineFiles): Promise<Engine> {
  rmSync(pidFile, { force: true });
  const engine = ['--host', '127.0.0.1', '--port', String(port), '--db-path', database];
  // Detached: Ctrl-C in the terminal must reach the host only, which ends the engine after the functions.
  const child = spawn('sh', ['-c', WATCHER, 'watch-dynamodb', pidFile, binary, ...engine], {
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  const output = collectOutput(child, log);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return { child, exited, engineId: await ready(child, { pidFile, output }), port };
}

/** Only the engine: the shell that waits for it ends by itself, and not before the engine is gone. */
function endAtOnce(engineId: number): void {
  try {
    process.kill(engineId, 'SIGKILL');
  } catch {
    // It ended by itself this very moment.
  }
}

function findBinary(env: NodeJS.ProcessEnv): string {
  if (env.DYNOXIDE_BIN) return env.DYNOXIDE_BIN;
  const packageName = `@dynoxide/${process.platform}-${process.arch}`;
  try {
    const manifest = createRequire(import.meta.url).resolve(`${packageName}/package.json`);
    return join(dirname(manifest), 'dynoxide');
  } catch {
    // Optional dependency: absent on a platform it was not built for.
  }
  const onPath = (env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'dynoxide'));
  const found = onPath.find((candidate) => existsSync(candidate));
  if (found) return found;
  throw new Error(
    `no DynamoDB to run on: install the npm package ${packageName}, set DYNOXIDE_BIN to a dynoxide binary, put ` +
      'dynoxide on the PATH, or set AWS_ENDPOINT_URL_DYNAMODB to another DynamoDB (DynamoDB Local, for example)',
  );
}

/** A host killed a moment ago may still have its engine closing the same file: wait for it, never share the file. */
async function previousGone(pidFile: string, database: string, waitMs: number): Promise<void> {
  const deadline = performance.now() + waitMs;
  for (let pid = readPid(pidFile); pid !== undefined && isEngineOf(pid, database); pid = readPid(pidFile)) {
    if (performance.now() > deadline) {
      throw new Error(`another local host is using ${dirname(database)} (its DynamoDB is process ${pid})`);
    }
    await delay(POLL_EVERY_MS);
  }
}

function readPid(pidFile: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(pidFile, 'utf8'), 10) || undefined;
  } catch {
    return undefined;
  }
}

/** Process numbers are reused, so being alive is not enough where the command line can be read. */
function isEngineOf(pid: number, database: string): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(database);
  } catch {
    // Without /proc (macOS) the number alone must do; with it, the process ended just now.
    return !existsSync('/proc');
  }
}

function collectOutput(child: ChildProcess, log: (line: string) => void): string[] {
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    if (!stream) continue;
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      log(line);
    });
  }
  return lines;
}

interface Expected {
  pidFile: string;
  output: string[];
}

/** Gives the engine's process number. The shell makes the file a moment before the number is in it. */
async function ready(child: ChildProcess, { pidFile, output }: Expected): Promise<number> {
  let failure: Error | undefined;
  child.once('error', (error) => {
    failure = new Error(`DynamoDB did not start: ${error.message}`);
  });
  // Not at its exit: what it said may be read after that.
  child.once('close', (code) => {
    failure ??= new EngineExited(`DynamoDB did not start: it exited with ${code}: ${output.join(' ')}`);
  });
  const deadline = performance.now() + READY_WITHIN_MS;
  while (true) {
    if (failure) throw failure;
    const engineId = readPid(pidFile);
    if (engineId !== undefined && output.some((line) => LISTENS.test(line))) return engineId;
    if (performance.now() > deadline) {
      child.stdin?.destroy();
      throw new Error(`DynamoDB did not start within ${READY_WITHIN_MS} ms: ${output.join(' ')}`);
    }
    await delay(POLL_EVERY_MS);
  }
}

class EngineExited extends Error {}

/** The host lives as long as its servers; the engine's pipes alone must not keep it. */
function unrefPipes(child: ChildProcess): void {
  child.unref();
  for (const stream of [child.stdin, child.stdout, child.stderr]) {
    if (stream && 'unref' in stream && typeof stream.unref === 'function') stream.unref();
  }
}
