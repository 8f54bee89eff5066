import { AgentFolder } from './agent-folder.ts';
import { lockHolder } from './folder-lock.ts';
import { machine } from './system.ts';

const POLL_MS = 100;

/** Asks the process of an agent to finish its work, and waits until it has ended. Undefined if there is none. */
export async function drainAgent(dir: string): Promise<number | undefined> {
  const { lock } = new AgentFolder(dir);
  const holder = lockHolder(lock);
  if (!holder) return undefined;
  process.kill(holder.pid, 'SIGTERM');
  while (lockHolder(lock)?.pid === holder.pid) await machine.sleep(POLL_MS);
  return holder.pid;
}
