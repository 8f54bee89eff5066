import * as z from 'zod';
import { AGENT_ENVIRONMENTS, Capabilities, ProfileName } from '../../agents/agent-terms.ts';
import { DEFAULT_PROFILE, isPlainPath, PROFILES } from '../../agents/profiles.ts';
import type { Command } from '../../agents/protocol.ts';
import type { CommandNeeds } from '../../agents/select-agent.ts';
import { canonicalJson } from '../../run/canonical-json.ts';
import type { Reversal } from '../../run/receipt.ts';
import { operation, type Proposal, writeKey } from '../connector.ts';

const TIMEOUT_DEFAULT_SECONDS = 60;
const TIMEOUT_MAX_SECONDS = 3_600;
/** KMS signs at most 4,096 bytes, and the signed statement has ids, hashes and times, too. */
const COMMAND_MAX_BYTES = 2_400;
/** An attempt of a check may be repeated, because it changes nothing. A command runs once. */
const CHECK_ATTEMPTS = 2;
const COMMAND_ATTEMPTS = 1;

const Executable = z.lazy(() =>
  z
    .string()
    .max(500)
    .refine(isPlainPath, 'write the absolute path of a program, without "//", "." or "..": /usr/bin/systemctl'),
);
/** The kernel ends an argument at a NUL character, so nobody would see the rest. */
const Argument = z.lazy(() =>
  z
    .string()
    .max(2_000)
    .refine((text) => !text.includes('\0'), 'an argument cannot contain a NUL character'),
);
const Arguments = z.lazy(() => z.array(Argument).max(100));
const Segment = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'the name of a network segment');
const CredentialId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$/, 'the id of a credential');

const shared = () => ({
  command: Executable.describe('the program, by its absolute path; no shell interprets it'),
  args: Arguments.default([]).describe('its arguments, one for each element'),
  environment: z.enum(AGENT_ENVIRONMENTS).describe('where it runs; a prod command is judged as in a prod stage'),
  profile: ProfileName.optional().describe(
    'the isolation; the default is `prod-standard`, `staging-standard` or `dev-flex`, by environment',
  ),
  capabilities: Capabilities.default([]).describe('what the agent must have, like `database`'),
  segment: Segment.optional().describe('the network segment that the agent must be in'),
  timeoutSeconds: z
    .int()
    .min(1)
    .max(TIMEOUT_MAX_SECONDS)
    .default(TIMEOUT_DEFAULT_SECONDS)
    .describe('the command is stopped after this time'),
  credentials: z
    .array(CredentialId)
    .max(10)
    .default([])
    .describe('ids of credentials, which the agent fetches for this command only'),
});

type Shared = z.infer<z.ZodObject<ReturnType<typeof shared>>>;

/** The command of a session, as a configuration names it: like that of a step, without what depends on the session. */
export const SessionCommand = z.lazy(() =>
  z.strictObject({
    command: shared().command,
    args: Arguments.optional().describe('its arguments, one for each element'),
    profile: shared().profile,
    segment: shared().segment,
    credentials: shared().credentials.removeDefault().optional().describe('ids of credentials for this command only'),
    rollback: z.strictObject({ command: Executable, args: Arguments.optional() }).optional(),
  }),
);
/** A command is stopped after this time. */
export const COMMAND_TIMEOUT_MAX_SECONDS = TIMEOUT_MAX_SECONDS;

const profileOf = ({ environment, profile }: Pick<Shared, 'environment' | 'profile'>): ProfileName =>
  profile ?? DEFAULT_PROFILE[environment];

const environmentsFit = ({ environment, profile }: Pick<Shared, 'environment' | 'profile'>): boolean =>
  profile === undefined || PROFILES[profile].environment === environment;

const fits = (input: object): boolean => Buffer.byteLength(canonicalJson(input)) <= COMMAND_MAX_BYTES;

const Place = z.lazy(() => z.object({ environment: shared().environment, profile: shared().profile }));
/** These checks also run while other fields are expressions, whose values are not known when a workflow is published. */
const WHEN_PLACE_IS_KNOWN = { when: ({ value }: { value: unknown }) => Place.safeParse(value).success };

const FITTING = {
  path: ['profile'],
  error: `use a profile of this environment: ${Object.entries(PROFILES)
    .map(([name, { environment }]) => `${name} (${environment})`)
    .join(', ')}`,
  ...WHEN_PLACE_IS_KNOWN,
};
const SIZE = {
  path: ['args'],
  error: `the command and its options are too long: at most ${COMMAND_MAX_BYTES} bytes; put long values into a file on the host`,
};

const CommandInput = z.lazy(() =>
  z
    .strictObject({
      ...shared(),
      rollback: z
        .strictObject({
          command: Executable.describe('the program that undoes it'),
          args: Arguments.default([]).describe('its arguments'),
        })
        .optional()
        .describe(
          'the command that undoes it, also if it fails or its agent is lost; mandatory for prod profiles. It runs with the same profile, credentials and limits',
        ),
      check: z
        .boolean()
        .optional()
        .describe('`true`: the command changes nothing, and is tried a second time if it fails'),
      destructive: z
        .boolean()
        .optional()
        .describe('`true`: it removes something that no command can restore; two people must approve it'),
    })
    .refine(environmentsFit, FITTING)
    .refine((input) => !PROFILES[profileOf(input)].needsRollback || input.rollback !== undefined, {
      path: ['rollback'],
      error: 'prod profiles need a rollback: the command that undoes this one',
      ...WHEN_PLACE_IS_KNOWN,
    })
    .refine(fits, SIZE),
);
export type CommandInput = z.infer<typeof CommandInput>;

const RollbackInput = z.lazy(() => z.strictObject(shared()).refine(environmentsFit, FITTING).refine(fits, SIZE));

const CommandOutput = z.lazy(() =>
  z.strictObject({
    exitCode: z.int().nullable(),
    durationMs: z.int(),
    agent: z.string().describe('the id of the agent'),
    profile: z.string(),
    outputSha256: z.string().describe('SHA-256 of the redacted output'),
    outputBytes: z.int(),
    outputDroppedBytes: z.int().describe('what exceeded the limit'),
  }),
);

/** Everything that policy and approvers see. Nothing of it may be edited: a changed command is another one. */
function proposalOf(verb: string, input: Shared & Partial<CommandInput>): Proposal {
  const { command, args, environment, segment, capabilities, timeoutSeconds, credentials } = input;
  const { rollback, check, destructive } = input;
  const fields = {
    ...{ command, args, environment, profile: profileOf(input), timeoutSeconds },
    ...(segment !== undefined && { segment }),
    ...(capabilities.length > 0 && { capabilities }),
    ...(credentials.length > 0 && { credentials }),
    ...(rollback && { rollback }),
    ...(check && { check }),
    ...(destructive && { destructive }),
  };
  const place = [environment, segment ?? '*'];
  return {
    target: ['agent', ...place, command].join(':'),
    fields,
    environment,
    ...(destructive && { destructive }),
    key: writeKey(['agent', verb, ...place, command], fields),
  };
}

/** All fields of the input, as keys so that the compiler finds a missing one. */
const FIELDS: Record<keyof z.infer<typeof CommandInput>, true> = {
  command: true,
  args: true,
  environment: true,
  profile: true,
  capabilities: true,
  segment: true,
  timeoutSeconds: true,
  credentials: true,
  rollback: true,
  check: true,
  destructive: true,
};
const ALL_FIELDS = Object.keys(FIELDS);

/** An agent performs it (worker/agent-executor.ts): there is nothing that the worker itself could call. */
const performedByAgent = async (): Promise<never> => {
  throw new Error('an agent performs this');
};

/** Runs a program on a host of the customer, through an agent. */
export const runCommand = operation<CommandInput>({
  tool: 'agent.command',
  summary: 'Runs a program on a host of yours, through an agent, under a profile that isolates it.',
  effect: 'opaque',
  risk: 'medium',
  reversible: true,
  oncePerRun: true,
  attempts: ({ check }) => (check ? CHECK_ATTEMPTS : COMMAND_ATTEMPTS),
  input: CommandInput,
  output: CommandOutput,
  fixed: ALL_FIELDS,
  returnsOnlyIds: true,
  propose: (input) => proposalOf('command', input),
  perform: performedByAgent,
});

/** Undoes a command of the same run. Not for workflows: there, a command always says how to undo it. */
export const rollBackCommand = operation<z.infer<typeof RollbackInput>>({
  tool: 'agent.rollback',
  summary: 'Runs the rollback of an `agent.command`. Only a rollback uses it.',
  effect: 'opaque',
  risk: 'medium',
  reversible: false,
  oncePerRun: true,
  undoOnly: true,
  attempts: () => COMMAND_ATTEMPTS,
  input: RollbackInput,
  output: CommandOutput,
  fixed: ALL_FIELDS,
  returnsOnlyIds: true,
  propose: (input) => proposalOf('rollback', input),
  perform: performedByAgent,
});

/** A command as it is assigned to an agent. */
export interface AssignedCommand extends CommandNeeds {
  command: Command;
  timeoutSeconds: number;
  credentials: string[];
  rollback?: Command;
}

/** The input of either tool, which its schema has accepted. */
export function assignedCommand(input: unknown): AssignedCommand {
  const { command, args, environment, segment, capabilities, timeoutSeconds, credentials, rollback } = input as Shared &
    Partial<CommandInput>;
  return {
    command: { executable: command, args },
    ...{ environment, profile: profileOf(input as Shared), capabilities, timeoutSeconds, credentials },
    ...(segment !== undefined && { segment }),
    ...(rollback && { rollback: { executable: rollback.command, args: rollback.args } }),
  };
}

export function reversalOfCommand(input: unknown): Reversal {
  const { rollback, check: _check, destructive: _destructive, ...same } = input as CommandInput;
  if (!rollback) return { irreversible: 'the command has no rollback' };
  return { tool: rollBackCommand.tool, input: { ...same, command: rollback.command, args: rollback.args } };
}
