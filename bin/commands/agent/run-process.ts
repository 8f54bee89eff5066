import { homedir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { AgentError } from '../../../agent/agent-error.ts';
import { logTo } from '../../../agent/agent-log.ts';
import type { AgentProgram } from '../../../agent/agent-program.ts';
import { closeInheritedDescriptors } from '../../../agent/sandbox/inherited-descriptors.ts';
import { startAgent } from '../../../agent/start-agent.ts';
import { machine } from '../../../agent/system.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { packageVersion } from '../../version.ts';
import { EXIT, type ExitCode, Failure } from '../failure.ts';

/** Where an agent is, if nobody says where. */
export const agentFolderOf = (given: string | undefined, environment: NodeJS.ProcessEnv): string =>
  given ?? (environment.COUNTERSIGN_AGENT_DIR || join(homedir(), '.countersign-agent'));

/** Runs an agent in this process until it has drained. */
export async function runAgentProcess(
  dir: string,
  json: boolean,
  terminal: Pick<Terminal, 'print'>,
): Promise<ExitCode> {
  const log = logTo(
    (line) => terminal.print(line),
    () => new Date().toISOString(),
    json,
  );
  closeInheritedDescriptors();
  let stop = () => {};
  try {
    const started = (agent: AgentProgram) => {
      stop = stopOnSignals(agent);
      setTimeout(releaseMemory, STARTED_MS).unref();
    };
    const ending = await startAgent({ dir, version: packageVersion(), system: machine, log, started });
    return ending === 'drained' ? EXIT.ok : EXIT.refused;
  } catch (error) {
    throw error instanceof AgentError ? new Failure(EXIT.failed, error.message, { cause: error }) : error;
  } finally {
    stop();
  }
}

const STARTED_MS = 3_000;

/** The start needs more memory than the work after it. V8 returns it only when the machine runs short. */
function releaseMemory(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}

/** The first signal drains the agent; a second one also stops its commands. */
function stopOnSignals(agent: AgentProgram): () => void {
  let signals = 0;
  const onSignal = (signal: NodeJS.Signals) => {
    signals += 1;
    if (signals === 1) agent.drain(signal);
    else agent.stopCommands(`the agent was stopped (${signal})`);
  };
  const names = ['SIGTERM', 'SIGINT'] as const;
  for (const name of names) process.on(name, onSignal);
  return () => {
    for (const name of names) process.off(name, onSignal);
  };
}
