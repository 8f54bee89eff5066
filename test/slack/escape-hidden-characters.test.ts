import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  escapeAndCut,
  escapeHidden,
  escapeInPieces,
  hasHiddenCharacters,
  isolateDirection,
} from '../../lambdas/slack/escape-hidden-characters.ts';
import { hostileText, TRICKS, UNSEEN } from './hostile-text.ts';

const SEED = 20_260_102;

/** The original of an escaped text. */
const original = (shown: string): string =>
  shown.replace(/⟦U\+([0-9A-F]+)⟧|↵/g, (sign, code?: string) =>
    code === undefined ? (sign === '↵' ? '\n' : sign) : String.fromCodePoint(Number.parseInt(code, 16)),
  );

describe('an escaped text', () => {
  it.each([
    ['safe\u202Egnp', 'safe⟦U+202E⟧gnp'],
    ['zero\u200Bwidth', 'zero⟦U+200B⟧width'],
    ['a\nb', 'a↵b'],
    ['tab\tand\u00A0space', 'tab⟦U+0009⟧and⟦U+00A0⟧space'],
    ['\u{E0041}', '⟦U+E0041⟧'],
    ['\uD83D', '⟦U+D83D⟧'],
    ['⟦U+202E⟧', '⟦U+27E6⟧U+202E⟦U+27E7⟧'],
    ['e\u0301\u0301\u0301\u0301\u0301', 'e\u0301\u0301\u0301\u0301⟦U+0301⟧'],
    ['Zürich, 東京, שלום, 👩 ⚠\uFE0F', 'Zürich, 東京, שלום, 👩 ⚠\uFE0F'],
    ['no\uFE0F', 'no⟦U+FE0F⟧'],
  ])('of %j is %j', (text, shown) => {
    expect(escapeHidden(text)).toBe(shown);
    expect(hasHiddenCharacters(text)).toBe(shown.includes('⟦'));
  });

  it('has no invisible characters, for any text', () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        expect(escapeHidden(text).replaceAll(/\p{Extended_Pictographic}\uFE0F/gu, '')).not.toMatch(UNSEEN);
      }),
      { seed: SEED },
    );
  });

  it('is different for any two different texts', () => {
    fc.assert(
      fc.property(hostileText, (text) => original(escapeHidden(text)) === text),
      { seed: SEED },
    );
  });

  it('is cut at its limit, never within an escape, and has the number of omitted characters', () => {
    fc.assert(
      fc.property(hostileText, fc.nat({ max: 300 }), (text, max) => {
        const { shown, hidden } = escapeAndCut(text, max, 'one');
        expect(shown.length).toBeLessThanOrEqual(max);
        expect([...original(shown)].length + hidden).toBe([...text].length);
        expect(text.startsWith(original(shown))).toBe(true);
      }),
      { seed: SEED },
    );
  });

  it('is complete when its pieces are joined', () => {
    fc.assert(
      fc.property(hostileText, fc.integer({ min: 12, max: 50 }), (text, max) => {
        const found = escapeInPieces(text, max);
        expect(found.every((piece) => piece.length <= max)).toBe(true);
        expect(original(found.join(''))).toBe(text);
      }),
      { seed: SEED },
    );
  });

  it('in a right-to-left script cannot reorder its neighbours', () => {
    expect(isolateDirection('שלום')).toBe('\u2068שלום\u2069');
    expect(isolateDirection('Größe 12 → 13')).toBe('Größe 12 → 13');
    expect(
      TRICKS.map(escapeHidden)
        .map(isolateDirection)
        .filter((text) => /[\u0590-\u08FF]/.test(text)),
    ).toEqual([expect.stringMatching(/^\u2068.*\u2069$/)]);
  });
});
