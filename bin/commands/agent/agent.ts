import { baseUrl, type Call, type Command } from '../command.ts';
import { EXIT, Failure, UsageError } from '../failure.ts';

const dir = {
  dir: { value: 'DIR', description: 'the folder of the agent (COUNTERSIGN_AGENT_DIR; default ~/.countersign-agent)' },
};

const folderOf = async (call: Call): Promise<string> => {
  const { agentFolderOf } = await import('./run-process.ts');
  return agentFolderOf(call.option('dir'), call.environment);
};

/** A problem that the person can fix ends the command with its message. */
async function orFailure<Value>(work: Promise<Value>): Promise<Value> {
  const { AgentError } = await import('../../../agent/agent-error.ts');
  return work.catch((error) => {
    throw error instanceof AgentError ? new Failure(EXIT.failed, error.message, { cause: error }) : error;
  });
}

const enrol: Command = {
  name: 'agent enrol',
  args: ['URL'],
  description: 'enrol this host as an agent, with an enrolment token',
  details:
    'An owner or admin creates the token with countersign agents token. The agent makes its own key, which never leaves\n' +
    'this host, and pins the keys that sign assignments. Compare their fingerprints with those of the stack output, or pass\n' +
    '--fingerprint.\n' +
    'The token may be in COUNTERSIGN_ENROLMENT_TOKEN, so that it is not in the list of processes.',
  options: {
    token: { value: 'TOKEN', description: 'the enrolment token, which can be used once' },
    fingerprint: { value: 'SHA256', repeatable: true, description: 'refuse signing keys with other fingerprints' },
    ...dir,
  },
  offline: true,
  async run(call) {
    const token = call.option('token') ?? call.environment.COUNTERSIGN_ENROLMENT_TOKEN;
    if (!token)
      throw new UsageError(
        'pass --token TOKEN; an owner or admin creates one: countersign agents token NAME --environment ENV',
      );
    const [{ enrolAgent }, { machine }, { packageVersion }] = await Promise.all([
      import('../../../agent/enrol.ts'),
      import('../../../agent/system.ts'),
      import('../../version.ts'),
    ]);
    const folder = await folderOf(call);
    const enrolment = {
      url: baseUrl(call.arg(0), 'URL'),
      token,
      dir: folder,
      fingerprints: call.options('fingerprint'),
      version: packageVersion(),
    };
    const { identity, fingerprints } = await orFailure(enrolAgent(enrolment, machine));
    if (call.json) {
      call.printJson({ agent: identity.agent_id, name: identity.name, folder, fingerprints });
      return EXIT.ok;
    }
    const { terminal } = call;
    terminal.print(`enrolled as ${identity.name} (${identity.agent_id}) for ${identity.environments.join(', ')}`);
    terminal.print('assignments must be signed by a key with this fingerprint (SHA-256):');
    for (const fingerprint of fingerprints) terminal.print(`  ${fingerprint}`);
    terminal.note(`compare it with the output of the stack. Then edit ${folder}/agent.yaml, and run:`);
    terminal.note(`  countersign agent doctor --dir ${folder}\n  countersign agent run --dir ${folder}`);
    return EXIT.ok;
  },
};

const run: Command = {
  name: 'agent run',
  args: [],
  description: 'run the agent of this host in the foreground',
  details:
    'SIGTERM or Ctrl-C drains it: it finishes its commands, accepts no new ones, and ends. A second signal stops its\n' +
    'commands, too.\n' +
    'Exit code: 0 after a drain; 3 if another process uses the identity of this agent.',
  options: dir,
  offline: true,
  async run(call) {
    const { runAgentProcess } = await import('./run-process.ts');
    return runAgentProcess(await folderOf(call), call.json, call.terminal);
  },
};

const doctor: Command = {
  name: 'agent doctor',
  args: [],
  description: 'check the agent of this host: which profiles are available, and how to fix the others',
  details: 'Exit code 1 if there is an error.',
  options: dir,
  offline: true,
  async run(call) {
    const [{ examineAgent }, { machine }] = await Promise.all([
      import('../../../agent/doctor.ts'),
      import('../../../agent/system.ts'),
    ]);
    const examined = await orFailure(examineAgent(await folderOf(call), machine));
    if (call.json) call.printJson({ examined });
    else printExamined(call, examined);
    return examined.some(({ level }) => level === 'error') ? EXIT.failed : EXIT.ok;
  },
};

function printExamined(
  { terminal }: Call,
  examined: readonly { level: string; subject: string; finding: string }[],
): void {
  const width = Math.max(...examined.map(({ subject }) => subject.length));
  for (const { level, subject, finding } of examined) {
    const tone = level === 'ok' ? 'good' : level === 'error' ? 'bad' : 'waiting';
    terminal.print(`${terminal.paint(tone, level.padEnd(7))}  ${subject.padEnd(width)}  ${finding}`);
  }
}

const drain: Command = {
  name: 'agent drain',
  args: [],
  description: 'let the agent of this host finish its commands, then stop it',
  details: 'Returns when its process has ended. The same as SIGTERM to the process, or systemctl stop.',
  options: dir,
  offline: true,
  async run(call) {
    const { drainAgent } = await import('../../../agent/drain.ts');
    const folder = await folderOf(call);
    const pid = await drainAgent(folder);
    if (pid === undefined) {
      call.terminal.note(`no process runs the agent of ${folder}`);
      return EXIT.failed;
    }
    call.terminal.print(`process ${pid} has finished its work and ended`);
    return EXIT.ok;
  },
};

export const agent: readonly Command[] = [enrol, run, doctor, drain];
