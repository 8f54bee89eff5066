import { nestsTooDeep } from '../../entry/parse-json.ts';

/**
 * Limits that no sealed bundle comes near, so that a hostile file is refused in bounded time and memory. A run has at most
 * 1,000 steps.
 */
export const DOCUMENT_MAX_BYTES = 128 * 1024 * 1024;
export const ENVELOPE_MAX_BYTES = 64 * 1024;
export const EVENTS_MAX = 200_000;

/** Why a file is not read at all; undefined if it can be. */
export function beyondLimits(what: 'document' | 'envelope', bytes: Buffer): string | undefined {
  const problem = tooLarge(what, bytes.length);
  if (problem !== undefined) return problem;
  return nestsTooDeep(bytes) ? `the ${what} nests deeper than any bundle does` : undefined;
}

export function tooLarge(what: 'document' | 'envelope', size: number): string | undefined {
  const max = what === 'document' ? DOCUMENT_MAX_BYTES : ENVELOPE_MAX_BYTES;
  return size > max ? `the ${what} has ${size} bytes; a bundle has at most ${max}` : undefined;
}
