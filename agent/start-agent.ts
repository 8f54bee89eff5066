import { randomBytes } from 'node:crypto';
import type { ProfileName } from '../lambdas/agents/agent-terms.ts';
import { AgentError } from './agent-error.ts';
import { AgentFolder, type Identity } from './agent-folder.ts';
import type { AgentLog } from './agent-log.ts';
import { AgentProgram, type Ending } from './agent-program.ts';
import { type AgentConfig, environmentOf, profileConfig, readConfig } from './config.ts';
import { lockFolder } from './folder-lock.ts';
import { Journal } from './journal.ts';
import { ResultSpool } from './result-spool.ts';
import { RuntimeClient } from './runtime-client.ts';
import { type CommandUser, commandUser } from './sandbox/command-user.ts';
import { type Probe, probeProfiles } from './sandbox/probe.ts';
import { ServerClock } from './server-clock.ts';
import type { System } from './system.ts';

interface Start {
  dir: string;
  version: string;
  system: System;
  log: AgentLog;
  /** Called with the running agent, for signals of the process. */
  started(agent: AgentProgram): void;
}

/** Runs the agent of a folder until it has drained, or another process replaces it. */
export async function startAgent({ dir, version, system, log, started }: Start): Promise<Ending> {
  const folder = new AgentFolder(dir);
  const identity = folder.readIdentity();
  folder.assertPrivate();
  const key = folder.readKey();
  const config = await readConfig(folder.config);
  folder.create();
  const release = lockFolder(folder.lock);
  const journal = Journal.open(folder.journal, system.wall());
  try {
    const user = commandUser(config.user);
    const profiles = await profilesOf(folder, identity, config, user, log);
    const bootId = randomBytes(12).toString('hex');
    const clock = new ServerClock(system);
    const client = new RuntimeClient(identity.url, { key, keyId: identity.agent_id, bootId }, clock, system);
    const agent = new AgentProgram({
      client,
      folder,
      agentFolder: folder.realPath,
      identity,
      config,
      user,
      profiles,
      journal,
      spool: new ResultSpool(folder.spool),
      clock,
      system,
      log,
      bootId,
      version,
    });
    started(agent);
    return await agent.run();
  } finally {
    journal.close();
    release();
  }
}

/** The profiles that are available on this host and belong to the environments of the agent. */
async function profilesOf(
  folder: AgentFolder,
  identity: Identity,
  config: AgentConfig,
  user: CommandUser | undefined,
  log: AgentLog,
): Promise<ProfileName[]> {
  const { writable } = profileConfig(config, 'prod-standard');
  const probed = { folder: folder.realPath, hiddenFile: folder.file('agent.key'), writable, user };
  const probes = await probeProfiles(probed);
  const offered = offeredProfiles(probes, identity, config);
  for (const probe of probes) {
    const isWanted = servedEnvironments(identity, config).includes(environmentOf(probe.profile));
    if (!probe.holds && isWanted)
      log.warn(`profile ${probe.profile} is not available on this host: ${probe.missing.join('; ')}`);
  }
  if (offered.length > 0) return offered;
  throw new AgentError('no profile is available on this host, so it could run nothing; run: countersign agent doctor');
}

const servedEnvironments = (identity: Identity, config: AgentConfig) =>
  identity.environments.filter((environment) => config.environments?.includes(environment) ?? true);

/**
 * `dev-flex` does not protect the folder of the agent: a command could read its key. So an agent that also serves prod or
 * staging does not offer it.
 */
function offeredProfiles(probes: readonly Probe[], identity: Identity, config: AgentConfig): ProfileName[] {
  const environments = servedEnvironments(identity, config);
  const isDevOnly = environments.every((environment) => environment === 'dev');
  return probes
    .filter(({ holds, profile }) => holds && environments.includes(environmentOf(profile)))
    .map(({ profile }) => profile)
    .filter((profile) => profile !== 'dev-flex' || isDevOnly);
}
