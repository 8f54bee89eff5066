import { createHash } from 'node:crypto';

const HEBREW = 'אבגדהוזחטיךכלםמןנסעףפץצקרשת';

/** Letters that hardly compress, the same for the same seed. */
export function noise(seed: string, letters: number): string {
  return createHash('shake256', { outputLength: letters }).update(seed).digest('base64').slice(0, letters);
}

/** The same in letters of two bytes each. */
export function hebrewNoise(seed: string, letters: number): string {
  return noise(seed, letters).replace(/./g, (letter) => HEBREW[letter.charCodeAt(0) % HEBREW.length] ?? '');
}
