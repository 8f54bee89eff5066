import { codesOf, TextFinder } from './text-finder.ts';
import type { Found } from './views.ts';

/** A run of characters of one kind. */
interface Part {
  characters: RegExp;
  min: number;
  max: number;
  /** Hidden in the output. The other parts only show that it is a token. */
  hidden: boolean;
}

/** A kind of token that is recognized without knowing its value. */
interface Shape {
  /** In lower case if `anyCase`. */
  beginnings: readonly string[];
  anyCase?: true;
  parts: readonly Part[];
  /** The beginning is part of the token. */
  hidesBeginning: boolean;
}

/** A token whose end has not come after this many characters is hidden as it arrives: this bounds what is withheld. */
const WITHHELD_MAX = 4_096;

const hidden = (characters: RegExp, min: number, max = Number.POSITIVE_INFINITY): Part => ({
  characters,
  min,
  max,
  hidden: true,
});
const shown = (characters: RegExp, min: number, max: number): Part => ({ characters, min, max, hidden: false });

const token = (beginnings: readonly string[], characters: RegExp, min: number): Shape => ({
  beginnings,
  parts: [hidden(characters, min)],
  hidesBeginning: true,
});

const WORD = /[\w-]/;
const VALUE = /[^\s"'&,;<>]/;

const SHAPES: readonly Shape[] = [
  token(['AKIA', 'ASIA'], /[A-Z0-9]/, 16),
  token(['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_'], /\w/, 20),
  token(['glpat-', 'xoxb-', 'xoxp-', 'xoxa-', 'xoxe-', 'xoxs-', 'xapp-'], WORD, 16),
  token(['hvs.', 'hvb.', 'hvr.'], WORD, 20),
  token(['csk_', 'cse_', 'npm_', 'dop_v1_', 'pypi-', 'SG.'], /[\w.-]/, 24),
  token(['sk_live_', 'rk_live_', 'sk_test_', 'sk-ant-', 'sk-proj-'], WORD, 20),
  token(['AIza'], WORD, 35),
  // A JSON web token: two parts with a dot between them, and what follows.
  {
    beginnings: ['eyJ'],
    parts: [hidden(WORD, 10, WITHHELD_MAX), hidden(/\./, 1, 1), hidden(WORD, 10, WITHHELD_MAX), hidden(/[\w.-]/, 0)],
    hidesBeginning: true,
  },
  // Base64 between the lines of a private key; a backslash because the line breaks may be escaped.
  {
    beginnings: ['', 'RSA ', 'EC ', 'DSA ', 'OPENSSH ', 'ENCRYPTED '].map(
      (kind) => `-----BEGIN ${kind}PRIVATE KEY-----`,
    ),
    parts: [hidden(/[\w+/=\s\\:,]/, 16)],
    hidesBeginning: false,
  },
  // The password in a URL.
  {
    beginnings: ['://'],
    parts: [shown(/[^\s/:@"'<>]/, 0, 200), shown(/:/, 1, 1), hidden(/[^\s/@"'<>]/, 1, 500), shown(/@/, 1, 1)],
    hidesBeginning: false,
  },
  {
    beginnings: ['authorization: bearer ', 'authorization: basic ', 'x-vault-token: ', 'x-api-key: '],
    anyCase: true,
    parts: [hidden(VALUE, 8)],
    hidesBeginning: false,
  },
  {
    beginnings: ['password', 'passwd', 'secret_access_key', 'client_secret', 'api_key', 'access_token', 'auth_token'],
    anyCase: true,
    parts: [
      shown(/["']/, 0, 1),
      shown(/\s/, 0, 3),
      shown(/[=:]/, 1, 1),
      shown(/\s/, 0, 3),
      shown(/["']/, 0, 1),
      hidden(VALUE, 6),
    ],
    hidesBeginning: false,
  },
];

/** A beginning that was found, and how far the characters after it agree with its shape. */
interface Candidate {
  shape: Shape;
  part: number;
  /** Characters of the current part. */
  count: number;
  hiddenFrom: number;
  hiddenTo: number;
  isToken: boolean;
}

const BEGINNING_MAX = 64;
const isWordCode = (code: number): boolean => /\w/.test(String.fromCharCode(code));
const lowerCase = (code: number): number => (code >= 65 && code <= 90 ? code + 32 : code);

/** Finds tokens by their shape in a stream, one character at a time. */
export class TokenShapes {
  readonly #exact = new Beginnings(SHAPES.filter(({ anyCase }) => !anyCase));
  readonly #anyCase = new Beginnings(SHAPES.filter(({ anyCase }) => anyCase));
  /** The last characters, as a ring. */
  readonly #recent = new Uint16Array(BEGINNING_MAX);
  /** At most one of each shape: a second one within the first would end where the first ends. */
  #candidates: Candidate[] = [];

  take(code: number, offset: number, found: Found): void {
    if (this.#candidates.length > 0) {
      const character = String.fromCharCode(code);
      this.#candidates = this.#candidates.filter((candidate) => accepts(candidate, character, offset));
      for (const { isToken, hiddenFrom, hiddenTo } of this.#candidates) if (isToken) found(hiddenFrom, hiddenTo);
    }
    this.#recent[offset % BEGINNING_MAX] = code;
    this.#begin(this.#exact, code, offset);
    this.#begin(this.#anyCase, lowerCase(code), offset);
  }

  get heldFrom(): number {
    const held = this.#candidates.filter(({ isToken, hiddenFrom }) => !isToken && hiddenFrom >= 0);
    const { pendingFrom } = this.#exact.finder;
    const beginning = this.#followsWord(pendingFrom) ? Number.POSITIVE_INFINITY : pendingFrom;
    return Math.min(beginning, ...held.map(({ hiddenFrom }) => hiddenFrom));
  }

  /** No token has begun, not even its first character. */
  get isIdle(): boolean {
    const pending = [this.#exact, this.#anyCase].some(({ finder }) => Number.isFinite(finder.pendingFrom));
    return !pending && this.#candidates.length === 0;
  }

  /** In `task-force`, no token begins with `sk-`. */
  #followsWord(offset: number): boolean {
    if (offset === 0 || !Number.isFinite(offset)) return false;
    return isWordCode(this.#recent[(offset - 1) % BEGINNING_MAX] ?? 0);
  }

  #begin({ finder, shapes }: Beginnings, code: number, offset: number): void {
    const from = finder.take(code, offset);
    const shape = from < 0 ? undefined : shapes[finder.found];
    if (!shape || this.#candidates.some((candidate) => candidate.shape === shape)) return;
    if (shape.hidesBeginning && this.#followsWord(from)) return;
    const hiddenFrom = shape.hidesBeginning ? from : -1;
    this.#candidates.push({ shape, part: 0, count: 0, hiddenFrom, hiddenTo: offset + 1, isToken: false });
  }
}

class Beginnings {
  readonly finder: TextFinder;
  /** The shape of each beginning. */
  readonly shapes: readonly Shape[];

  constructor(shapes: readonly Shape[]) {
    this.finder = new TextFinder(shapes.flatMap(({ beginnings }) => beginnings.map(codesOf)));
    this.shapes = shapes.flatMap((shape) => shape.beginnings.map(() => shape));
  }
}

/** Whether the candidate continues with this character. */
function accepts(candidate: Candidate, character: string, offset: number): boolean {
  for (;;) {
    const part = candidate.shape.parts[candidate.part];
    if (!part) return false;
    if (candidate.count < part.max && part.characters.test(character)) {
      candidate.count += 1;
      if (part.hidden) {
        if (candidate.hiddenFrom < 0) candidate.hiddenFrom = offset;
        candidate.hiddenTo = offset + 1;
      }
      const rest = candidate.shape.parts.slice(candidate.part + 1);
      candidate.isToken = candidate.count >= part.min && rest.every(({ min }) => min === 0);
      return true;
    }
    if (candidate.count < part.min) return false;
    candidate.part += 1;
    candidate.count = 0;
  }
}
