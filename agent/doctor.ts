import { type KeyObject, randomBytes } from 'node:crypto';
import { AgentFolder, type Identity } from './agent-folder.ts';
import { type AgentConfig, environmentOf, readConfig } from './config.ts';
import { VaultSession } from './credentials/vault.ts';
import { lockHolder } from './folder-lock.ts';
import { sendRequest } from './http-request.ts';
import { RuntimeClient, RuntimeRefused } from './runtime-client.ts';
import { type CommandUser, commandUser, DEFAULT_COMMAND_USER } from './sandbox/command-user.ts';
import { probeProfiles } from './sandbox/probe.ts';
import { CORRECTION_MAX_MS, ServerClock } from './server-clock.ts';
import type { System } from './system.ts';

/** One thing that was examined. */
export interface Examined {
  subject: string;
  /** What is good, or what is wrong and how to fix it. */
  finding: string;
  level: 'ok' | 'warning' | 'error';
}

const TIMEOUT_MS = 10_000;
const ok = (subject: string, finding: string): Examined => ({ subject, finding, level: 'ok' });
const warning = (subject: string, finding: string): Examined => ({ subject, finding, level: 'warning' });
const wrong = (subject: string, finding: string): Examined => ({ subject, finding, level: 'error' });

/** Examines the folder of an agent and its host. Changes nothing. */
export async function examineAgent(dir: string, system: System): Promise<Examined[]> {
  const folder = new AgentFolder(dir);
  const identity = attempt(() => folder.readIdentity());
  const key = attempt(() => folder.readKey());
  const privacy = attempt(() => folder.assertPrivate());
  const config = await readConfig(folder.config).catch((error: Error) => error);
  const found = [
    identity instanceof Error ? wrong('identity', identity.message) : await examineIdentity(identity, key, system),
    key instanceof Error ? wrong('key', key.message) : ok('key', 'only this user can read it'),
    privacy instanceof Error ? wrong('folder', privacy.message) : ok('folder', 'only this user can change it'),
    config instanceof Error ? wrong('configuration', config.message) : ok('configuration', folder.config),
  ];
  const usable = config instanceof Error ? undefined : config;
  const user = attempt(() => commandUser(usable?.user));
  if (usable) found.push(examineUser(user, usable.user));
  if (identity instanceof Error) return found;
  const holder = lockHolder(folder.lock);
  return [
    ...found,
    holder
      ? ok('process', `${holder.pid} runs this agent`)
      : warning('process', `none runs this agent; run: countersign agent run --dir ${dir}`),
    ...(await examineRuntime(identity, system)),
    ...(user instanceof Error ? [] : await examineProfiles(folder, identity, usable, user)),
    ...(usable?.vault ? [await examineVault(usable.vault)] : []),
  ];
}

/**
 * Sends one signed request. The runtime checks its key, and then refuses it without a write: a process that has not
 * registered may not sync.
 */
async function examineIdentity(identity: Identity, key: KeyObject | Error, system: System): Promise<Examined> {
  const { name, agent_id: keyId, tenant, url } = identity;
  const shown = `${name} (${keyId}) of ${tenant}`;
  if (key instanceof Error) return ok('identity', shown);
  const bootId = randomBytes(12).toString('hex');
  const client = new RuntimeClient(url, { key, keyId, bootId }, new ServerClock(system), system);
  const refusal = await client.heartbeat({ boot_id: bootId, running: [], socket: false, violations: [] }).then(
    () => undefined,
    (error: unknown) => error,
  );
  // All other errors have findings of their own.
  if (!(refusal instanceof RuntimeRefused && refusal.code === 'SIGNATURE_INVALID')) return ok('identity', shown);
  return wrong(
    'identity',
    `${shown}: the runtime does not accept its key. The agent may have been removed; enrol it again with another --dir`,
  );
}

function examineUser(user: CommandUser | undefined | Error, name = DEFAULT_COMMAND_USER): Examined {
  if (user instanceof Error) return wrong('user', user.message);
  if (user === undefined) return ok('user', 'not root; commands run as the same user');
  return warning(
    'user',
    `the agent runs as root, which it does not need; commands run as ${name}. Use a user of its own (docs/agents.md, Install)`,
  );
}

function attempt<Value>(read: () => Value): Value | Error {
  try {
    return read();
  } catch (error) {
    return error as Error;
  }
}

async function examineRuntime({ url }: Identity, system: System): Promise<Examined[]> {
  const clock = new ServerClock(system);
  const sentAt = system.monotonic();
  try {
    const { status, headers } = await sendRequest({
      method: 'GET',
      url: new URL('/healthz', url),
      headers: {},
      timeoutMs: TIMEOUT_MS,
    });
    clock.learn(Date.parse(String(headers.date)), sentAt);
    const seconds = Math.round(Math.abs(clock.difference) / 1000);
    return [
      status === 200
        ? ok('runtime', url)
        : wrong('runtime', `${url} responds with ${status}; is it the URL of a Countersign stage?`),
      seconds * 1000 > CORRECTION_MAX_MS
        ? wrong('clock', `${seconds} s from the runtime's; the agent refuses to work. Synchronize it (NTP)`)
        : seconds > 5
          ? warning('clock', `${seconds} s from the runtime's; the agent corrects it. Synchronize it (NTP)`)
          : ok('clock', 'agrees with the runtime'),
    ];
  } catch (error) {
    return [wrong('runtime', `${url} does not respond: ${(error as Error).message}`)];
  }
}

async function examineProfiles(
  folder: AgentFolder,
  identity: Identity,
  config: AgentConfig | undefined,
  user: CommandUser | undefined,
): Promise<Examined[]> {
  const served = identity.environments.filter((environment) => config?.environments?.includes(environment) ?? true);
  const writable = config?.profiles['prod-standard']?.writable ?? [];
  const probed = { folder: folder.realPath, hiddenFile: folder.keyFile, writable, user };
  return (await probeProfiles(probed)).map((probe) => {
    const subject = `profile ${probe.profile}`;
    const environment = environmentOf(probe.profile);
    if (!served.includes(environment)) return ok(subject, `not offered: this agent does not serve ${environment}`);
    if (!probe.holds) return wrong(subject, probe.missing.join('; '));
    if (probe.profile === 'dev-flex' && served.some((each) => each !== 'dev')) {
      return warning(subject, 'not offered: it does not protect the key of an agent that also serves prod or staging');
    }
    return ok(subject, 'available on this host');
  });
}

/** Logs in and out again. */
async function examineVault(config: NonNullable<AgentConfig['vault']>): Promise<Examined> {
  const session = new VaultSession(config);
  try {
    await session.login();
    return (await session.revoke())
      ? ok('vault', `${config.address} accepts this agent`)
      : warning('vault', 'the token could not be revoked; give the role the policy "default"');
  } catch (error) {
    return wrong('vault', (error as Error).message);
  }
}
