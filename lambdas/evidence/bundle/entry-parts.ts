import * as z from 'zod';
import { digestOf, Sha256, textDigest } from '../../run/digest.ts';
import type { RecordedError } from '../../run/errors.ts';

/** Parts of entries. */
export const Count = z.int().nonnegative();
/** UTC with milliseconds, as `toISOString` writes it, so that each time has one form. */
export const Time = z.iso.datetime({ precision: 3 });
export const Digest = z.strictObject({ sha256: Sha256, bytes: Count });
/** A part of a target that derives from a model. */
export const DerivedPart = z.strictObject({
  field: z.string(),
  how: z.enum(['carried', 'chosen']),
  from: z.array(z.string()),
});
/** What policy knows about a write besides its values. */
export const actionFacts = {
  effect: z.string(),
  risk: z.string(),
  blastRadius: z.string(),
  environment: z.string(),
  destructive: z.boolean(),
  reversible: z.boolean(),
  undo: z.boolean(),
};
export const WorkflowVersion = z.strictObject({ name: z.string(), version: z.int() });

export const Failure = z.strictObject({ code: z.string(), message: Digest });

/** The message may quote a response or an input, so only its digest is shown. */
export const describeFailure = ({ code, message }: RecordedError): z.infer<typeof Failure> => ({
  code,
  message: textDigest(message),
});

const SCALAR = z.strictObject({ type: z.literal(['null', 'boolean', 'number']) });
/** In UTF-16 code units. */
const STRING = z.strictObject({ type: z.literal('string'), length: Count });
const ARRAY = z.strictObject({ type: z.literal('array'), items: Count });
const OBJECT = z.strictObject({ type: z.literal('object'), size: Count });

/** The type and size of a JSON value. */
const FlatShape = z.discriminatedUnion('type', [SCALAR, STRING, ARRAY, OBJECT]);
type FlatShape = z.infer<typeof FlatShape>;
const NamedObject = OBJECT.extend({ properties: z.record(z.string(), FlatShape).optional() });
const Shape = z.discriminatedUnion('type', [SCALAR, STRING, ARRAY, NamedObject]);

export const Described = Digest.extend({ shape: Shape });
export type Described = z.infer<typeof Described>;

const PROPERTIES_SHOWN_MAX = 50;
const LOOKS_LIKE_A_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;

/**
 * Digest and shape of a value. Names of properties are shown only if the workflow or a connector chose them, and only
 * at the top level, because other names may be text of a payload.
 */
export function described(value: unknown, names: 'ours' | 'foreign'): Described {
  const shape = shapeOf(value);
  if (shape.type !== 'object' || names === 'foreign' || shape.size > PROPERTIES_SHOWN_MAX) {
    return { ...digestOf(value), shape };
  }
  const properties = Object.fromEntries(
    Object.entries(value as object)
      .filter(([name, each]) => LOOKS_LIKE_A_NAME.test(name) && each !== undefined)
      .map(([name, each]) => [name, shapeOf(each)]),
  );
  return { ...digestOf(value), shape: { properties, ...shape } };
}

/** In canonical order. */
function shapeOf(value: unknown): FlatShape {
  if (value === null || value === undefined) return { type: 'null' };
  if (typeof value === 'string') return { length: value.length, type: 'string' };
  if (Array.isArray(value)) return { items: value.length, type: 'array' };
  if (typeof value === 'object') {
    return { size: Object.values(value).filter((each) => each !== undefined).length, type: 'object' };
  }
  return { type: typeof value === 'boolean' ? 'boolean' : 'number' };
}
