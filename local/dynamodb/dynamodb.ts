import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../host/free-port.ts';
import { privateFolder } from '../host/private-files.ts';

export interface DynamoDb {
  url: string;
  stop(): Promise<void>;
}

interface DynamoDbOptions {
  dataFolder: string;
  log(line: string): void;
  env?: NodeJS.ProcessEnv;
  /** How long to wait until the engine of the last host has closed the file. */
  waitForPreviousMs?: number;
  /** How long the engine may take to stop before it is killed. */
  stopWithinMs?: number;
}

/** Much more than needed, for a busy machine. */
const READY_WITHIN_MS = 60_000;
const PREVIOUS_GONE_WITHIN_MS = 60_000;
const PORTS_TRIED_MAX = 3;
const STOP_WITHIN_MS = 3_000;
/** The message of the engine. A port that accepts connections could belong to another process. */
const LISTENS = /\blistening on\b/;
const POLL_EVERY_MS = 10;

/**
 * The engine must not outlive the host, also after `kill -9`, when no handler runs. So a shell reads a pipe from the host:
 * when the host ends, the kernel closes the pipe, `cat` ends, and the shell ends the engine.
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

/** Starts the embedded DynamoDB on a free port, or uses the one that the environment names. */
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
    if (!stopping) log(`DynamoDB ended unexpectedly with exit code ${code}`);
  });
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      stopping = true;
      child.stdin?.destroy();
      const late = setTimeout(() => killEngine(engineId), stopWithinMs);
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

/** If another process takes the free port first, the engine exits, and another port is tried. */
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
  // Detached, so that Ctrl-C reaches only the host, which stops the engine after the functions.
  const child = spawn('sh', ['-c', WATCHER, 'watch-dynamodb', pidFile, binary, ...engine], {
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  const output = collectOutput(child, log);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return { child, exited, engineId: await ready(child, { pidFile, output }), port };
}

/** Kills only the engine. The shell waits for it and then ends. */
function killEngine(engineId: number): void {
  try {
    process.kill(engineId, 'SIGKILL');
  } catch {
    // It has already ended.
  }
}

export function findBinary(env: NodeJS.ProcessEnv): string {
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
  throw new Error(
    `found no DynamoDB engine: install the npm package ${packageName}, set DYNOXIDE_BIN to a dynoxide binary, add ` +
      'dynoxide to the PATH, or set AWS_ENDPOINT_URL_DYNAMODB to another DynamoDB (for example DynamoDB Local)',
  );
}

/** After a killed host its engine may still be closing the file. Waits for it, because two engines must not share a file. */
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

/** Process ids are reused, so the command line is checked where it can be read. */
function isEngineOf(pid: number, database: string): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(database);
  } catch {
    // Without /proc (macOS) the id alone is checked. With /proc, the process has just ended.
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

/** Resolves to the process id of the engine. The shell creates the file shortly before it writes the id. */
async function ready(child: ChildProcess, { pidFile, output }: Expected): Promise<number> {
  let failure: Error | undefined;
  child.once('error', (error) => {
    failure = new Error(`DynamoDB did not start: ${error.message}`);
  });
  // On `close`, not on `exit`, because output may still arrive after the exit.
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

/** The pipes of the engine must not prevent the host from ending. */
function unrefPipes(child: ChildProcess): void {
  child.unref();
  for (const stream of [child.stdin, child.stdout, child.stderr]) {
    if (stream && 'unref' in stream && typeof stream.unref === 'function') stream.unref();
  }
}
