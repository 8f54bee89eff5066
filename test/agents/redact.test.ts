import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MASK, Redactor, redact } from '../../lambdas/agents/redact.ts';
import { anyCharacter } from '../fakes/any-character.ts';

/** What a command may print instead of the value itself. `core` is the part that depends on the value only. */
const ENCODINGS: Record<string, (value: string, before: string, after: string) => { text: string; core: string }> = {
  exact: (value, before, after) => ({ text: before + value + after, core: value }),
  base64: (value, before, after) => inBase64(value, before, after, 'base64'),
  base64url: (value, before, after) => inBase64(value, before, after, 'base64url'),
  'base64 in lines': (value, before, after) => {
    const { text, core } = inBase64(value, before, after, 'base64');
    return { text: text.replace(/.{76}/g, '$&\n'), core };
  },
  hex: (value, before, after) => ({ text: Buffer.from(before + value + after).toString('hex'), core: hexOf(value) }),
  'hex in upper case': (value) => ({ text: hexOf(value).toUpperCase(), core: hexOf(value).toUpperCase() }),
  'hex with colons': (value) => ({ text: hexOf(value).replace(/..(?=.)/g, '$&:'), core: hexOf(value) }),
  'URL encoding': (value, before, after) => ({
    text: encodeURIComponent(before) + encodeURIComponent(value) + encodeURIComponent(after),
    core: encodeURIComponent(value),
  }),
  'URL encoding of every byte': (value) => {
    const text = hexOf(value).replace(/../g, '%$&');
    return { text, core: text };
  },
  'form encoding': (value) => {
    const text = new URLSearchParams({ password: value }).toString();
    return { text, core: text.slice('password='.length) };
  },
  JSON: (value) => ({ text: JSON.stringify({ value }), core: JSON.stringify(value).slice(1, -1) }),
};

const hexOf = (value: string) => Buffer.from(value).toString('hex');

function inBase64(value: string, before: string, after: string, alphabet: 'base64' | 'base64url') {
  const text = Buffer.from(before + value + after).toString(alphabet);
  const firstBit = Buffer.byteLength(before) * 8;
  const lastBit = firstBit + Buffer.byteLength(value) * 8;
  return { text, core: text.slice(Math.ceil(firstBit / 6), Math.floor(lastBit / 6)) };
}

const secret = fc.oneof(
  fc.string({ minLength: 12, maxLength: 120 }),
  fc.string({ minLength: 12, maxLength: 40, unit: anyCharacter }).filter((text) => text.isWellFormed()),
  fc.string({ minLength: 12, maxLength: 40, unit: fc.constantFrom(...'aA-_+/%"\\ é0') }),
  fc.string({ minLength: 12, maxLength: 24, unit: fc.constantFrom(...'ab') }),
);
const noise = fc.string({ maxLength: 60 });
const cuts = fc.array(fc.nat(), { maxLength: 12 });

function inChunks(text: string, points: readonly number[]): string[] {
  const at = [0, ...points.map((point) => point % (text.length + 1)), text.length].sort((one, other) => one - other);
  return at.slice(1).map((end, index) => text.slice(at[index], end));
}

function throughChunks(text: string, points: readonly number[], values: readonly string[]): string {
  const redactor = new Redactor(values);
  return (
    inChunks(text, points)
      .map((chunk) => redactor.push(chunk))
      .join('') + redactor.end()
  );
}

describe('the redactor', () => {
  it.each(Object.keys(ENCODINGS))('hides every value in %s, however the stream is cut', (name) => {
    const encode = ENCODINGS[name] ?? (() => ({ text: '', core: '' }));
    fc.assert(
      fc.property(secret, noise, noise, cuts, (value, before, after, points) => {
        const { text, core } = encode(value, before, after);
        const shown = throughChunks(text, points, [value]);
        expect(core.length).toBeGreaterThan(0);
        expect(shown.replace(/\n/g, '')).not.toContain(core);
        expect(shown).toContain(MASK);
        expect(shown).toBe(redact(text, [value]));
      }),
      { numRuns: 100 },
    );
  });

  it('returns text without secrets unchanged', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'abc \n%\\é😀') }), cuts, (text, points) => {
        expect(throughChunks(text, points, ['XYZ-not-in-the-text'])).toBe(text);
      }),
    );
  });

  it('changes nothing in what it has redacted', () => {
    const printed = fc.array(fc.oneof(noise, fc.constantFrom(...EXAMPLES)), { maxLength: 8 });
    fc.assert(
      fc.property(printed, (parts) => {
        const once = redact(parts.join(' '));
        expect(redact(once)).toBe(once);
      }),
    );
  });

  it('withholds only what could be the beginning of a secret', () => {
    const redactor = new Redactor(['hunter2-hunter2']);
    expect(redactor.push('Restarting hunt')).toBe('Restarting ');
    expect(redactor.push('ing lodges\n')).toBe('hunting lodges\n');
    expect(redactor.held).toBe(0);
    expect(redactor.push(' hunter2-hunter')).toBe(' ');
    expect(redactor.push('2 done')).toBe(`${MASK} done`);
  });

  it('hides the part of a value with which the stream ends, from half of its length on', () => {
    expect(redact('key=0123456789', ['0123456789abcdef'])).toBe(`key=${MASK}`);
    expect(redact('key=01234', ['0123456789abcdef'])).toBe('key=01234');
  });

  it('shows one mask for values that overlap or follow each other', () => {
    expect(redact('abcdefgh', ['abcdef', 'efgh'])).toBe(MASK);
    expect(redact('abcdabcd', ['abcd'])).toBe(MASK);
  });

  it('hides the lines of a secret with several lines', () => {
    const key = 'MIIEvQIBADANBgkqhkiG9w0BAQ\nAoIBAQC7VJTUt9Us8cKjMzEfYy';
    expect(redact('  AoIBAQC7VJTUt9Us8cKjMzEfYy\r\n', [key])).toBe(`  ${MASK}\r\n`);
  });

  it('withholds a bounded number of characters of any stream', () => {
    const value = 'a'.repeat(200);
    const redactor = new Redactor([value, 'b64value-b64value']);
    const inputs = [
      'a'.repeat(199),
      '\n'.repeat(5_000),
      '%61'.repeat(3_000),
      'eyJ'.repeat(10_000),
      'password='.repeat(2_000),
    ];
    for (const input of inputs.flatMap((text) => [text, ...text.slice(0, 3_000)])) {
      redactor.push(input);
      expect(redactor.held).toBeLessThan(10_000);
    }
  });
});

const EXAMPLES = [
  'AKIAIOSFODNN7EXAMPLE',
  `ghp_${'a1B2'.repeat(9)}`,
  `github_pat_${'a1B2_'.repeat(9)}`,
  `xoxb-${'123456-'.repeat(4)}`,
  `hvs.${'CAESI-_x'.repeat(4)}`,
  `csk_${'aZ09_-x'.repeat(6)}`,
  `eyJ${'hbGciOi'.repeat(3)}.${'eyJzdWIi'.repeat(3)}.${'c2lnbmF0'.repeat(3)}`,
  'https://user:swordfish@db.example/orders',
  'Authorization: Bearer 0123456789abcdef',
  'export DB_PASSWORD="correct horse"',
  '"client_secret": "0123456789"',
  '-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn\n-----END RSA PRIVATE KEY-----',
];

describe('tokens with a known shape', () => {
  it.each([
    ['id AKIAIOSFODNN7EXAMPLE.', `id ${MASK}.`],
    [`token ghp_${'a1B2'.repeat(9)}\n`, `token ${MASK}\n`],
    [`vault hvs.${'CAESI-_x'.repeat(4)} ok`, `vault ${MASK} ok`],
    [`${EXAMPLES[6]} x`, `${MASK} x`],
    ['https://user:swordfish@db.example/orders', `https://user:${MASK}@db.example/orders`],
    ['> authorization: bearer 0123456789abcdef', `> authorization: bearer ${MASK}`],
    ['DB_PASSWORD=swordfish PORT=5432', `DB_PASSWORD=${MASK} PORT=5432`],
    ['{"password" : "swordfish"}', `{"password" : "${MASK}"}`],
    [
      '-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END PRIVATE KEY-----\nok',
      `-----BEGIN PRIVATE KEY-----${MASK}-----END PRIVATE KEY-----\nok`,
    ],
  ])('%j is shown as %j', (text, shown) => {
    expect(redact(text)).toBe(shown);
    const redactor = new Redactor();
    expect([...text].map((character) => redactor.push(character)).join('') + redactor.end()).toBe(shown);
  });

  it.each([
    'task-force-of-the-longest-names-in-town',
    'https://db.example:5432/orders?since=12:30@now',
    'the password: 12 characters or more',
    'eyJ is how encoded JSON begins',
    'AKIA and ASIA are prefixes',
    'ssh://git@github.com/acme/app.git',
  ])('%j is not changed', (text) => {
    expect(redact(text)).toBe(text);
  });
});
