import * as z from 'zod';
import { hashOf, sha256Hex } from '../run/canonical-json.ts';
import { parsedInput } from '../run/check-input.ts';
import { CountersignError } from '../run/errors.ts';
import type { Effect, TouchedState, WriteResult } from '../run/receipt.ts';
import type { SessionContract } from './session/session-provider.ts';
import type { TokenCache } from './token-cache.ts';

/** A connection opened for one call. The credential comes from Secrets Manager and is never stored in a row. */
export interface Access {
  baseUrl: string;
  instance: string;
  credential: unknown;
  /** For credentials that are exchanged for a token: caches the token between calls. */
  token?: TokenCache;
  /** Only for the `http` tools: the hosts they may call, `api.example.com` or `api.example.com:8443`. */
  allowedHosts?: readonly string[];
  /** Only for the `servicenow.record` tools: the tables that they may read and write. */
  allowedTables?: readonly string[];
  /** The URL of this stage. On the local host it is the only port of this machine that the `http` tools may call. */
  ownUrl?: string;
}

/** Throws CONNECTION_MISSING with this message if the credential does not match the schema. */
export function credentialOf<T>({ credential }: Pick<Access, 'credential'>, schema: z.ZodType<T>, message: string): T {
  const parsed = schema.safeParse(credential);
  if (parsed.success) return parsed.data;
  throw new CountersignError('CONNECTION_MISSING', message);
}

export const RISKS = ['low', 'medium', 'high'] as const;
export type Risk = (typeof RISKS)[number];

/** A write before it happens: its target, its fields, and the key that makes it happen once. */
export interface Proposal {
  /** `servicenow:acme:incident:9d38…`: the system and the record in it. A free-text name is replaced by its `shortHash`. */
  target: string;
  /** The values to write, under their names in the input: editing a field edits the input. */
  fields: Record<string, unknown>;
  /** The state that `before` will read after the write; absent if there is nothing to compare with. */
  after?: TouchedState;
  /** `{connector}:{operation}:{instance}:{target}:{hash of fields}`. */
  key: string;
  /** The environment of the target, if the input names it: policy and gates apply the stricter of it and the stage's. */
  environment?: 'prod' | 'staging' | 'dev';
  /** The input says that this write removes something that no later write can restore. */
  destructive?: true;
}

/** For a field and one of its values, what people call the value: the name of a group instead of its id. */
export type Names = Record<string, Record<string, string>>;

/** The state that `before` reads, with names for people. Names are never written, approved or compared. */
export interface Inspected {
  /** Absent if the write changes nothing that exists. */
  before?: TouchedState;
  names?: Names;
}

/** The target's records that the input of a call may give by name. A call is proposed with their ids only. */
export interface ReferencesByName {
  /** The fields whose value is a name and not an id. */
  named(input: unknown): string[];
  /** The input with ids instead of names. Throws INPUT_INVALID if a name is unknown or not unique. */
  resolve(input: unknown, access: Access): Promise<unknown>;
}

export interface WriteContext {
  access: Access;
  /** Operations of effect `probe` leave it at the target, and search for it when the response was lost. */
  mark: string;
  /** When the write was first intended, with no known outcome since: the target has no earlier trace of it. */
  openSince: string;
  /** The state that the write is about to change; absent if it is not known. */
  before?: TouchedState;
  /**
   * The state that an earlier attempt with unknown outcome read. If this write changes nothing, the earlier attempt
   * succeeded, and the undo restores this state.
   */
  first?: TouchedState;
  /** Only for `agent.session`: what the session gets with its prompt. */
  session?: SessionContract;
}

export interface Definition<Input> {
  /** `{connector}.{thing}.{verb}`, as a workflow step names it. */
  tool: string;
  /** One sentence for the documentation: what it does. */
  summary: string;
  effect: Effect;
  /** The minimum; a workflow step can raise the risk but not lower it. */
  risk: Risk;
  /** Removes something that no later write can restore. */
  destructive?: true;
  /** How often the call may be made, if the workflow does not say so; by default it depends on `destructive`. */
  attempts?(input: Input): number;
  /** An identical call of another run is another one: it is made again. */
  oncePerRun?: true;
  /** Workflows cannot use it: it only undoes a write of another tool. */
  undoOnly?: true;
  /** Whether `perform` can usually return a reversal. */
  reversible: boolean;
  /** The tenant's connection that the operation uses; absent if it calls no external system. */
  connection?: string;
  /** For an operation whose input names the connection. */
  connectionIn?(input: unknown): string | undefined;
  /** Made with `z.lazy`, like the schemas of responses: a function creates those of the tools that it uses, when it uses them. */
  input: z.ZodType<Input>;
  /** The output, for the documentation. The contract test of connectors compares it with the real output. */
  output: z.ZodType;
  /**
   * The input field that the target would format as markup. It is escaped, unless the input has `markdown: true`, which a
   * workflow may set for constant text only (`check-markdown.ts`).
   */
  markdownField?: string;
  /**
   * The input field that is a URL. The workflow writes scheme, host and the structure of path and query as constants;
   * values of expressions are encoded and stay in their segment or value (`url-template.ts`).
   */
  urlField?: string;
  /**
   * The fields that are written to the target. Every other field selects the target: a model may not fill it, and may
   * choose it only with an approval that shows this (`model-flow.ts`).
   */
  content?: readonly string[];
  /** The parts of `content` that name people or groups: `fields.assigned_to`. */
  recipients?: readonly string[];
  /** Fields that policy and approvers see but that an edit may not change, because they select the target. */
  fixed?: readonly string[];
  /** The output has ids and times of the target, and none of the written values. */
  returnsOnlyIds?: true;
  /** The output comes from a model. */
  asksModel?: true;
  byName?: ReferencesByName;
  propose(input: Input, instance: string): Proposal;
  /** Applies a person's edit of proposal fields to the input; by default the fields are properties of the input. */
  edited?(input: Input, fields: Record<string, unknown>): unknown;
  /** Reads only what the write would change, and never writes. */
  before?(input: Input, access: Access): Promise<TouchedState>;
  /** As `before`, for people to see: also finds the names behind the current and the new values. */
  inspect?(input: Input, access: Access): Promise<Inspected>;
  perform(input: Input, context: WriteContext): Promise<WriteResult>;
  /** Required for effect `probe`: finds what an earlier attempt wrote, or returns undefined if there is nothing. */
  probe?(input: Input, context: WriteContext): Promise<WriteResult | undefined>;
}

/** An operation as the worker uses it: `parse` checks the input, whose type the worker does not know. */
export type Operation = Required<Pick<Definition<unknown>, 'edited'>> &
  Omit<Definition<unknown>, 'edited'> & { parse(input: unknown): unknown };

/** For an operation with a `markdownField`: true if the text is the target's markup and must not be escaped. */
export const Markdown = z.boolean().optional().describe('`true`: the text is markup, and is not escaped');

export function operation<Input>(definition: Definition<Input>): Operation {
  if (definition.effect === 'probe' && !definition.probe) throw new Error(`${definition.tool} needs a probe function`);
  return {
    edited: (input, fields) => ({ ...(input as object), ...fields }),
    ...(definition as Definition<unknown>),
    parse: (input) => parsedInput(definition.input, definition.tool, input),
  };
}

export const connectorOf = (tool: string): string => tool.split('.')[0] ?? tool;

/** Replaces free text in targets and keys, because evidence shows them. */
export const shortHash = (text: string): string => sha256Hex(text).slice(0, 16);

export function writeKey(parts: string[], fields: unknown): string {
  const target = parts.join(':');
  const named = Buffer.byteLength(target) <= WRITE_TARGET_MAX_BYTES ? target : `${parts[0]}:${sha256Hex(target)}`;
  return `${named}:${hashOf(fields)}`;
}
/** A DynamoDB key has 2,048 bytes and also contains the tenant, a hash, a run and a step. A longer target is hashed. */
const WRITE_TARGET_MAX_BYTES = 1_024;

/** The same for every attempt at one write, and different for every other write. */
export const markOf = (tenant: string, key: string) => `countersign:${sha256Hex(`${tenant} ${key}`).slice(0, 20)}`;
