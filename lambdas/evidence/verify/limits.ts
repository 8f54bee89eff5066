import { nestsTooDeep } from '../../entry/parse-json.ts';

/**
 * Limits that no sealed bundle comes near, so that a hostile file is refused in bounded time and memory. A run has at most
 * 1,000 steps.
 */
export const DOCUMENT_MAX_BYTES = 128 * 1024 * 1024;
const ENVELOPE_MAX_BYTES = 64 * 1024;
export const EVENTS_MAX = 200_000;
/** Of one commit. */
const ADDENDUM_MAX_BYTES = 16 * 1024 * 1024;
/** A day with 200,000 bundles has a tenth of this. V8 reads no longer text. */
const LOG_MAX_BYTES = 500 * 1024 * 1024;

/** The bundles of a batch: those before the largest one have at most 16 MB. */
const BUNDLES_MAX_BYTES = 2 * DOCUMENT_MAX_BYTES;

const MAX_BYTES = {
  document: DOCUMENT_MAX_BYTES,
  bundles: BUNDLES_MAX_BYTES,
  envelope: ENVELOPE_MAX_BYTES,
  addendum: ADDENDUM_MAX_BYTES,
  log: LOG_MAX_BYTES,
} as const;
export type LimitedFile = keyof typeof MAX_BYTES;

/** Why a file is not read at all; undefined if it can be. */
export function beyondLimits(what: LimitedFile, bytes: Buffer): string | undefined {
  const problem = tooLarge(what, bytes.length);
  if (problem !== undefined) return problem;
  return nestsTooDeep(bytes) ? `the ${what} nests deeper than any bundle does` : undefined;
}

export function tooLarge(what: LimitedFile, size: number): string | undefined {
  const max = MAX_BYTES[what];
  const of = what === 'document' || what === 'envelope' ? 'a bundle' : `the largest ${what}`;
  return size > max ? `the ${what} has ${size} bytes; ${of} has at most ${max}` : undefined;
}
