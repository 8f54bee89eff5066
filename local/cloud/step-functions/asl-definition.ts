/**
 * The part of the Amazon States Language that the template uses. Each result is discarded (`ResultPath` null), so every
 * state has the input of the execution. Any other field is refused at the start, because AWS would run it differently.
 */
import * as z from 'zod';

export const INVOKE_WITH_TOKEN = 'arn:aws:states:::lambda:invoke.waitForTaskToken';
const RESOURCES = ['arn:aws:states:::lambda:invoke', INVOKE_WITH_TOKEN] as const;

/** `$.input.field` or `$$.Context.field`: one value, without wildcards or functions. */
const Path = z.string().regex(/^\$\$?(\.\w+)+$/, 'the local host supports only paths such as $.name');
const Payload = z.record(z.string(), z.string()).superRefine((payload, problems) => {
  for (const [key, value] of Object.entries(payload)) {
    const path = key.endsWith('.$') ? Path.safeParse(value) : undefined;
    for (const { message } of path?.error?.issues ?? []) {
      problems.addIssue({ code: 'custom', path: [key], message: `${value}: ${message}` });
    }
  }
});

const OwnError = z.string().regex(/^(?!States\.)/);
const ErrorEquals = z.array(z.union([z.literal('States.ALL'), OwnError])).min(1);
const CaughtErrors = z.array(z.union([z.enum(['States.ALL', 'States.Timeout']), OwnError])).min(1);
const Retrier = z.strictObject({
  ErrorEquals,
  IntervalSeconds: z.number().default(1),
  MaxAttempts: z.number().default(3),
  BackoffRate: z.number().default(2),
  MaxDelaySeconds: z.number().optional(),
});
const Catcher = z.strictObject({ ErrorEquals: CaughtErrors, ResultPath: z.null(), Next: z.string() });
const transition = { Next: z.string().optional(), End: z.literal(true).optional() };

const Task = z.strictObject({
  Type: z.literal('Task'),
  Resource: z.enum(RESOURCES),
  Parameters: z.strictObject({ FunctionName: z.string(), Payload }),
  ResultPath: z.null(),
  TimeoutSecondsPath: Path.optional(),
  Retry: z.array(Retrier).default([]),
  Catch: z.array(Catcher).default([]),
  ...transition,
});
const Wait = z.strictObject({ Type: z.literal('Wait'), TimestampPath: Path, ...transition });
const Succeed = z.strictObject({ Type: z.literal('Succeed') });
const Fail = z.strictObject({ Type: z.literal('Fail'), Error: z.string(), Cause: z.string() });
const Parallel = z.strictObject({
  Type: z.literal('Parallel'),
  get Branches(): z.ZodArray<z.ZodType<MachineDefinition>> {
    return z.array(Machine);
  },
  ResultPath: z.null(),
  Catch: z.array(Catcher).default([]),
  ...transition,
});
const State = z.discriminatedUnion('Type', [Task, Wait, Succeed, Fail, Parallel]);

export type TaskState = z.infer<typeof Task>;
export type ParallelState = z.infer<typeof Parallel>;
export type RetryRule = z.infer<typeof Retrier>;
export type StateDefinition = z.infer<typeof State>;
export interface MachineDefinition {
  StartAt: string;
  States: Record<string, StateDefinition>;
}

const Machine: z.ZodType<MachineDefinition> = z
  .strictObject({ StartAt: z.string(), States: z.record(z.string(), State) })
  .superRefine(({ StartAt, States }, problems) => {
    const targets = Object.values(States).flatMap((state) => [
      ...('Next' in state && state.Next !== undefined ? [state.Next] : []),
      ...('Catch' in state ? state.Catch.map(({ Next }) => Next) : []),
    ]);
    for (const target of [StartAt, ...targets]) {
      if (!Object.hasOwn(States, target)) problems.addIssue({ code: 'custom', message: `there is no state ${target}` });
    }
  });

/** Throws one error that lists everything in the definition that the local host does not support. */
export function parseDefinition(logicalId: string, definition: unknown): MachineDefinition {
  const parsed = Machine.safeParse(definition);
  if (parsed.success) return parsed.data;
  throw new Error(
    `${logicalId}: the local Step Functions cannot run this definition:\n${z.prettifyError(parsed.error)}`,
  );
}
