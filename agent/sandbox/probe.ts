import { accessSync, constants, readFileSync } from 'node:fs';
import { PROFILE_NAMES, type ProfileName } from '../../lambdas/agents/agent-terms.ts';
import { type CommandProcess, startCommand } from './command-process.ts';
import type { CommandUser } from './command-user.ts';
import { DEFAULT_LIMITS, ISOLATION, type Isolation } from './isolation.ts';
import { bubblewrapPath, sandboxedCommand } from './sandboxed-command.ts';
import { isSeccompArchitecture } from './seccomp.ts';

export type Probe = { profile: ProfileName; holds: true } | { profile: ProfileName; holds: false; missing: string[] };

/** Whose commands, and what they must not see. */
export interface ProbedHost {
  /** The folder of the agent, and a file in it. */
  folder: string;
  hiddenFile: string;
  /** What the configuration lets commands change. */
  writable: readonly string[];
  user: CommandUser | undefined;
}

/** Prints what a command in the sandbox can do. Reads only files, so that it needs nothing but a shell. */
const FACTS = [
  'while read -r name value; do case "$name" in NoNewPrivs:|Seccomp:|CapEff:) echo "$name$value";; esac; done < /proc/self/status',
  'lines=0; while read -r line; do lines=$((lines+1)); done < /proc/net/dev; echo "interfaces:$((lines-2))"',
  'while read -r device place type options; do case "$place" in /) echo "root:$options";; /proc) echo "proc:$options";; esac; done < /proc/self/mounts',
  '(: > /tmp/probe) 2>/dev/null && echo "tmp:writable"',
  '[ -e "$1" ] && echo "agent:visible"',
  'exit 0',
].join('\n');
const PROBE_MAX_MS = 10_000;

/** Runs a command in the sandbox of each profile and checks that the isolation is as it should be. */
export function probeProfiles(host: ProbedHost): Promise<Probe[]> {
  return Promise.all(PROFILE_NAMES.map((profile) => probe(profile, host)));
}

async function probe(profile: ProfileName, host: ProbedHost): Promise<Probe> {
  const isolation = ISOLATION[profile];
  const before = isolation.kind === 'namespaces' ? missingParts() : [];
  if (before.length > 0) return { profile, holds: false, missing: before };
  const { facts, complaint } = await factsOf(profile, host);
  if (facts === undefined) return { profile, holds: false, missing: [reasonFor(complaint)] };
  const unlimited = !(await limitsProcesses(profile, host)) && 'commands could start any number of processes';
  const wrong = [unlimited, ...(isolation.kind === 'namespaces' ? notIsolated(facts, isolation) : [])].filter(
    (problem) => problem !== false,
  );
  return wrong.length === 0 ? { profile, holds: true } : { profile, holds: false, missing: wrong };
}

function notIsolated(facts: string, { network }: Extract<Isolation, { kind: 'namespaces' }>): (string | false)[] {
  return [
    !facts.includes('NoNewPrivs:1') && 'commands could gain privileges',
    !facts.includes('Seccomp:2') && 'the seccomp filter is not active',
    !facts.includes('CapEff:0000000000000000') && 'commands would have capabilities of root',
    !/^root:ro\b/m.test(facts) && 'commands could write to the file system of the host',
    /^proc:(?!ro\b)/m.test(facts) && 'commands could change settings of the kernel',
    !facts.includes('tmp:writable') && 'commands could not write to /tmp',
    facts.includes('agent:visible') && 'commands could read the key of the agent',
    !network && !facts.includes('interfaces:1') && 'commands would have network interfaces of the host',
  ];
}

async function factsOf(profile: ProfileName, host: ProbedHost): Promise<{ facts?: string; complaint: string }> {
  const { exitCode, stdout, stderr } = await runScript(profile, [FACTS, 'sh', host.hiddenFile], host);
  return exitCode === 0 ? { facts: stdout, complaint: '' } : { complaint: stderr };
}

/** Some shells name the limit `-p`. */
const START_ONE_TOO_MANY = 'ulimit -u 1 2>/dev/null || ulimit -p 1 2>/dev/null || echo unlimited; (echo unlimited)';

/** Whether the kernel refuses processes above the limit: it does not for root, and not in every container. */
async function limitsProcesses(profile: ProfileName, host: ProbedHost): Promise<boolean> {
  // A shell that cannot start a process says so. Some try again for seconds.
  const { stdout, stderr } = await runScript(profile, [START_ONE_TOO_MANY], host, (started) =>
    started.stderr.once('data', () => started.kill()),
  );
  return stderr !== '' && !stdout.includes('unlimited');
}

async function runScript(
  profile: ProfileName,
  script: readonly string[],
  { folder, writable, user }: ProbedHost,
  watch: (started: CommandProcess) => void = () => {},
): Promise<{ exitCode: number | null; stdout: string; stderr: string }> {
  const command = { executable: '/bin/sh', args: ['-c', ...script] };
  const options = { limits: DEFAULT_LIMITS, writable, hidden: [folder], inputs: [], user };
  const started = startCommand(sandboxedCommand(profile, command, options), { PATH: '/usr/bin:/bin' });
  const output = { stdout: '', stderr: '' };
  started.stdout.on('data', (bytes: Buffer) => {
    output.stdout += bytes;
  });
  started.stderr.on('data', (bytes: Buffer) => {
    output.stderr += bytes;
  });
  watch(started);
  const giveUp = setTimeout(() => started.kill(), PROBE_MAX_MS);
  try {
    const { exitCode } = await started.ended;
    return { exitCode, ...output };
  } finally {
    clearTimeout(giveUp);
  }
}

function missingParts(): string[] {
  if (process.platform !== 'linux') return [`isolation needs Linux, and this is ${process.platform}`];
  if (!isSeccompArchitecture(process.arch)) return [`there is no seccomp filter for ${process.arch}; use x64 or arm64`];
  const path = bubblewrapPath();
  if (path === undefined) return ['bubblewrap is not installed; run: apt-get install bubblewrap (or dnf, apk, zypper)'];
  if (!isExecutable(path)) return [`${path} is not executable for this user; run: chmod 755 ${path}`];
  return [];
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** What to change on the host so that bubblewrap can isolate a command. */
function reasonFor(complaint: string): string {
  const said = complaint.trim().split('\n').at(-1) ?? '';
  if (readSetting('/proc/sys/kernel/apparmor_restrict_unprivileged_userns') === '1') {
    return `AppArmor blocks user namespaces (${said}); load a profile for bwrap, or run: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`;
  }
  if (readSetting('/proc/sys/kernel/unprivileged_userns_clone') === '0') {
    return `the kernel blocks user namespaces (${said}); run: sysctl -w kernel.unprivileged_userns_clone=1`;
  }
  if (readSetting('/proc/sys/user/max_user_namespaces') === '0') {
    return `the kernel allows no user namespaces (${said}); run: sysctl -w user.max_user_namespaces=10000`;
  }
  if (/mount proc/.test(said)) {
    return `the container hides parts of /proc (${said}); start it with --security-opt systempaths=unconfined, or run the agent on the host`;
  }
  if (/Operation not permitted|No permissions/.test(said)) {
    return `bubblewrap may not create namespaces (${said}); in a container, see docs/agents.md, "In a container"; or run the agent on the host`;
  }
  return `bubblewrap cannot isolate a command: ${said || 'it ended without a message'}`;
}

function readSetting(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1').trim();
  } catch {
    return undefined;
  }
}
