import { closeSync, readdirSync, readFileSync } from 'node:fs';
import tls from 'node:tls';

const FIRST = 3;
const CLOSED_FOR_COMMANDS = 0o2000000;

/**
 * Closes files that the parent of the agent left open: commands would inherit them. Node.js opens its own so that commands
 * do not get them.
 */
export function closeInheritedDescriptors(): void {
  if (process.platform !== 'linux') return;
  // Node.js reads certificates (NODE_EXTRA_CA_CERTS) in a thread, from a file that commands would inherit. This waits until it has
  // closed the file. Otherwise both would close it, and the second time it could be the journal, which has the number by then.
  // Older releases do not have the function, and read certificates only for the first connection.
  tls.getCACertificates?.('default');
  for (const descriptor of inheritable()) closeSync(descriptor);
}

/** What commands would inherit. */
export function inheritable(): number[] {
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter((descriptor) => descriptor >= FIRST && (flagsOf(descriptor) & CLOSED_FOR_COMMANDS) === 0);
}

/** One that is closed already counts as closed for commands: that of the folder that was read. */
function flagsOf(descriptor: number): number {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1'))?.[1];
    return Number.parseInt(flags ?? '0', 8);
  } catch {
    return CLOSED_FOR_COMMANDS;
  }
}
