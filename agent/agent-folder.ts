import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { AGENT_ENVIRONMENTS } from '../lambdas/agents/agent-terms.ts';
import { SigningKey } from '../lambdas/agents/protocol.ts';
import { AgentError } from './agent-error.ts';

/** Who the agent is: what enrolment returned, and the keys that it pinned. */
export const Identity = z.strictObject({
  version: z.literal(1),
  url: z.string(),
  agent_id: z.string(),
  tenant: z.string(),
  name: z.string(),
  environments: z.array(z.enum(AGENT_ENVIRONMENTS)),
  network_segment: z.string().nullable(),
  signing_keys: z.array(SigningKey).min(1),
  enrolled_at: z.string(),
});
export type Identity = z.infer<typeof Identity>;

const OWNER_ONLY = { folder: 0o700, file: 0o600 } as const;
const OTHERS_CAN_WRITE = 0o022;
const ROOT = 0;

/** The folder of one agent: its key, identity, configuration, journal and results that were not yet delivered. */
export class AgentFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  get config(): string {
    return this.file('agent.yaml');
  }

  get keyFile(): string {
    return this.file('agent.key');
  }

  get identityFile(): string {
    return this.file('identity.json');
  }

  get journal(): string {
    return this.file('journal.jsonl');
  }

  get spool(): string {
    return this.file('spool');
  }

  get lock(): string {
    return this.file('agent.lock');
  }

  /** Without symbolic links, because a sandbox hides the real folder. */
  get realPath(): string {
    return realpathSync(this.path);
  }

  file(name: string): string {
    return join(this.path, name);
  }

  create(): void {
    mkdirSync(this.path, { recursive: true, mode: OWNER_ONLY.folder });
    mkdirSync(this.spool, { recursive: true, mode: OWNER_ONLY.folder });
  }

  /** The agent trusts what is here: which keys may sign, and what it has run. So nobody else may change it. */
  assertPrivate(): void {
    for (const path of [this.path, this.identityFile, this.journal, this.spool].filter((each) => existsSync(each))) {
      const { mode, uid } = statSync(path);
      if ((mode & OTHERS_CAN_WRITE) !== 0) {
        throw new AgentError(
          `other users can change ${path}, and with it what the agent trusts; run: chmod go-w ${path}, and enrol the agent again`,
        );
      }
      const own = process.getuid?.();
      if (own !== undefined && uid !== own && uid !== ROOT) {
        throw new AgentError(
          `${path} belongs to user ${uid}, who can change what the agent trusts; run the agent as that user, or: chown -R ${own} ${this.path}`,
        );
      }
    }
  }

  readIdentity(): Identity {
    const text = this.#read(this.identityFile);
    const { data } = Identity.safeParse(jsonOrUndefined(text));
    if (data) return data;
    throw new AgentError(`${this.identityFile} is damaged; enrol the agent again in an empty folder`);
  }

  writeIdentity(identity: Identity): void {
    writePrivate(this.identityFile, `${JSON.stringify(identity, null, 2)}\n`);
  }

  /** The private key of the agent. Nobody else may read it. */
  readKey(): KeyObject {
    const text = this.#read(this.keyFile);
    if ((statSync(this.keyFile).mode & 0o077) !== 0) {
      throw new AgentError(
        `other users can read ${this.keyFile}; run: chmod 600 ${this.keyFile}, and enrol the agent again`,
      );
    }
    return createPrivateKey(text);
  }

  createKey(): KeyObject {
    const { privateKey } = generateKeyPairSync('ed25519');
    writePrivate(this.keyFile, String(privateKey.export({ type: 'pkcs8', format: 'pem' })));
    return privateKey;
  }

  #read(file: string): string {
    try {
      return readFileSync(file, 'utf8');
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') {
        throw new AgentError(`cannot read ${file}: ${(cause as Error).message}`, { cause });
      }
      throw new AgentError(
        `there is no agent in ${this.path}; run: countersign agent enrol URL --token TOKEN --dir ${this.path}`,
        { cause },
      );
    }
  }
}

export function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Writes a file as a whole: after a crash it has the old or the new content. Only the user of the agent can read it. */
export function writePrivate(file: string, content: string): void {
  const draft = `${file}.new`;
  // A draft of a crash is left behind. `wx` does not follow a link that somebody put in its place.
  rmSync(draft, { force: true });
  const descriptor = openSync(draft, 'wx', OWNER_ONLY.file);
  try {
    writeFileSync(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  chmodSync(draft, OWNER_ONLY.file);
  renameSync(draft, file);
  syncFolder(dirname(file));
}

/** Makes new names in a folder durable. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
