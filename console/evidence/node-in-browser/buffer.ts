/** Without the static functions of `Uint8Array`, which have other parameters than those of `Buffer`. */
const Bytes = Uint8Array as unknown as new (source: number | ArrayLike<number>) => Uint8Array<ArrayBuffer>;

/** The parts of `Buffer` that the verifier uses. It is written for Node.js, and runs in browsers unchanged. */
export class BrowserBuffer extends Bytes {
  static from(source: string | ArrayLike<number>, encoding?: unknown): BrowserBuffer {
    if (typeof source !== 'string') return new BrowserBuffer(source);
    if (encoding === 'hex')
      return new BrowserBuffer((source.match(/../g) ?? []).map((digits) => Number.parseInt(digits, 16)));
    return new BrowserBuffer(encoding === 'base64' ? fromBase64(source) : new TextEncoder().encode(source));
  }

  static concat(parts: readonly Uint8Array[]): BrowserBuffer {
    const all = new BrowserBuffer(parts.reduce((bytes, { length }) => bytes + length, 0));
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  static byteLength(text: string): number {
    return new TextEncoder().encode(text).length;
  }

  equals(other: Uint8Array): boolean {
    return this.length === other.length && this.every((byte, index) => byte === other[index]);
  }

  override toString(encoding = 'utf8'): string {
    if (encoding === 'hex') return [...this].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    if (encoding === 'base64') return btoa(Array.from(this, (byte) => String.fromCharCode(byte)).join(''));
    return new TextDecoder().decode(this);
  }
}

/** Text that is not base64 has no bytes; callers compare with the text that they began with. */
function fromBase64(text: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
