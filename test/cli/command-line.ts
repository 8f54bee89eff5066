import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { runCommandLine } from '../../bin/commands/command-line.ts';
import { eventually } from '../local/harness/eventually.ts';

export const ROOT = join(import.meta.dirname, '..', '..');

export interface Ended {
  exitCode: number | null;
  stdout: string;
  stderr: string;
}

/** A running program, with its output so far. */
export class Running {
  stdout = '';
  stderr = '';
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;

  constructor(command: string, args: readonly string[], environment: NodeJS.ProcessEnv) {
    this.#child = spawn(command, args, { cwd: ROOT, env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child.stdout.on('data', (chunk) => {
      this.stdout += chunk;
    });
    this.#child.stderr.on('data', (chunk) => {
      this.stderr += chunk;
    });
    this.ended = new Promise((resolve, reject) => {
      this.#child.on('error', reject);
      this.#child.on('close', (exitCode) => resolve({ exitCode, stdout: this.stdout, stderr: this.stderr }));
    });
  }

  async hasPrinted(text: string): Promise<void> {
    await eventually(`"${text}" is printed`, async () => this.stdout.includes(text) || undefined, {
      lastSeen: () => this.stdout + this.stderr,
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}

/** The environment without variables that change the output. */
export function plainEnvironment(extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const {
    FORCE_COLOR: _force,
    NO_COLOR: _none,
    COUNTERSIGN_URL: _url,
    COUNTERSIGN_API_KEY: _key,
    COUNTERSIGN_PROFILE: _profile,
    ...rest
  } = process.env;
  // The profiles of the person who runs the tests do not matter.
  return { ...rest, COUNTERSIGN_PROFILES: '/nonexistent/profiles.json', ...extra };
}

export function startCountersign(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Running {
  return new Running(process.execPath, ['bin/countersign.mjs', ...args], plainEnvironment(environment));
}

/** The program as a user starts it, in a new process, with its output in a pipe. */
export function countersign(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return startCountersign(args, environment).ended;
}

/** The same in this process, with its output in a pipe: for tests of one command. */
export async function piped(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const ended = { stdout: '', stderr: '' };
  const exitCode = await runCommandLine([...args], plainEnvironment(environment), {
    isInteractive: false,
    columns: Number.POSITIVE_INFINITY,
    print: (line) => {
      ended.stdout += `${line}\n`;
    },
    note: (line) => {
      ended.stderr += `${line}\n`;
    },
    paint: (_tone, text) => text,
    ask: async () => undefined,
  });
  return { exitCode, ...ended };
}

/** The same in this process, on a terminal of this width without colours, where a person types these answers. */
export async function onTerminal(
  columns: number,
  args: readonly string[],
  answers: readonly string[] = [],
): Promise<Ended & { lines: string[] }> {
  const printed: string[] = [];
  const noted: string[] = [];
  const unsaid = [...answers];
  const exitCode = await runCommandLine(
    [...args],
    {},
    {
      isInteractive: true,
      columns,
      print: (line) => printed.push(line),
      note: (line) => noted.push(line),
      paint: (_tone, text) => text,
      ask: async (question) => {
        noted.push(question);
        return unsaid.shift() ?? '';
      },
    },
  );
  return { exitCode, stdout: printed.join('\n'), stderr: noted.join('\n'), lines: printed.join('\n').split('\n') };
}

export interface StubApi {
  url: string;
  /** `GET /api/v1/runs?limit=100` and the like, in order. */
  asked: string[];
  headers: IncomingHttpHeaders[];
  /** The bodies of those that had one. */
  sent: unknown[];
  close(): Promise<void>;
}

/** An API with scripted responses, for those that a real one sends rarely. */
export async function stubApi(answer: (path: string) => { status: number; body: unknown }): Promise<StubApi> {
  const asked: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const sent: unknown[] = [];
  const server = createServer(async (request, response) => {
    const path = request.url ?? '';
    asked.push(`${request.method} ${path}`);
    headers.push(request.headers);
    const given = await text(request);
    const isJson = (request.headers['content-type'] ?? '').startsWith('application/json');
    if (given !== '') sent.push(isJson ? JSON.parse(given) : given);
    const { status, body } = answer(path);
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    headers,
    sent,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
