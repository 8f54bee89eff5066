import { closestMatch } from 'leven';

/** Longer names are not typing mistakes, and comparing them takes time. */
const NAME_MAX_CHARACTERS = 64;

/** `; did you mean "needs"?`, or nothing if no known name is close. */
export function didYouMean(name: string, known: readonly string[], show = (each: string) => `"${each}"`): string {
  if (name.length > NAME_MAX_CHARACTERS) return '';
  const close = closestMatch(name, known, { maxDistance: Math.min(Math.ceil(name.length / 3), name.length - 1) });
  return close === undefined ? '' : `; did you mean ${show(close)}?`;
}
