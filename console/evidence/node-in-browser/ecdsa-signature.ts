/** KMS and Node.js write an ECDSA signature as DER: a sequence of two integers. WebCrypto takes two numbers of 32 bytes. */
const NUMBER_BYTES = 32;
const SEQUENCE = 0x30;
const INTEGER = 0x02;

/** True if the bytes are exactly the DER form of two positive numbers of at most 32 bytes. */
export function isDer(signature: Uint8Array): boolean {
  const parts = numbersIn(signature);
  if (!parts) return false;
  const again = derOf(parts);
  return again.length === signature.length && again.every((byte, index) => byte === signature[index]);
}

export function rawSignature(signature: Uint8Array): Uint8Array<ArrayBuffer> {
  const raw = new Uint8Array(2 * NUMBER_BYTES);
  numbersIn(signature)?.forEach((number, index) => {
    raw.set(number, (index + 1) * NUMBER_BYTES - number.length);
  });
  return raw;
}

/** The two numbers, without leading zeros. */
function numbersIn(signature: Uint8Array): [Uint8Array, Uint8Array] | undefined {
  if (signature[0] !== SEQUENCE || signature[1] !== signature.length - 2) return undefined;
  const first = numberAt(signature, 2);
  const second = first && numberAt(signature, first.end);
  return second?.end === signature.length && first ? [first.number, second.number] : undefined;
}

function numberAt(bytes: Uint8Array, at: number): { number: Uint8Array; end: number } | undefined {
  const length = bytes[at + 1] ?? 0;
  const start = at + 2;
  const content = bytes.slice(start, start + length);
  const leading = content.findIndex((byte) => byte !== 0);
  const number = leading < 0 ? new Uint8Array() : content.slice(leading);
  if (bytes[at] !== INTEGER || content.length !== length || number.length === 0) return undefined;
  return number.length > NUMBER_BYTES ? undefined : { number, end: start + length };
}

/** An integer that begins with a one bit would be negative, so a zero goes before it. */
function derOf(numbers: readonly Uint8Array[]): number[] {
  const content = numbers.flatMap((number) => {
    const bytes = (number[0] ?? 0) >= 0x80 ? [0, ...number] : [...number];
    return [INTEGER, bytes.length, ...bytes];
  });
  return [SEQUENCE, content.length, ...content];
}
