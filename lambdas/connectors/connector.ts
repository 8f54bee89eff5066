import * as z from 'zod';
import { hashOf, sha256Hex } from '../run/canonical-json.ts';
import { parsedInput } from '../run/check-input.ts';
import type { Effect, TouchedState, WriteResult } from '../run/receipt.ts';
import type { TokenCache } from './token-cache.ts';

/** A connection opened for one call: where, as whom. The credential is read from Secrets Manager and never kept on a row. */
export interface Access {
  baseUrl: string;
  instance: string;
  credential: unknown;
  /** For credentials that are exchanged for a token: keeps it between calls. */
  token?: TokenCache;
  /** For `http.request` alone: the only hosts it may speak to, `api.example.com` or `api.example.com:8443`. */
  allowedHosts?: readonly string[];
  /** Where this stage itself answers; on the local host a port of this machine, the only one `http` tools may reach. */
  ownUrl?: string;
}

export const RISKS = ['low', 'medium', 'high'] as const;
export type Risk = (typeof RISKS)[number];

/** What is about to be written, before anything is: what it touches, which fields, and the key that makes it once. */
export interface Proposal {
  /** `servicenow:acme:incident:9d38…`: the system, and the thing in it, a thing with a free name by `unread`. */
  target: string;
  /** What is written, by the names its input has for it: editing a field is editing the input. */
  fields: Record<string, unknown>;
  /** What `before` will read once it is written; absent where there is nothing to compare with. */
  after?: TouchedState;
  /** `{connector}:{operation}:{instance}:{target}:{hash of fields}`. */
  key: string;
}

export interface Performance {
  access: Access;
  /** Left at the target by operations of effect `probe`, and looked for when an answer was lost. */
  mark: string;
  /** When the write was first intended, with no outcome known since: nothing of ours can be older at the target. */
  openSince: string;
  /** What the write was about to change; absent where that is not known. */
  before?: TouchedState;
  /**
   * What an earlier attempt found whose outcome is open. If the write leaves things as it found them, that attempt has
   * worked, and this is the state to go back to.
   */
  first?: TouchedState;
}

export interface Definition<Input> {
  /** `{connector}.{thing}.{verb}`, as a workflow step names it. */
  tool: string;
  effect: Effect;
  /** The least it puts at risk; a workflow step may say it is more, never less. */
  risk: Risk;
  /** Takes something away that no later write can put back as it was. */
  destructive?: true;
  /** Whether `perform` can, as a rule, say how to undo it. */
  reversible: boolean;
  /** The tenant's connection that the operation uses; none for one that reaches nothing outside. */
  connection?: string;
  input: z.ZodType<Input>;
  /**
   * The field of the input whose text the target would format, where it has one. It is written so that it stays text,
   * unless the input says `markdown: true`, which a workflow may say of constant text only (`check-markdown.ts`).
   */
  markdownField?: string;
  /**
   * The field of the input that is a URL, where it has one. The workflow writes scheme, host and the shape of path and
   * query out; what expressions give is encoded and stays in its segment or value (`url-template.ts`).
   */
  urlField?: string;
  /**
   * The fields that are only written. Every other field picks where the operation reaches: no model may fill it, nor choose
   * it without an approval that says so (`model-flow.ts`).
   */
  content?: readonly string[];
  /** Within `content`, what names people or groups: `fields.assigned_to`. */
  recipients?: readonly string[];
  /** Fields that policy and people see and that an edit may not change: they pick where the write goes. */
  fixed?: readonly string[];
  /** It hands on ids and times of the target's, and nothing of what was written. */
  answersWithIds?: true;
  /** What it hands on are the words of a model. */
  asksModel?: true;
  propose(input: Input, instance: string): Proposal;
  /** The input with some of its proposal's fields changed by a person; without it, fields are properties of the input. */
  edited?(input: Input, fields: Record<string, unknown>): unknown;
  /** Reads what the write would change, and only that. It never writes. */
  before?(input: Input, access: Access): Promise<TouchedState>;
  perform(input: Input, performance: Performance): Promise<WriteResult>;
  /** Required for effect `probe`: finds what an earlier attempt wrote, or says it is not there. */
  probe?(input: Input, performance: Performance): Promise<WriteResult | undefined>;
}

/** An operation as the worker sees it, whatever its input's type: input is checked by `parse` and opaque after. */
export type Operation = Required<Pick<Definition<unknown>, 'edited'>> &
  Omit<Definition<unknown>, 'edited'> & { parse(input: unknown): unknown };

/** Of an operation with a `markdownField`: whether that text is the target's own markup, to be written as it is. */
export const Markdown = z.boolean().optional();

export function operation<Input>(definition: Definition<Input>): Operation {
  if (definition.effect === 'probe' && !definition.probe) throw new Error(`${definition.tool} must say how to probe`);
  return {
    edited: (input, fields) => ({ ...(input as object), ...fields }),
    ...(definition as Definition<unknown>),
    parse: (input) => parsedInput(definition.input, definition.tool, input),
  };
}

export const connectorOf = (tool: string): string => tool.split('.')[0] ?? tool;

/** Stands for a text of somebody's choosing in targets and keys, which evidence shows: the same text, the same digits. */
export const unread = (text: string): string => sha256Hex(text).slice(0, 16);

export function writeKey(parts: string[], fields: unknown): string {
  const target = parts.join(':');
  const named = Buffer.byteLength(target) <= WRITE_TARGET_MAX_BYTES ? target : `${parts[0]}:${sha256Hex(target)}`;
  return `${named}:${hashOf(fields)}`;
}
/** A key of DynamoDB has 2,048 bytes, with the tenant, a hash, a run and a step in it. A longer target is named by its hash. */
const WRITE_TARGET_MAX_BYTES = 1_024;

/** Short, the same for every attempt of one write, and different for any other. */
export const markOf = (tenant: string, key: string) => `countersign:${sha256Hex(`${tenant} ${key}`).slice(0, 20)}`;
