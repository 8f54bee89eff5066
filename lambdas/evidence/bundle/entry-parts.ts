import * as z from 'zod';
import { Sha256, textDigest } from '../../run/digest.ts';
import type { RecordedError } from '../../run/errors.ts';

/** What the entries of a document are made of. */
export const Count = z.int().nonnegative();
/** In UTC with milliseconds, as `toISOString` spells it: one way to write the same moment. */
export const Time = z.iso.datetime({ precision: 3 });
export const Digest = z.strictObject({ sha256: Sha256, bytes: Count });
/** A part of a target that derives from a model. */
export const DerivedPart = z.strictObject({
  field: z.string(),
  how: z.enum(['carried', 'chosen']),
  from: z.array(z.string()),
});
export const WorkflowVersion = z.strictObject({ name: z.string(), version: z.int() });

export const Failure = z.strictObject({ code: z.string(), message: Digest });

/** A message may quote what a target answered or what a step was given; the code says what happened. */
export const describeFailure = ({ code, message }: RecordedError): z.infer<typeof Failure> => ({
  code,
  message: textDigest(message),
});
