import { COMMAND_TIMEOUT_MAX_SECONDS, runCommand } from '../../connectors/agent/command.ts';
import { startSession } from '../../connectors/session/session.ts';
import { TIMEOUT_DEFAULT_SECONDS } from '../../connectors/session/session-input.ts';
import type { Configuration } from '../../pipeline/configuration.ts';
import { CountersignError } from '../../run/errors.ts';
import type { RunDraft } from '../../run/run-draft.ts';
import type { Worker } from '../worker.ts';

/**
 * The input of an `agent.session` step with the address of its configuration: that of the step, or that of the run. What is
 * proposed, approved and sent names the address, so a configuration that changes later changes nothing of it.
 */
export async function resolveSession({ definitions }: Worker, draft: RunDraft, input: unknown): Promise<unknown> {
  const { run } = draft;
  const given = input as { configuration?: string; timeoutSeconds?: number };
  const name = given.configuration ?? run.configuration;
  if (name === undefined) {
    throw unresolved('neither the step nor the automation of the run names a configuration; add one to either');
  }
  const found = await definitions.configuration(run.tenant, name);
  if (!found) throw unresolved(`there is no configuration ${name}; create it: countersign configurations save FILE`);
  const { session, instructions, author } = found;
  if (author !== undefined) draft.addMaker(author);
  const place = session.provider === 'a2a' ? addressOf(session) : commandOf(name, session, given.timeoutSeconds);
  const resolved = { ...place, ...(instructions && { instructions }) };
  // With its defaults: everything that the session gets follows from what is stored.
  return startSession.parse({ ...given, configuration: name, resolved });
}

type Place<Provider> = Extract<Configuration['session'], { provider: Provider }>;

const addressOf = ({ url, connection }: Place<'a2a'>) => ({ url, connection });

/** The input of the command that is the session. The rules of its profile are checked before anything is started. */
function commandOf(name: string, { provider: _agent, ...command }: Place<'agent'>, seconds = TIMEOUT_DEFAULT_SECONDS) {
  if (command.command === undefined) {
    throw unresolved(`the configuration ${name} names no command; save it again with session.command`);
  }
  const timeoutSeconds = Math.min(seconds, COMMAND_TIMEOUT_MAX_SECONDS);
  return { command: runCommand.parse({ ...command, timeoutSeconds }) as Record<string, unknown> };
}

const unresolved = (message: string) => new CountersignError('CONFIGURATION_UNRESOLVED', message);
