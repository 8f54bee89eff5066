import * as z from 'zod';
import type { CommandEnvironment } from './agent.ts';
import { ProfileName } from './agent-terms.ts';
import type { Command } from './protocol.ts';

/** Every path to a file has exactly one form, so that a list cannot be avoided with `/usr/./bin` or `/usr/bin/../bin`. */
export const isPlainPath = (path: string): boolean =>
  path.startsWith('/') &&
  path
    .slice(1)
    .split('/')
    .every((part) => part !== '' && part !== '.' && part !== '..') &&
  !path.includes('\0');

const Executable = z
  .string()
  .max(500)
  .refine(isPlainPath, 'an absolute path without "//", "." or "..", like /usr/bin/systemctl');

/** A command that a list names. Without `args` any arguments match; with it, their number must be the same. */
export const CommandPattern = z.strictObject({
  executable: Executable.describe('The absolute path of the program. It has no wildcards.'),
  args: z
    .array(z.string().max(500))
    .max(100)
    .optional()
    .describe('One pattern for each argument; `*` stands for any characters within this argument.'),
});
export type CommandPattern = z.infer<typeof CommandPattern>;

const Patterns = z.array(CommandPattern).max(500);

/** The lists of a profile, as a tenant defines them. They replace the built-in lists. */
export const ProfileDefinition = z.strictObject({
  name: ProfileName,
  allow: Patterns.default([]).describe('What may run. Not used by `dev-flex`.'),
  deny: Patterns.default([]).describe('What may not run, although it is allowed.'),
});
export type ProfileDefinition = z.infer<typeof ProfileDefinition>;

interface ProfileRules {
  environment: CommandEnvironment;
  /** True: only what the allow list names may run. */
  needsAllowed: boolean;
  /** True: each command must say how to undo it. */
  needsRollback: boolean;
}

/** Source 001, 5.1. The isolation of each profile is in `agent/`. */
export const PROFILES: Record<ProfileName, ProfileRules> = {
  'prod-critical': { environment: 'prod', needsAllowed: true, needsRollback: true },
  'prod-standard': { environment: 'prod', needsAllowed: true, needsRollback: true },
  'staging-standard': { environment: 'staging', needsAllowed: true, needsRollback: false },
  'dev-flex': { environment: 'dev', needsAllowed: false, needsRollback: false },
};

export const DEFAULT_PROFILE: Record<CommandEnvironment, ProfileName> = {
  prod: 'prod-standard',
  staging: 'staging-standard',
  dev: 'dev-flex',
};

/** Protects against accidents. Only an allow list protects against intent: another program can do the same. */
const DENIED_IN_DEV: CommandPattern[] = ['sbin', 'usr/sbin', 'bin', 'usr/bin'].flatMap((folder) =>
  ['shutdown', 'reboot', 'halt', 'poweroff', 'mkfs', 'dd', 'sudo', 'su'].map((name) => ({
    executable: `/${folder}/${name}`,
  })),
);

/** Until a tenant defines its lists, nothing may run in prod and staging. */
export const builtInProfile = (name: ProfileName): ProfileDefinition => ({
  name,
  allow: [],
  deny: PROFILES[name].needsAllowed ? [] : DENIED_IN_DEV,
});

export interface CommandLists {
  /** Absent: everything that is not denied may run. */
  allow?: readonly CommandPattern[];
  deny: readonly CommandPattern[];
}

export interface Violation {
  rule: 'executable' | 'deny-list' | 'allow-list';
  message: string;
}

/** Why lists forbid a command; undefined if they allow it. Also for the lists of an agent's own configuration. */
export function listViolation({ allow, deny }: CommandLists, { executable, args }: Command): Violation | undefined {
  const command = { executable, args };
  if (!isPlainPath(executable)) {
    return { rule: 'executable', message: `${executable} is not an absolute path without "//", "." or ".."` };
  }
  if (deny.some((pattern) => matches(pattern, command))) {
    return { rule: 'deny-list', message: `the deny list names ${executable} with these arguments` };
  }
  if (allow && !allow.some((pattern) => matches(pattern, command))) {
    const known = allow.some((pattern) => pattern.executable === executable);
    return {
      rule: 'allow-list',
      message: known
        ? `the allow list has ${executable}, but not with these arguments`
        : `the allow list does not have ${executable}`,
    };
  }
  return undefined;
}

/** Why the profile forbids a command; undefined if it may run. The worker, publishing, plans and agents use this. */
export function profileViolation({ name, allow, deny }: ProfileDefinition, command: Command): Violation | undefined {
  const found = listViolation({ deny, ...(PROFILES[name].needsAllowed && { allow }) }, command);
  return found && { ...found, message: `profile ${name}: ${found.message}` };
}

function matches(pattern: CommandPattern, { executable, args }: Command): boolean {
  if (pattern.executable !== executable) return false;
  if (pattern.args === undefined) return true;
  return (
    pattern.args.length === args.length && pattern.args.every((each, index) => matchesArgument(each, args[index] ?? ''))
  );
}

/** Each part between two `*` is found at its first place after the part before it. So the time is bounded, and no part is tried twice. */
function matchesArgument(pattern: string, argument: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  if (rest.length === 0) return pattern === argument;
  const last = rest.pop() ?? '';
  if (!argument.startsWith(first) || argument.length < first.length + last.length || !argument.endsWith(last)) {
    return false;
  }
  const end = argument.length - last.length;
  let at = first.length;
  for (const part of rest) {
    const found = argument.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return at <= end;
}
