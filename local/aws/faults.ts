import * as z from 'zod';
import { HOST_CALLER } from './request-counts.ts';

const FaultRuleSchema = z
  .strictObject({
    function: z.string().min(1).optional(),
    service: z.string().min(1).optional(),
    operation: z.string().min(1).optional(),
    /** 1-based, among the calls that match since the rule was added. */
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
    message: 'a delay needs delayMs',
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
}

/** What is to go wrong with one call: it may be slow and then also fail. */
export interface InjectedFault {
  delayMs: number;
  rule?: FaultRule;
}

export class BadFaultRule extends Error {}

interface ArmedRule {
  rule: FaultRule;
  matched: number;
  hits: number;
  random: () => number;
}

/** Deliberate failures of AWS calls, so that what the design claims to survive is seen to be survived. */
export class Faults {
  #rules: ArmedRule[] = [];
  #nextId = 1;

  /** Parses a rule from outside; `BadFaultRule` says what is wrong with it. */
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

  /** What happens to this call. Every matching rule counts it; all delays add up, the first other rule decides. */
  strike(call: FaultableCall): InjectedFault {
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

  /** `/_local/faults`: POST adds, GET lists, DELETE clears. */
  handle(method: string, body: unknown): { status: number; body: unknown } {
    if (method === 'GET') return { status: 200, body: { rules: this.list() } };
    if (method === 'DELETE') {
      this.clear();
      return { status: 200, body: { rules: [] } };
    }
    if (method !== 'POST') return { status: 405, body: { message: 'use GET, POST or DELETE' } };
    try {
      return { status: 201, body: { rule: this.add(body) } };
    } catch (error) {
      if (error instanceof BadFaultRule) return { status: 400, body: { message: error.message } };
      throw error;
    }
  }
}

function matches(rule: FaultRule, call: FaultableCall): boolean {
  // The host's own calls (seeding, tests looking on) are no part of the system: they fail only if a rule says so.
  if (call.functionLogicalId === HOST_CALLER && rule.function === undefined) return false;
  return (
    (rule.kind !== 'conflict' || call.service === 'dynamodb') &&
    (rule.function === undefined || namesFunction(rule.function, call.functionLogicalId)) &&
    (rule.service === undefined || rule.service.toLowerCase() === call.service) &&
    (rule.operation === undefined || rule.operation.toLowerCase() === call.operation.toLowerCase())
  );
}

/**
 * `worker` names `WorkerFunction8A1B2C3D` (the beginning of its logical id) and `StepsWorker8A1B2C3D` (its short
 * name: the end, without CDK's hash and the words that every function has).
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

/** Mulberry32: small, and the same seed fails the same calls again. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
