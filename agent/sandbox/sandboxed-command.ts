import { existsSync, realpathSync, statSync } from 'node:fs';
import type { ProfileName } from '../../lambdas/agents/agent-terms.ts';
import type { Command } from '../../lambdas/agents/protocol.ts';
import { type CommandUser, reachable } from './command-user.ts';
import { ISOLATION, type Isolation, type Limits } from './isolation.ts';
import { isSeccompArchitecture, seccompProgram } from './seccomp.ts';

/** What to spawn for a command. */
export interface SandboxedCommand {
  file: string;
  args: string[];
  /** File descriptors from 3 on: bytes that the process reads, or `status`, which bubblewrap writes. */
  descriptors: (Buffer | 'status')[];
  /** Absent: the user of the agent. */
  user?: CommandUser;
}

export interface SandboxOptions {
  limits: Limits;
  /** Folders that the command can change, if the profile allows it. */
  writable: readonly string[];
  /** Folders and files that the command sees empty: at least the folder of the agent, which has its key. */
  hidden: readonly string[];
  /** Bytes that the command itself reads from file descriptors, the first from `FIRST_OWN_DESCRIPTOR`. */
  inputs: readonly Buffer[];
  /** Who runs the command; undefined: the user of the agent. */
  user: CommandUser | undefined;
}

/** The first file descriptor of `inputs`, the same for each profile: 3 and 4 belong to bubblewrap. */
export const FIRST_OWN_DESCRIPTOR = 5;
const SECCOMP_DESCRIPTOR = 3;
const STATUS_DESCRIPTOR = 4;

/** A process that can use these controls the host. A read-only file system does not prevent a connection to a socket. */
const SOCKETS_OF_THE_HOST = [
  '/run/docker.sock',
  '/run/containerd/containerd.sock',
  '/run/crio/crio.sock',
  '/run/podman/podman.sock',
  '/run/k3s/containerd/containerd.sock',
  '/run/buildkit/buildkitd.sock',
  '/run/libvirt/libvirt-sock',
  '/var/lib/incus/unix.socket',
  '/var/lib/lxd/unix.socket',
  '/var/snap/lxd/common/lxd/unix.socket',
  // Of users: container engines without root, and their service manager, which starts processes outside of the sandbox.
  '/run/user',
  // Terminals that wait for input.
  '/run/screen',
];

/** Where `sh` of the limits and `bwrap` are. Commands have absolute paths; the search path of the agent does not matter. */
const SHELL = '/bin/sh';
const BUBBLEWRAP_PATHS = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/bin/bwrap', '/run/current-system/sw/bin/bwrap'];

export const bubblewrapPath = (): string | undefined => BUBBLEWRAP_PATHS.find((path) => existsSync(path));

/** The process of a command in its profile. Throws if the host cannot isolate it. */
export function sandboxedCommand(profile: ProfileName, command: Command, options: SandboxOptions): SandboxedCommand {
  const isolation = ISOLATION[profile];
  const { limits, inputs, user } = options;
  const own = [command.executable, ...command.args];
  const as = user && { user };
  if (isolation.kind === 'process-group') {
    const unused = [Buffer.alloc(0), Buffer.alloc(0)];
    return { file: SHELL, args: limited(limits, own, CLOSE_UNUSED), descriptors: [...unused, ...inputs], ...as };
  }
  const bubblewrap = bubblewrapPath();
  if (bubblewrap === undefined) throw new Error('bubblewrap is not installed');
  if (!isSeccompArchitecture(process.arch)) throw new Error(`there is no seccomp filter for ${process.arch}`);
  return {
    file: SHELL,
    args: limited(limits, [bubblewrap, ...bubblewrapArguments(isolation, options), '--', ...own]),
    descriptors: [seccompProgram(isolation.seccomp, process.arch), 'status', ...inputs],
    ...as,
  };
}

function bubblewrapArguments(
  { network, ephemeral, mayWrite }: Extract<Isolation, { kind: 'namespaces' }>,
  { writable, hidden, user, limits }: SandboxOptions,
): string[] {
  // They are in memory, and would otherwise be as large as half of it, each.
  const newFolder = (path: string) => ['--size', String(limits.fileMb * BYTES_IN_MB), '--tmpfs', path];
  return [
    '--unshare-all',
    ...(network ? ['--share-net'] : []),
    '--die-with-parent',
    '--new-session',
    ...['--cap-drop', 'ALL'],
    ...['--ro-bind', '/', '/'],
    ...['--dev', '/dev', ...newFolder('/dev/shm'), '--remount-ro', '/dev'],
    // Read-only, because the kernel lets root change its settings there even without capabilities.
    ...['--proc', '/proc', '--remount-ro', '/proc'],
    ...ephemeral.filter((path) => existsSync(path)).flatMap(newFolder),
    ...(mayWrite ? writable.flatMap((path) => ['--bind', path, path]) : []),
    ...hiding([...SOCKETS_OF_THE_HOST, ...hidden], user),
    ...['--chdir', '/tmp'],
    ...['--seccomp', String(SECCOMP_DESCRIPTOR)],
    ...['--json-status-fd', String(STATUS_DESCRIPTOR)],
  ];
}

/**
 * The command sees empty folders and files. What is within another hidden folder comes first: that one is read-only then.
 * What the user of the command cannot reach is hidden already, and bubblewrap cannot reach it either.
 */
function hiding(paths: readonly string[], user: CommandUser | undefined): string[] {
  const real = paths.filter((path) => existsSync(path)).map((path) => realpathSync(path));
  return reachable([...new Set(real)], user)
    .sort((one, other) => other.length - one.length)
    .flatMap((path) =>
      statSync(path).isDirectory() ? ['--tmpfs', path, '--remount-ro', path] : ['--ro-bind', '/dev/null', path],
    );
}

/**
 * Sets limits and becomes the command. The shell gets the command as parameters and never as text, so it interprets none of
 * it. Some shells name the limit of processes `-p`.
 */
const SET_LIMITS =
  'ulimit -c 0; ulimit -d "$1"; ulimit -u "$2" 2>/dev/null || ulimit -p "$2"; ulimit -n "$3"; ulimit -f "$4"; shift 4; ';
const BECOME = 'exec "$@"';
/** Without bubblewrap nobody uses its descriptors. */
const CLOSE_UNUSED = ` ${SECCOMP_DESCRIPTOR}<&- ${STATUS_DESCRIPTOR}<&-`;
const KB_IN_MB = 1024;
const BYTES_IN_MB = 1024 * 1024;
/** `ulimit -f` counts blocks of 512 bytes. */
const BLOCKS_IN_MB = 2048;

function limited({ memoryMb, processes, openFiles, fileMb }: Limits, own: readonly string[], close = ''): string[] {
  const values = [memoryMb * KB_IN_MB, processes, openFiles, fileMb * BLOCKS_IN_MB].map(String);
  return ['-c', `${SET_LIMITS}${BECOME}${close}`, 'sh', ...values, ...own];
}
