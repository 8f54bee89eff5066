import { startSession } from '../../connectors/session/session.ts';
import { CountersignError } from '../../run/errors.ts';
import type { RunDraft } from '../../run/run-draft.ts';
import type { Worker } from '../worker.ts';

/**
 * The input of an `agent.session` step with the address of its configuration: that of the step, or that of the run. What is
 * proposed, approved and sent names the address, so a configuration that changes later changes nothing of it.
 */
export async function resolveSession({ definitions }: Worker, { run }: RunDraft, input: unknown): Promise<unknown> {
  const given = input as { configuration?: string };
  const name = given.configuration ?? run.configuration;
  if (name === undefined) {
    throw unresolved('neither the step nor the automation of the run names a configuration; add one to either');
  }
  const found = await definitions.configuration(run.tenant, name);
  if (!found) throw unresolved(`there is no configuration ${name}; create it: countersign configurations`);
  const { session, instructions } = found;
  if (session.provider !== 'a2a') {
    throw unresolved(`the configuration ${name} names an enrolled agent; sessions run with the provider a2a`);
  }
  const { url, connection } = session;
  const resolved = { url, connection, ...(instructions && { instructions }) };
  // With its defaults: everything that the session gets follows from what is stored.
  return startSession.parse({ ...given, configuration: name, resolved });
}

const unresolved = (message: string) => new CountersignError('CONFIGURATION_UNRESOLVED', message);
