import { accessSync, constants, readFileSync } from 'node:fs';
import { PROFILE_NAMES, type ProfileName } from '../../lambdas/agents/protocol.ts';
import { startCommand } from './command-process.ts';
import { DEFAULT_LIMITS, ISOLATION } from './isolation.ts';
import { bubblewrapPath, sandboxedCommand } from './sandboxed-command.ts';
import { isSeccompArchitecture } from './seccomp.ts';

export type Probe = { profile: ProfileName; holds: true } | { profile: ProfileName; holds: false; missing: string[] };

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
export function probeProfiles(folder: string, hiddenFile: string): Promise<Probe[]> {
  return Promise.all(PROFILE_NAMES.map((profile) => probe(profile, folder, hiddenFile)));
}

async function probe(profile: ProfileName, folder: string, hiddenFile: string): Promise<Probe> {
  const isolation = ISOLATION[profile];
  const before = isolation.kind === 'namespaces' ? missingParts() : [];
  if (before.length > 0) return { profile, holds: false, missing: before };
  const { facts, complaint } = await factsOf(profile, folder, hiddenFile);
  if (facts === undefined) return { profile, holds: false, missing: [reasonFor(complaint)] };
  if (isolation.kind === 'process-group') return { profile, holds: true };
  const wrong = [
    !facts.includes('NoNewPrivs:1') && 'commands could gain privileges',
    !facts.includes('Seccomp:2') && 'the seccomp filter is not active',
    !facts.includes('CapEff:0000000000000000') && 'commands would have capabilities of root',
    !/^root:ro\b/m.test(facts) && 'commands could write to the file system of the host',
    /^proc:(?!ro\b)/m.test(facts) && 'commands could change settings of the kernel',
    !facts.includes('tmp:writable') && 'commands could not write to /tmp',
    facts.includes('agent:visible') && 'commands could read the key of the agent',
    !isolation.network && !facts.includes('interfaces:1') && 'commands would have network interfaces of the host',
  ].filter((problem) => problem !== false);
  return wrong.length === 0 ? { profile, holds: true } : { profile, holds: false, missing: wrong };
}

async function factsOf(
  profile: ProfileName,
  folder: string,
  hiddenFile: string,
): Promise<{ facts?: string; complaint: string }> {
  const command = { executable: '/bin/sh', args: ['-c', FACTS, 'sh', hiddenFile] };
  const options = { limits: DEFAULT_LIMITS, writable: [], hidden: [folder], inputs: [] };
  const started = startCommand(sandboxedCommand(profile, command, options), { PATH: '/usr/bin:/bin' });
  const output = { stdout: '', stderr: '' };
  started.stdout.on('data', (bytes: Buffer) => {
    output.stdout += bytes;
  });
  started.stderr.on('data', (bytes: Buffer) => {
    output.stderr += bytes;
  });
  const giveUp = setTimeout(() => started.kill(), PROBE_MAX_MS);
  try {
    const { exitCode } = await started.ended;
    return exitCode === 0 ? { facts: output.stdout, complaint: '' } : { complaint: output.stderr };
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
