import * as z from 'zod';
import type { AwsCall } from './aws-calls.ts';
import { HOST_CALLER } from './request-counts.ts';
import { errorReply, type WireReply } from './wire.ts';

const FaultRuleSchema = z
  .strictObject({
    function: z.string().min(1).optional(),
    service: z.string().min(1).optional(),
    operation: z.string().min(1).optional(),
    /** A part of the ARN of a resource of the call. */
    resource: z.string().min(1).optional(),
    /** The first matching call that fails, counted from 1 since the rule was added. */
    nth: z.int().min(1).default(1),
    times: z.union([z.int().min(1), z.literal('always')]).default(1),
    probability: z.number().gt(0).lte(1).default(1),
    seed: z.int().default(1),
    kind: z.enum(['throttle', 'error', 'delay', 'lost_reply', 'crash_before', 'crash_after', 'conflict']),
    code: z.string().min(1).optional(),
    status: z.int().min(400).max(599).optional(),
    delayMs: z.int().min(0).max(60_000).optional(),
  })
  .refine((rule) => rule.kind !== 'delay' || rule.delayMs !== undefined, {
    message: 'a delay requires delayMs',
    path: ['delayMs'],
  })
  .refine((rule) => rule.kind !== 'conflict' || rule.service === undefined || rule.service === 'dynamodb', {
    message: 'only dynamodb has conflicts',
    path: ['service'],
  });

export type FaultRuleInput = z.input<typeof FaultRuleSchema>;
export type FaultRule = z.output<typeof FaultRuleSchema> & { id: number };
export type ListedFault = FaultRule & { matched: number; hits: number };

interface FaultableCall {
  functionLogicalId: string;
  service: string;
  operation: string;
  /** The ARNs of its resources. */
  resources?(): string[];
}

/** The fault of one call. A call can be delayed and also fail. */
export interface InjectedFault {
  delayMs: number;
  rule?: FaultRule;
}

export class BadFaultRule extends Error {}

/** In rules: the invocations of functions, instead of the calls that they make. */
const INVOCATION = 'invocation';

interface ArmedRule {
  rule: FaultRule;
  matched: number;
  hits: number;
  random: () => number;
}

/** Injected failures of AWS calls, for tests of the recovery. */
export class Faults {
  #rules: ArmedRule[] = [];
  #nextId = 1;

  /** Parses a rule. Throws `BadFaultRule` with the problems of an invalid one. */
  add(input: unknown): FaultRule {
    const parsed = FaultRuleSchema.safeParse(input);
    if (!parsed.success) throw new BadFaultRule(z.prettifyError(parsed.error));
    const rule = { ...parsed.data, id: this.#nextId++ };
    this.#rules.push({ rule, matched: 0, hits: 0, random: seededRandom(rule.seed) });
    return rule;
  }

  list(): ListedFault[] {
    return this.#rules.map(({ rule, matched, hits }) => ({ ...rule, matched, hits }));
  }

  clear(): void {
    this.#rules = [];
  }

  /** The fault of an invocation: Lambda throttles it, or it fails before the function starts. Only for rules that name the service `invocation`. */
  forInvocation(functionLogicalId: string): FaultRule | undefined {
    const call = { functionLogicalId, service: INVOCATION, operation: 'Invoke' };
    return this.#rules.some(({ rule }) => rule.service === INVOCATION) ? this.forCall(call).rule : undefined;
  }

  /** The fault of this call. Every matching rule counts the call. Delays add up; of the other rules the first applies. */
  forCall(call: FaultableCall): InjectedFault {
    const fault: InjectedFault = { delayMs: 0 };
    for (const armed of this.#rules) {
      if (!matches(armed.rule, call) || !fires(armed)) continue;
      if (armed.rule.kind !== 'delay' && fault.rule) continue;
      armed.hits += 1;
      fault.delayMs += armed.rule.delayMs ?? 0;
      if (armed.rule.kind !== 'delay') fault.rule = armed.rule;
    }
    return fault;
  }
}

function matches(rule: FaultRule, call: FaultableCall): boolean {
  // Calls of the host itself (seeding, tests) are not part of the system. They fail only if a rule names the host.
  if (call.functionLogicalId === HOST_CALLER && rule.function === undefined) return false;
  return (
    (rule.kind !== 'conflict' || call.service === 'dynamodb') &&
    (rule.function === undefined || namesFunction(rule.function, call.functionLogicalId)) &&
    (rule.service === undefined || rule.service.toLowerCase() === call.service) &&
    (rule.operation === undefined || rule.operation.toLowerCase() === call.operation.toLowerCase()) &&
    (rule.resource === undefined || hasResource(call, rule.resource))
  );
}

const hasResource = ({ resources }: FaultableCall, part: string) =>
  resources?.().some((resource) => resource.includes(part)) ?? false;

/**
 * `worker` matches `WorkerFunction8A1B2C3D` (the start of the logical id) and `StepsWorker8A1B2C3D` (the end of the logical id
 * without CDK's hash and suffixes such as Function).
 */
export function namesFunction(name: string, functionLogicalId: string): boolean {
  const plain = (text: string) => text.toLowerCase().replace(/[^a-z0-9]/g, '');
  const shortName = functionLogicalId.replace(/[0-9A-F]{8}$/, '').replace(/(Function|Lambda|Fn|Handler)+$/, '');
  return plain(functionLogicalId).startsWith(plain(name)) || plain(shortName).endsWith(plain(name));
}

function fires(armed: ArmedRule): boolean {
  const { rule } = armed;
  armed.matched += 1;
  if (armed.matched < rule.nth) return false;
  if (rule.times !== 'always' && armed.hits >= rule.times) return false;
  return rule.probability === 1 || armed.random() < rule.probability;
}

/** Mulberry32: the same seed selects the same calls. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const THROTTLED: Record<string, { code: string; status: number }> = {
  dynamodb: { code: 'ProvisionedThroughputExceededException', status: 400 },
  sqs: { code: 'RequestThrottled', status: 403 },
  s3: { code: 'SlowDown', status: 503 },
  bedrock: { code: 'ThrottlingException', status: 429 },
};

/** The reply that replaces the call, or undefined for a fault that does not replace it. */
export function faultReply(rule: FaultRule, call: AwsCall): WireReply | undefined {
  const { service } = call;
  const message = `injected by fault rule ${rule.id} (${rule.kind})`;
  if (rule.kind === 'throttle') {
    const usual = THROTTLED[service] ?? { code: 'ThrottlingException', status: 400 };
    return errorReply({ service, code: rule.code ?? usual.code, message, status: rule.status ?? usual.status });
  }
  if (rule.kind === 'error') {
    const code = rule.code ?? (service === 's3' ? 'InternalError' : 'InternalServerError');
    return errorReply({ service, code, message, status: rule.status ?? 500 });
  }
  return rule.kind === 'conflict' ? conflictReply(call, message) : undefined;
}

/** The engine runs one transaction at a time, so it has no conflicts. DynamoDB has them. */
function conflictReply({ service, input }: AwsCall, message: string): WireReply {
  const { TransactItems: items } = input as { TransactItems?: unknown[] };
  if (!items) return errorReply({ service, code: 'TransactionConflictException', message, status: 400 });
  const reasons = items.map((_item, index) =>
    index === 0 ? { Code: 'TransactionConflict', Message: 'Transaction is ongoing for the item' } : { Code: 'None' },
  );
  return errorReply({
    service,
    code: 'TransactionCanceledException',
    message: `Transaction cancelled, please refer cancellation reasons for specific reasons [${reasons.map(({ Code }) => Code).join(', ')}]: ${message}`,
    status: 400,
    details: { CancellationReasons: reasons },
  });
}
