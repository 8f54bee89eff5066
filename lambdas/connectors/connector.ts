import * as z from 'zod';
import { hashOf, sha256Hex } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import type { Effect, WriteResult } from '../run/receipt.ts';

/** A connection opened for one call: where, as whom. The credential is read from Secrets Manager and never kept on a row. */
export interface Access {
  baseUrl: string;
  instance: string;
  credential: unknown;
}

/** What is about to be written, before anything is: what it touches, which fields, and the key that makes it once. */
export interface Proposal {
  target: string;
  fields: Record<string, unknown>;
  /** `{connector}:{operation}:{instance}:{target}:{hash of fields}`. */
  key: string;
}

export interface Performance {
  access: Access;
  /** Left at the target by operations of effect `probe`, and looked for when an answer was lost. */
  mark: string;
  /** When the write was first intended, with no outcome known since: nothing of ours can be older at the target. */
  openSince: string;
  /** False when an earlier attempt may have had its effect: what is read now may not be the state before. */
  firstAttempt: boolean;
}

interface Definition<Input> {
  tool: string;
  effect: Effect;
  /** The tenant's connection that the operation uses. */
  connection: string;
  input: z.ZodType<Input>;
  propose(input: Input, instance: string): Proposal;
  perform(input: Input, performance: Performance): Promise<WriteResult>;
  /** Required for effect `probe`: finds what an earlier attempt wrote, or says it is not there. */
  probe?(input: Input, performance: Performance): Promise<WriteResult | undefined>;
}

/** An operation as the worker sees it, whatever its input's type: input is checked by `parse` and opaque after. */
export type Operation = Definition<unknown> & { parse(input: unknown): unknown };

export function operation<Input>(definition: Definition<Input>): Operation {
  if (definition.effect === 'probe' && !definition.probe) throw new Error(`${definition.tool} must say how to probe`);
  return {
    ...(definition as Definition<unknown>),
    parse(input) {
      const parsed = definition.input.safeParse(input);
      if (parsed.success) return parsed.data;
      throw new CountersignError('INPUT_INVALID', `${definition.tool}: ${z.prettifyError(parsed.error)}`);
    },
  };
}

export const writeKey = (parts: string[], fields: unknown) => [...parts, hashOf(fields)].join(':');

/** Short, the same for every attempt of one write, and different for any other. */
export const markOf = (tenant: string, key: string) => `countersign:${sha256Hex(`${tenant} ${key}`).slice(0, 20)}`;
