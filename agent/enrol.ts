import { createPublicKey, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import type * as z from 'zod';
import type { EnrolResponse } from '../lambdas/agents/protocol.ts';
import { keyThumbprint } from '../lambdas/agents/request-signature.ts';
import { AgentError } from './agent-error.ts';
import { AgentFolder, type Identity, writePrivate } from './agent-folder.ts';
import { isPrivateConnection } from './config.ts';
import { RuntimeClient, RuntimeRefused, RuntimeUnavailable } from './runtime-client.ts';
import { ServerClock } from './server-clock.ts';
import type { System } from './system.ts';
import { fingerprintOf } from './verify-assignment.ts';

interface Enrolment {
  url: string;
  token: string;
  dir: string;
  /** The person who enrols the agent got these through another channel. Empty: the keys are shown for comparison. */
  fingerprints: readonly string[];
  version: string;
}

export interface Enrolled {
  identity: Identity;
  /** SHA-256 of each key that may sign assignments for this agent. */
  fingerprints: string[];
}

/** Creates the key of a new agent, exchanges the token for an identity, and pins the keys that sign assignments. */
export async function enrolAgent(
  { url, token, dir, fingerprints, version }: Enrolment,
  system: System,
): Promise<Enrolled> {
  if (!isPrivateConnection(new URL(url))) {
    throw new AgentError(`${url} is not encrypted; use https (http only for a runtime on this machine)`);
  }
  const folder = new AgentFolder(dir);
  if (existsSync(folder.identityFile)) {
    throw new AgentError(
      `${dir} already has the agent ${folder.readIdentity().name}; use another --dir for a new agent`,
    );
  }
  folder.create();
  folder.assertPrivate();
  // The key of an interrupted enrolment is used again, so that the runtime recognizes a repeated request.
  const key = existsSync(folder.keyFile) ? folder.readKey() : folder.createKey();
  const publicKey = createPublicKey(key);
  const caller = { key, keyId: keyThumbprint(publicKey), bootId: randomBytes(12).toString('hex') };
  const client = new RuntimeClient(url, caller, new ServerClock(system), system);
  const spki = publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
  const granted = await client.enrol({ token, public_key: spki, agent_version: version }).catch((error) => {
    if (error instanceof RuntimeRefused)
      throw new AgentError(`the runtime refused the enrolment: ${error.message}`, { cause: error });
    if (error instanceof RuntimeUnavailable)
      throw new AgentError(`${error.message}; run the command again`, { cause: error });
    throw error;
  });
  const received = pinnable(granted.signing_keys, fingerprints);
  const identity = identityOf(url, granted, new Date(system.wall()).toISOString());
  folder.writeIdentity(identity);
  if (!existsSync(folder.config)) writePrivate(folder.config, configFor(identity));
  return { identity, fingerprints: received };
}

/** The fingerprints of the keys, if all of them are expected. */
function pinnable(keys: Identity['signing_keys'], expected: readonly string[]): string[] {
  const received = keys.map((key) => {
    const fingerprint = fingerprintOf(key);
    if (fingerprint === undefined)
      throw new AgentError(`the runtime sent the key ${key.key_id}, which is not a public key`);
    return fingerprint;
  });
  if (received.length === 0) throw new AgentError('the runtime sent no key that signs assignments; nothing could run');
  const wanted = expected.map((each) => each.toLowerCase().replaceAll(':', ''));
  const unexpected = received.find((fingerprint) => wanted.length > 0 && !wanted.includes(fingerprint));
  if (unexpected !== undefined) {
    throw new AgentError(
      `the runtime sent a key with the fingerprint ${unexpected}, which is not the one you expect. Nothing was pinned. ` +
        'Check the URL and the fingerprint, delete the agent in the runtime, and ask for a new token',
    );
  }
  return received;
}

function identityOf(url: string, granted: z.infer<typeof EnrolResponse>, enrolled_at: string): Identity {
  const { agent_id, tenant, name, environments, network_segment, signing_keys } = granted;
  return { version: 1, url, agent_id, tenant, name, environments, network_segment, signing_keys, enrolled_at };
}

/** A configuration that works, with the rest as comments. */
const configFor = ({
  name,
  environments,
}: Identity): string => `# Configuration of the agent ${name}. Reference: docs/agents.md
capabilities: []           # what this host can do; steps name what they need
environments: [${environments.join(', ')}]
slots: 1                   # commands that run at once, up to 16

# Lists of this host, in addition to those of the runtime: a command must be allowed by both.
profiles: {}
#  prod-standard:
#    allow:
#      - { executable: /usr/bin/systemctl, args: [restart, "app-*"] }
#    writable: [/var/lib/app]
#    limits: { memoryMb: 2048, processes: 512, openFiles: 1024, fileMb: 1024 }

# Where the credentials are that steps name. Values never leave this host.
credentials: {}
#  orders-database:
#    vault: { database: orders-maintenance }
#    env: { username: PGUSER, password: PGPASSWORD }
#vault:
#  address: https://vault.example:8200
#  auth: { appRole: { roleId: "...", secretIdFile: /etc/countersign-agent/secret-id } }
`;
