/**
 * SHA-256 (FIPS 180-4). The verifier hashes synchronously, and WebCrypto hashes only asynchronously. Tests compare it with
 * the hash of Node.js.
 */
const BLOCK_BYTES = 64;
const WORDS = 64;

/** The first 32 bits of the fractional parts of the roots of the first primes, as the standard defines its constants. */
function constants(): { initial: Uint32Array; round: Uint32Array } {
  const fraction = (value: number) => Math.floor((value - Math.floor(value)) * 2 ** 32);
  const primes: number[] = [];
  for (let candidate = 2; primes.length < WORDS; candidate += 1) {
    if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate);
  }
  return {
    initial: Uint32Array.from(primes.slice(0, 8), (prime) => fraction(Math.sqrt(prime))),
    round: Uint32Array.from(primes, (prime) => fraction(Math.cbrt(prime))),
  };
}

const { initial: INITIAL, round: ROUND } = constants();

export function sha256(data: Uint8Array): Uint8Array {
  const state = INITIAL.slice();
  const schedule = new Uint32Array(WORDS);
  const padded = withPadding(data);
  const view = new DataView(padded.buffer);
  for (let at = 0; at < padded.length; at += BLOCK_BYTES) compress(state, schedule, view, at);
  const digest = new Uint8Array(32);
  const out = new DataView(digest.buffer);
  for (const [index, word] of state.entries()) out.setUint32(index * 4, word);
  return digest;
}

/** A one bit, zeros, and the length in bits as 64 bits. */
function withPadding(data: Uint8Array): Uint8Array<ArrayBuffer> {
  const blocks = Math.ceil((data.length + 9) / BLOCK_BYTES);
  const padded = new Uint8Array(blocks * BLOCK_BYTES);
  padded.set(data);
  padded[data.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(data.length / 2 ** 29));
  view.setUint32(padded.length - 4, (data.length * 8) % 2 ** 32);
  return padded;
}

const rotated = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));

function compress(state: Uint32Array, schedule: Uint32Array, view: DataView, at: number): void {
  const w = (index: number) => schedule[index] as number;
  for (let index = 0; index < 16; index += 1) schedule[index] = view.getUint32(at + index * 4);
  for (let index = 16; index < WORDS; index += 1) {
    const [early, late] = [w(index - 15), w(index - 2)];
    const s0 = rotated(early, 7) ^ rotated(early, 18) ^ (early >>> 3);
    const s1 = rotated(late, 17) ^ rotated(late, 19) ^ (late >>> 10);
    schedule[index] = (w(index - 16) + s0 + w(index - 7) + s1) | 0;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let index = 0; index < WORDS; index += 1) {
    const s1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
    const choice = (e & f) ^ (~e & g);
    const first = (h + s1 + choice + (ROUND[index] as number) + w(index)) | 0;
    const s0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const second = (s0 + majority) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + second) | 0;
  }
  for (const [index, word] of [a, b, c, d, e, f, g, h].entries()) {
    state[index] = ((state[index] as number) + word) | 0;
  }
}
