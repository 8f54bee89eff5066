import { createHash } from 'node:crypto';

/**
 * Merkle trees as RFC 6962 (section 2.1) hashes them. Leaves and nodes begin with different bytes, so that nobody can pass
 * a node off as an entry; the left half of a tree is the largest power of two that leaves something for the right.
 */
const LEAF = Buffer.from([0x00]);
const NODE = Buffer.from([0x01]);

const sha256 = (...parts: Uint8Array[]) => createHash('sha256').update(Buffer.concat(parts)).digest();

export const leafHash = (entry: Uint8Array): Buffer => sha256(LEAF, entry);

const nodeHash = (left: Uint8Array, right: Uint8Array): Buffer => sha256(NODE, left, right);

export function merkleRoot(leaves: readonly Buffer[]): Buffer {
  const [only] = leaves;
  if (!only) return sha256();
  if (leaves.length === 1) return only;
  const left = leftSize(leaves.length);
  return nodeHash(merkleRoot(leaves.slice(0, left)), merkleRoot(leaves.slice(left)));
}

/** The largest power of two below the size. */
function leftSize(size: number): number {
  let left = 1;
  while (left * 2 < size) left *= 2;
  return left;
}
