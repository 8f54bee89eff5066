import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { AgentError } from './agent-error.ts';

/** A process that may have ended, and whose id another process may have by now. */
interface Holder {
  pid: number;
  startedAt: string;
}

/** One process uses the folder of an agent. Returns how to release it. */
export function lockFolder(file: string): () => void {
  const mine: Holder = { pid: process.pid, startedAt: startOf(process.pid) ?? '' };
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, JSON.stringify(mine), { mode: 0o600 });
  try {
    for (;;) {
      if (linked(draft, file)) return () => rmSync(file, { force: true });
      const holder = lockHolder(file);
      if (holder) {
        throw new AgentError(
          `process ${holder.pid} already runs the agent of this folder; stop it first, or use another folder`,
        );
      }
      // Left by a process that ended without releasing it. If two processes come here, one finds nothing to move.
      const stale = `${draft}.stale`;
      try {
        renameSync(file, stale);
      } catch {
        continue;
      }
      rmSync(stale, { force: true });
    }
  } finally {
    rmSync(draft, { force: true });
  }
}

/** The process that uses the folder; undefined if none does. */
export function lockHolder(file: string): Holder | undefined {
  try {
    const { pid, startedAt }: Holder = JSON.parse(readFileSync(file, 'utf8'));
    return isAlive(pid) && (startOf(pid) ?? startedAt) === startedAt ? { pid, startedAt } : undefined;
  } catch {
    return undefined;
  }
}

/** Creating a link fails if the name exists, so one of several processes succeeds. */
function linked(draft: string, file: string): boolean {
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** When a process started, in ticks since the boot, with the id of the boot. Undefined where there is no /proc. */
export function startOf(pid: number): string | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /, '')
      .split(' ');
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()}/${fields[19]}`;
  } catch {
    return undefined;
  }
}
