import { execFileSync, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { AgentError } from '../agent-error.ts';

/** Who runs commands, if it is not the user of the agent. */
export interface CommandUser {
  name: string;
  uid: number;
  gid: number;
}

/** Exists on every Linux and owns nothing. */
export const DEFAULT_COMMAND_USER = 'nobody';
const ROOT = 0;

/**
 * Commands never run as root: the kernel does not limit the processes of root, and services of the host do what root asks
 * them through their sockets, also without capabilities. So an agent that runs as root needs another user for them.
 * Undefined: they run as the user of the agent.
 */
export function commandUser(name: string | undefined, own = process.getuid?.()): CommandUser | undefined {
  if (own !== ROOT) {
    if (name === undefined || idOf('-u', name) === own) return undefined;
    throw new AgentError(`user: only an agent that runs as root can run commands as ${name}; remove it`);
  }
  const chosen = name ?? DEFAULT_COMMAND_USER;
  const user = { name: chosen, uid: idOf('-u', chosen), gid: idOf('-g', chosen) };
  if (user.uid !== ROOT) return user;
  throw new AgentError('user: commands do not run as root, because the kernel does not limit it; name another user');
}

function idOf(option: '-u' | '-g', name: string): number {
  try {
    return Number(execFileSync('id', [option, '--', name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  } catch (cause) {
    throw new AgentError(`user: this host has no user ${name}; create it (useradd --system ${name})`, { cause });
  }
}

/** Why a command cannot be run by its user, and what to do. */
export function notExecutable(path: string, user: CommandUser | undefined): string | undefined {
  try {
    accessSync(path, constants.X_OK);
  } catch {
    return `${path} is not an executable file on this host`;
  }
  if (user === undefined) return undefined;
  const { name, uid, gid } = user;
  const { status } = spawnSync('/bin/sh', ['-c', '[ -x "$1" ]', 'sh', path], { uid, gid, cwd: '/' });
  // Any other status says nothing about the file.
  if (status !== 1) return undefined;
  return `${name} may not execute ${path}, and an agent of root runs commands as ${name}; run the agent as another user, name one who may execute it in agent.yaml (user: …), or let everybody enter its folders and execute it (chmod o+rx)`;
}

const PRINT_FOUND = 'for path; do if [ -e "$path" ]; then printf "%s\\0" "$path"; fi; done';

/** Those of the paths that the user can reach. Only the kernel knows: owners, modes and access lists decide. */
export function reachable(paths: readonly string[], user: CommandUser | undefined): string[] {
  if (user === undefined || paths.length === 0) return [...paths];
  const { uid, gid } = user;
  const { stdout, status } = spawnSync('/bin/sh', ['-c', PRINT_FOUND, 'sh', ...paths], { uid, gid, cwd: '/' });
  // All of them then: a path that cannot be hidden lets the sandbox fail, and shows nothing.
  return status === 0 ? stdout.toString('utf8').split('\0').filter(Boolean) : [...paths];
}
