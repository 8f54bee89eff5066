import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandEnd, endedByFilter, startCommand } from '../../agent/sandbox/command-process.ts';
import { commandUser } from '../../agent/sandbox/command-user.ts';
import { inheritable } from '../../agent/sandbox/inherited-descriptors.ts';
import { DEFAULT_LIMITS } from '../../agent/sandbox/isolation.ts';
import { probeProfiles } from '../../agent/sandbox/probe.ts';
import { bubblewrapPath, type SandboxOptions, sandboxedCommand } from '../../agent/sandbox/sandboxed-command.ts';
import { seccompProgram } from '../../agent/sandbox/seccomp.ts';
import type { ProfileName } from '../../lambdas/agents/agent-terms.ts';
import { visibleFolder } from './visible-folder.ts';

/** Where commands can see it: the folders for temporary files are new ones in a sandbox. */
const folder = visibleFolder('sandbox');
const agentFolder = join(folder, 'agent');
const writable = join(folder, 'writable');
beforeAll(() => {
  for (const each of [agentFolder, writable]) mkdirSync(each);
  // For the user of the commands, if this process is root.
  chmodSync(folder, 0o755);
  chmodSync(writable, 0o777);
  writeFileSync(join(agentFolder, 'agent.key'), 'the key');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const entriesOf = (path: string): string[] => {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
};
const ownerOf = (pid: string): number | undefined => statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid;

/** Commands never run as root. */
const user = commandUser(undefined);
const hasBubblewrap = bubblewrapPath() !== undefined;

async function run(
  profile: ProfileName,
  script: string,
  further: Partial<SandboxOptions> = {},
): Promise<CommandEnd & { output: string }> {
  const options = {
    limits: DEFAULT_LIMITS,
    writable: [writable],
    hidden: [agentFolder],
    inputs: [Buffer.from('from a descriptor')],
    user,
    ...further,
  };
  const command = sandboxedCommand(profile, { executable: '/bin/sh', args: ['-c', script] }, options);
  const started = startCommand(command, { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', ONLY: 'this' });
  let output = '';
  for (const stream of [started.stdout, started.stderr]) {
    stream.on('data', (bytes: Buffer) => {
      output += bytes;
    });
  }
  return { ...(await started.ended), output };
}

const ISOLATED = ['prod-critical', 'prod-standard', 'staging-standard'] as const;

describe.runIf(hasBubblewrap)(
  'acceptance: sandbox policies enforce environment-specific restrictions: isolation',
  () => {
    it.each(ISOLATED)(
      '%s lets a command write to /tmp only, and what it writes is gone afterwards',
      async (profile) => {
        const { output } = await run(
          profile,
          `echo x > /tmp/mine && echo written; echo x > ${folder}/other || echo refused`,
        );
        expect(output).toContain('written');
        expect(output).toContain('refused');
        expect(output).toContain('Read-only file system');
        expect((await run(profile, 'ls /tmp')).output).not.toContain('mine');
      },
    );

    it('prod-standard lets a command change the folders of the configuration, and prod-critical does not', async () => {
      expect((await run('prod-standard', `echo x > ${writable}/file && echo written`)).output).toBe('written\n');
      expect((await run('prod-critical', `echo x > ${writable}/file`)).output).toMatch(/Read-only/);
    });

    it.each(ISOLATED)(
      '%s hides the folder of the agent, other processes and the environment of the agent',
      async (profile) => {
        const { output } = await run(profile, `cat ${agentFolder}/agent.key; ls /proc | grep -c '^[0-9]'; env`);
        expect(output).toMatch(/No such file/);
        expect(Number(/^\d+$/m.exec(output)?.[0])).toBeLessThan(8);
        const names = output.match(/^\w+(?==)/gm) ?? [];
        expect(names.filter((name) => !['PATH', 'ONLY', 'PWD', 'OLDPWD', 'SHLVL', '_'].includes(name))).toEqual([]);
      },
    );

    it.each(ISOLATED)('%s hides files, folders within hidden folders, and what links lead to', async (profile) => {
      const inner = join(writable, 'inner');
      const [file, link, nested] = [join(folder, 'file'), join(folder, 'link'), join(inner, 'nested')];
      mkdirSync(inner, { recursive: true });
      for (const each of [file, nested]) writeFileSync(each, 'secret');
      rmSync(link, { force: true });
      symlinkSync(file, link);
      const hidden = [writable, inner, nested, link];
      const { output, exitCode } = await run(profile, `cat ${file} ${link} ${nested}; ls ${writable}; exit 4`, {
        hidden,
      });
      expect([exitCode, output.includes('secret')]).toEqual([4, false]);
      expect(output).toMatch(/nested: No such file/);
    });

    it.runIf(existsSync('/run/user')).each(ISOLATED)(
      '%s hides the sockets of users, through which processes outside could be started',
      async (profile) => {
        const { output } = await run(profile, 'grep " /run/user " /proc/self/mounts');
        expect(output).toMatch(/^tmpfs \/run\/user tmpfs ro\b/);
      },
    );

    it.each(ISOLATED)('%s shows no settings of the kernel as writable, and no devices of the host', async (profile) => {
      // Opens only, and writes nothing: these are settings of the machine that runs this test.
      const open = (path: string) => `(: >> ${path}) 2>/dev/null && echo "opened ${path}"`;
      const attacks = [
        ...['/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/sys/kernel/mm/transparent_hugepage/enabled'].map(
          open,
        ),
        'mknod /tmp/disk b 8 0 2>/dev/null && echo "made a device"',
        'ls /dev | grep -E "^(sd|vd|nvme|mem|kmsg|fuse|kvm)"',
        'exit 0',
      ];
      expect((await run(profile, attacks.join('\n'))).output).toBe('');
    });

    it.each(ISOLATED)(
      '%s bounds what a command stores in memory by writing files, and /dev is read-only',
      async (profile) => {
        const limits = { ...DEFAULT_LIMITS, fileMb: 4 };
        const fill = (place: string) =>
          `for i in 1 2 3; do head -c 3000000 /dev/zero > ${place}/$i; done; rm -f ${place}/*`;
        const { output } = await run(profile, `${fill('/tmp')}; ${fill('/dev/shm')}; (: > /dev/file) || exit 3`, {
          limits,
        });
        expect(output.match(/No space left on device/g)).toHaveLength(4);
        expect(output).toMatch(/\/dev\/file: Read-only/);
      },
    );

    it.each(ISOLATED)(
      '%s ends everything when it is killed, also what ignores SIGTERM or left the session',
      async (profile) => {
        // Another run of this test on the same machine has another number.
        const seconds = 1_000_000 + process.pid;
        const sleeps = `sleep ${seconds}`;
        const script = `trap 'echo ignored' TERM; (setsid ${sleeps} &); ${sleeps} & echo ready; while :; do wait; done`;
        const options = { limits: DEFAULT_LIMITS, writable: [], hidden: [], inputs: [], user };
        const command = sandboxedCommand(profile, { executable: '/bin/sh', args: ['-c', script] }, options);
        const started = startCommand(command, { PATH: '/usr/bin:/bin' });
        const says = () =>
          new Promise((resolve) => started.stdout.once('data', (text: Buffer) => resolve(String(text))));
        expect(await says()).toBe('ready\n');
        const answer = says();
        started.terminate();
        expect(await answer).toBe('ignored\n');
        const find = `pgrep -cf "[s]leep ${seconds}"`;
        expect(Number((await run('dev-flex', find)).output)).toBeGreaterThanOrEqual(2);
        started.kill();
        await started.ended;
        await expect.poll(async () => (await run('dev-flex', find)).output).toBe('0\n');
      },
    );

    it.each(ISOLATED)('%s gives no capabilities and no way to gain privileges', async (profile) => {
      const { output } = await run(profile, 'grep -E "^(NoNewPrivs|Seccomp|CapEff):" /proc/self/status');
      expect(output.replace(/\t/g, '')).toBe('CapEff:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n');
    });

    it('prod-critical has no network, and the other profiles have it', async () => {
      const interfaces = 'tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " \\n"';
      expect((await run('prod-critical', interfaces)).output).toBe('lo');
      const { output } = await run('prod-standard', interfaces);
      expect(output.length).toBeGreaterThanOrEqual('lo'.length);
      expect((await run('prod-critical', 'readlink /proc/self/ns/net')).output).not.toBe(
        (await run('prod-standard', 'readlink /proc/self/ns/net')).output,
      );
    });

    it('prod-critical ends a command that attacks the kernel; the other profiles refuse the call', async () => {
      const attack = await run('prod-critical', 'exec unshare -m true');
      expect([endedByFilter(attack), attack.exitCode]).toEqual([true, 159]);
      const refused = await run('prod-standard', 'exec unshare -m true');
      expect([endedByFilter(refused), refused.output]).toEqual([false, expect.stringContaining('not permitted')]);
    });

    it('nothing that a command started runs after it', async () => {
      const { exitCode } = await run('staging-standard', '(setsid sleep 876 &) ; exit 0');
      expect(exitCode).toBe(0);
      expect((await run('dev-flex', 'pgrep -f "sleep 87[6]" || echo none')).output).toBe('none\n');
    });
  },
);

it('every profile is available on a host with bubblewrap, and only dev-flex on others', async () => {
  const probes = await probeProfiles({
    folder: agentFolder,
    hiddenFile: join(agentFolder, 'agent.key'),
    writable: [],
    user,
  });
  const held = probes.filter(({ holds }) => holds).map(({ profile }) => profile);
  expect(held).toEqual(hasBubblewrap ? [...ISOLATED, 'dev-flex'] : ['dev-flex']);
});

describe('in every profile', () => {
  const profiles: ProfileName[] = hasBubblewrap ? [...ISOLATED, 'dev-flex'] : ['dev-flex'];

  it.each(profiles)('%s limits the processes of a command, also if the agent runs as root', async (profile) => {
    // The kernel counts all processes of the user. The loop is bounded, in case nothing stops it.
    const uid = user?.uid ?? process.getuid?.();
    const others = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && ownerOf(name) === uid);
    const tasks = others.flatMap((pid) => entriesOf(`/proc/${pid}/task`));
    const limits = { ...DEFAULT_LIMITS, processes: tasks.length + 20 };
    const script = 'i=0; while [ $i -lt 200 ]; do sleep 2 & i=$((i+1)); done; echo all';
    const { output, exitCode } = await run(profile, script, { limits });
    expect([output.includes('all'), exitCode === 0]).toEqual([false, false]);
    expect(output).toMatch(/fork/);
  });

  it.each(profiles)('%s does not run commands as root', async (profile) => {
    expect((await run(profile, 'id -u')).output).not.toBe('0\n');
  });

  it.each(profiles)('%s gives a command no file descriptors but its own', async (profile) => {
    // 3 is the folder that it lists. An agent closes what it inherits; this process does not.
    const { output } = await run(profile, 'ls /proc/self/fd');
    const inherited = inheritable().map(String);
    expect(output.split('\n').filter((each) => !inherited.includes(each))).toEqual(['0', '1', '2', '3', '5', '']);
  });

  it.each(profiles)('%s passes arguments as they are, exit codes and descriptors, and limits', async (profile) => {
    const { output, exitCode } = await run(profile, 'cat <&5; echo; ulimit -c; ulimit -n; exit 7');
    expect([output, exitCode]).toEqual([`from a descriptor\n0\n${DEFAULT_LIMITS.openFiles}\n`, 7]);
    const odd = ['$(touch x)', '; echo no', '"', "'", '*', ''];
    const options = { limits: DEFAULT_LIMITS, writable: [], hidden: [], inputs: [], user };
    const command = sandboxedCommand(profile, { executable: '/usr/bin/printf', args: ['[%s]', ...odd] }, options);
    const started = startCommand(command, {});
    let printed = '';
    started.stdout.on('data', (bytes: Buffer) => {
      printed += bytes;
    });
    await started.ended;
    expect(printed).toBe(odd.map((each) => `[${each}]`).join(''));
  });
});

it('a process that the host cannot start is an error at once, and not an unhandled event later', async () => {
  expect(() => startCommand({ file: '/no/such/shell', args: [], descriptors: [] }, {})).toThrow(/could not start/);
  await new Promise((resolve) => setImmediate(resolve));
});

it('a filter checks the architecture first and ends with a decision', () => {
  for (const architecture of ['x64', 'arm64'] as const) {
    const program = seccompProgram('strict', architecture);
    expect(program.length % 8).toBe(0);
    expect(program.readUInt32LE(4)).toBe(4);
    expect(program.readUInt32LE(program.length - 4)).toBe(0x7fff0000);
  }
});
