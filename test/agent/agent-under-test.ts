import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { logTo } from '../../agent/agent-log.ts';
import type { AgentProgram, Ending } from '../../agent/agent-program.ts';
import { enrolAgent } from '../../agent/enrol.ts';
import { startAgent } from '../../agent/start-agent.ts';
import { machine, type System } from '../../agent/system.ts';
import type { FakeRuntime } from './fake-runtime.ts';

const TOKEN = 'enrolment-token-of-the-tests';

/** Enrols an agent in a new folder. */
export async function enrolled(runtime: FakeRuntime, folder: string, config = 'slots: 2\n'): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const dir = join(folder, 'agent');
  const system = { ...machine, wall: () => runtime.now() };
  await enrolAgent({ url: runtime.url, token: TOKEN, dir, fingerprints: [], version: '0' }, system);
  writeFileSync(join(dir, 'agent.yaml'), config, { mode: 0o600 });
  return dir;
}

export interface RunningAgent {
  program: AgentProgram;
  lines: string[];
  /** Drains it and waits for its end. */
  stop(): Promise<Ending>;
  ended: Promise<Ending>;
}

/** Runs an agent in this process. */
export async function runAgent(dir: string, system: System = fast): Promise<RunningAgent> {
  const lines: string[] = [];
  const log = logTo(
    (line) => {
      lines.push(line);
    },
    () => new Date().toISOString(),
    false,
  );
  const start = Promise.withResolvers<AgentProgram>();
  const ended = startAgent({ dir, version: '0', system, log, started: start.resolve });
  // One that does not start fails with the reason.
  ended.catch(start.reject);
  const program = await start.promise;
  return {
    program,
    lines,
    ended,
    stop: () => {
      program.drain('the test ends');
      return ended;
    },
  };
}

/** Time passes faster than on the machine, so that leases and pauses end soon. The runtime must use `now`, too. */
export function accelerated(factor: number): { system: System; now: () => number } {
  const began = { wall: Date.now(), monotonic: performance.now() };
  const since = () => (performance.now() - began.monotonic) * factor;
  const now = () => Math.round(began.wall + since());
  const sleep: System['sleep'] = (ms, until) => machine.sleep(ms / factor, until);
  return { system: { wall: now, monotonic: () => began.monotonic + since(), random: Math.random, sleep }, now };
}
export const { system: fast, now: fastNow } = accelerated(6);

/** A machine whose clock is wrong. */
export const withSkew = (skewMs: number): System => ({ ...fast, wall: () => fastNow() + skewMs });
