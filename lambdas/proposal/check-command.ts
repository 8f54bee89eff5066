import { builtInProfile, profileViolation } from '../agents/profiles.ts';
import { assignedCommand } from '../connectors/agent/command.ts';
import { type Clock, isoNow } from '../entry/ports.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { CountersignError } from '../run/errors.ts';
import { isAgentTool } from '../run/lease.ts';
import type { Run } from '../run/run.ts';
import { agentsAreEnabled, type TenantSettings } from '../run/settings/caps.ts';
import { AGENTS_ARE_OFF } from '../run/settings/flags.ts';
import { askedToWaitForFlag } from './asked-to-wait.ts';
import { containsUnknown } from './known-after-apply.ts';
import type { ProposedCall } from './propose-call.ts';

interface Checker {
  definitions: Pick<Definitions, 'profiles'>;
  clock: Clock;
}

/** Before people are asked, and again before each assignment: agents are switched on, and the profile allows the command. */
export async function checkCommand(
  checker: Checker,
  { run, settings }: { run: Pick<Run, 'tenant' | 'request'>; settings: TenantSettings },
  proposed: ProposedCall,
): Promise<void> {
  if (!isAgentTool(proposed.operation.tool)) return;
  if (!agentsAreEnabled(settings)) {
    const at = isoNow(checker.clock);
    throw askedToWaitForFlag('AGENTS_DISABLED', AGENTS_ARE_OFF, 'worker_orchestration.enabled', at);
  }
  checkRequested(run.request?.profile, proposed);
  await checkProfile(checker, run.tenant, proposed);
}

function checkRequested(requested: string | undefined, { parsed }: ProposedCall): void {
  const profile = parsed && assignedCommand(parsed.input).profile;
  if (requested === undefined || profile === undefined || profile === requested) return;
  throw new CountersignError(
    'COMMAND_NOT_ALLOWED',
    `the run was requested for the profile ${requested}, but this command has the profile ${profile}`,
  );
}

/** Throws if the lists of the profile forbid the command or its rollback. An argument that is not known yet is not checked. */
async function checkProfile(
  { definitions }: Pick<Checker, 'definitions'>,
  tenant: string,
  { operation, input, parsed }: Pick<ProposedCall, 'operation' | 'input' | 'parsed'>,
): Promise<void> {
  if (!isAgentTool(operation.tool) || !parsed || containsUnknown(input)) return;
  const { command, profile, rollback } = assignedCommand(parsed.input);
  const defined = await definitions.profiles(tenant);
  const lists = defined.find(({ name }) => name === profile) ?? builtInProfile(profile);
  const forbidden = profileViolation(lists, command);
  const rollbackForbidden = rollback && profileViolation(lists, rollback);
  if (!forbidden && !rollbackForbidden) return;
  const what = forbidden ? forbidden.message : `its rollback may not run: ${rollbackForbidden?.message}`;
  throw new CountersignError(
    'COMMAND_NOT_ALLOWED',
    `${what}; change the command, or ask an owner or admin to change the lists of ${profile}: countersign agents set-profile FILE`,
  );
}
