import * as z from 'zod';
import { ERROR_CODES, REQUEST_CODES } from '../../run/errors.ts';

export const PAGE_MAX = 100;
const PAGE_DEFAULT = 25;

export const Timestamp = z.string().meta({ format: 'date-time', example: '2026-11-17T09:30:00.000Z' });

/** A time in a request: with a time zone, or a day in UTC. */
export const PointInTime = z
  .union(
    [z.iso.datetime({ offset: true }), z.iso.date()],
    'use a time like 2026-11-17T09:30:00Z or a day like 2026-11-17',
  )
  // Without an example: /docs would fill it in as the value of each filter.
  .meta({ format: 'date-time', description: 'A time like 2026-11-17T09:30:00Z, or a day in UTC' });

type Json = z.core.util.JSONType;

/** Any JSON value of a request. Its body was parsed as JSON, so only a missing value is refused. */
export const JsonValue = z
  .unknown()
  .refine((value) => value !== undefined, 'is required')
  // Schemas with an ID are named components of the OpenAPI document.
  .meta({ id: 'JsonValue', description: 'Any JSON value' }) as unknown as z.ZodType<Json, Json>;

/** A JSON value that the contract does not describe further. `Type` is its type in the code. */
export const json = <Type = unknown>(description: string): z.ZodType<Type, Type> =>
  z.unknown().meta({ description }) as unknown as z.ZodType<Type, Type>;

/** The bytes of a file. */
export const FileBytes = z
  .custom<Uint8Array>((value) => value instanceof Uint8Array)
  .meta({ override: { type: 'string', format: 'binary' } });

/** Replaces a value that is too large for the response, or a part of one. */
export interface Omitted {
  omitted: { bytes: number; sha256: string };
}

/** A value whose large parts can be omitted. Types leave that out: clients print an omission like any other value. */
export const large = <Schema extends z.ZodType>(schema: Schema): z.ZodType<z.output<Schema>, z.input<Schema>> =>
  z.union([
    schema,
    json('The same value; each large part is `{ omitted: { bytes, sha256 } }`'),
  ]) as unknown as z.ZodType<z.output<Schema>, z.input<Schema>>;

/** The query of every list. */
export const PageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(PAGE_MAX).default(PAGE_DEFAULT),
  cursor: z.string().optional().meta({ description: 'nextCursor of the previous page' }),
});

/** A page of a list: the items under the list's own name, and the cursor of the next page or null. */
export const page = <Name extends string, Item extends z.ZodType>(name: Name, item: Item) =>
  z.object({ [name]: z.array(item), nextCursor: z.string().nullable() } as {
    [Key in Name]: z.ZodArray<Item>;
  } & { nextCursor: z.ZodNullable<z.ZodString> });

export const RecordedError = z
  .object({ code: z.enum(ERROR_CODES).meta({ id: 'ErrorCode' }), message: z.string() })
  .meta({ id: 'RecordedError' });

/** The body of every error, as `application/problem+json`. */
export const ProblemDetails = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.enum([...ERROR_CODES, ...REQUEST_CODES]).meta({ description: 'What went wrong; it never changes' }),
    detail: z.string().meta({ description: 'What is wrong and what to do, for people' }),
    server_time: Timestamp.optional().meta({
      description: 'With `SIGNATURE_EXPIRED`: to correct the clock of an agent',
    }),
  })
  .meta({ id: 'Problem' });

export const runParams = z.object({
  id: z.string().meta({ description: 'ID of the run, or its first characters if no other run starts with them' }),
});
