import { readFileSync, statSync } from 'node:fs';
import * as z from 'zod';
import { AGENT_ENVIRONMENTS, Capabilities, PROFILE_NAMES, type ProfileName } from '../lambdas/agents/agent-terms.ts';
import { CommandPattern, isPlainPath, PROFILES } from '../lambdas/agents/profiles.ts';
import { didYouMean } from '../lambdas/entry/did-you-mean.ts';
import { AgentError } from './agent-error.ts';
import { DEFAULT_LIMITS, ISOLATION } from './sandbox/isolation.ts';

const Folder = z.string().refine(isPlainPath, 'use an absolute path without "//", "." or ".."');
const Variable = z
  .string()
  .regex(/^[A-Z_][A-Z0-9_]{0,100}$/, 'use a name like DB_PASSWORD')
  .refine(
    (name) => !/^(LD_|COUNTERSIGN_|PATH$|ENV$|BASH_ENV$)/.test(name),
    'changes how programs start; use another name',
  );
const Lists = z.array(CommandPattern).max(500);

const Profile = z.strictObject({
  /** In addition to the lists of the runtime: a command must be allowed by both. Absent: no limit of this agent. */
  allow: Lists.optional(),
  deny: Lists.default([]),
  /** Folders that commands can change, in a profile with a read-only file system. */
  writable: z.array(Folder).max(50).default([]),
  /** Folders and files that commands see empty. */
  hidden: z.array(Folder).max(50).default([]),
  limits: z
    .strictObject({
      memoryMb: z.int().min(16).max(1_048_576).default(DEFAULT_LIMITS.memoryMb),
      processes: z.int().min(1).max(100_000).default(DEFAULT_LIMITS.processes),
      openFiles: z.int().min(16).max(1_048_576).default(DEFAULT_LIMITS.openFiles),
      fileMb: z.int().min(1).max(1_048_576).default(DEFAULT_LIMITS.fileMb),
    })
    .default(DEFAULT_LIMITS),
});
export type ProfileConfig = z.infer<typeof Profile>;

const VaultPath = z
  .string()
  .regex(/^[\w.-]+(\/[\w.@-]+)*$/, 'use a path like secret/payments/database')
  .refine((path) => !path.split('/').includes('..'), 'must not contain ".."');

/** Field of the secret → name of the variable, or of the one that gets the number of a file descriptor. */
const Variables = z.record(z.string().min(1).max(200), Variable);

const Credential = z
  .strictObject({
    vault: z
      .strictObject({
        /** The path of a secret in the key-value store, version 2. */
        kv: VaultPath.optional(),
        /** A role of the database secrets engine: short-lived users. */
        database: VaultPath.optional(),
        /** Where the secrets engine is mounted; absent: `secret` for kv, `database` for database. */
        mount: VaultPath.optional(),
      })
      .refine(({ kv, database }) => (kv === undefined) !== (database === undefined), 'needs either kv or database')
      .optional(),
    secretsManager: z
      .strictObject({ arn: z.string().regex(/^arn:[\w-]+:secretsmanager:[\w-]+:\d{12}:secret:.+$/) })
      .optional(),
    env: Variables.default({}),
    fd: Variables.default({}),
  })
  .refine(
    ({ vault, secretsManager }) => (vault === undefined) !== (secretsManager === undefined),
    'needs either vault or secretsManager',
  )
  .refine(
    ({ env, fd }) => Object.keys({ ...env, ...fd }).length > 0,
    'env or fd must say which field becomes which variable, for example env: { password: PGPASSWORD }',
  );
export type CredentialConfig = z.infer<typeof Credential>;

/** TLS, or a process of this machine. */
export const isPrivateConnection = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || ['localhost', '127.0.0.1', '[::1]'].includes(hostname);

const Vault = z.strictObject({
  address: z
    .url({ protocol: /^https?$/ })
    .refine((url) => isPrivateConnection(new URL(url)), 'use https: secrets would be readable on the network'),
  namespace: z.string().max(200).optional(),
  auth: z.union([
    z.strictObject({
      appRole: z.strictObject({
        roleId: z.string().min(1),
        /** A file that only the user of the agent can read. */
        secretIdFile: Folder,
        mount: VaultPath.default('approle'),
      }),
    }),
    z.strictObject({
      aws: z.strictObject({
        role: z.string().min(1),
        region: z
          .string()
          .regex(/^[a-z0-9-]+$/)
          .default('us-east-1'),
        /** The value of `iam_server_id_header_value` in Vault, which prevents that another server uses the request. */
        serverId: z.string().optional(),
        mount: VaultPath.default('aws'),
      }),
    }),
  ]),
});
export type VaultConfig = z.infer<typeof Vault>;

export const AgentConfig = z
  .strictObject({
    capabilities: Capabilities.default([]),
    /** Which of the granted environments this host serves; absent: all. */
    environments: z.array(z.enum(AGENT_ENVIRONMENTS)).min(1).optional(),
    /** Who runs the commands of an agent that runs as root. */
    user: z
      .string()
      .regex(/^[a-z_][a-z0-9_-]{0,31}$/, 'use the name of a user of this host')
      .optional(),
    slots: z.int().min(1).max(16).default(1),
    profiles: z.partialRecord(z.enum(PROFILE_NAMES), Profile).default({}),
    credentials: z.record(z.string().regex(/^[\w.:-]{1,200}$/), Credential).default({}),
    vault: Vault.optional(),
  })
  .superRefine(({ profiles, credentials, vault }, context) => {
    for (const name of PROFILE_NAMES) {
      const isolation = ISOLATION[name];
      const mayWrite = isolation.kind === 'namespaces' && isolation.mayWrite;
      if (!mayWrite && (profiles[name]?.writable.length ?? 0) > 0) {
        const reason = isolation.kind === 'namespaces' ? 'writes nothing to the host' : 'has no read-only file system';
        context.addIssue({
          code: 'custom',
          path: ['profiles', name, 'writable'],
          message: `${name} ${reason}; remove it`,
        });
      }
    }
    for (const [id, credential] of Object.entries(credentials)) {
      if (credential.vault && !vault) {
        context.addIssue({
          code: 'custom',
          path: ['credentials', id, 'vault'],
          message: 'needs the section vault with address and auth',
        });
      }
    }
  });
export type AgentConfig = z.infer<typeof AgentConfig>;

export const profileConfig = (config: AgentConfig, name: ProfileName): ProfileConfig =>
  config.profiles[name] ?? Profile.parse({});

/** With these anybody could fetch the credentials of all commands, so no sandbox shows them. */
export const secretFiles = ({ vault }: AgentConfig): string[] =>
  vault && 'appRole' in vault.auth ? [vault.auth.appRole.secretIdFile] : [];

export const environmentOf = (name: ProfileName) => PROFILES[name].environment;

/** Reads and checks the configuration file. Each problem is one line with its place. */
export async function readConfig(file: string): Promise<AgentConfig> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
    if ((statSync(file).mode & 0o022) !== 0) {
      throw new AgentError(`${file} can be changed by other users, who could allow commands; run: chmod go-w ${file}`);
    }
  } catch (cause) {
    if (cause instanceof AgentError) throw cause;
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') {
      throw new AgentError(`there is no ${file}; "countersign agent enrol" creates it`, { cause });
    }
    throw new AgentError(`cannot read ${file}: ${(cause as Error).message}`, { cause });
  }
  // Only the start needs the parser.
  const { parse } = await import('yaml');
  let content: unknown;
  try {
    content = parse(text) ?? {};
  } catch (cause) {
    throw new AgentError(`${file}: ${(cause as Error).message}`, { cause });
  }
  return parseConfig(content, file);
}

export function parseConfig(content: unknown, file: string): AgentConfig {
  const { data, error } = AgentConfig.safeParse(content);
  if (data) return data;
  const lines = error.issues.map((issue) => `${file}: ${placeOf(issue.path)}${problem(issue)}`);
  throw new AgentError(lines.join('\n'));
}

const placeOf = (path: readonly PropertyKey[]): string => (path.length === 0 ? '' : `${path.map(String).join('.')}: `);

function problem(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') {
    const [key = ''] = issue.keys;
    const known = issue.path.length === 0 ? Object.keys(AgentConfig.shape) : Object.keys(Profile.shape);
    return `unknown field "${key}"${didYouMean(key, known)}`;
  }
  return issue.message;
}
