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

/** Leaves are taken one by one: all that is held are the roots of full trees, each larger than the one to its right. */
export function merkleRoot(leaves: Iterable<Buffer>): Buffer {
  const full: { root: Buffer; size: number }[] = [];
  for (const leaf of leaves) {
    let [root, size] = [leaf, 1];
    for (let left = full.at(-1); left?.size === size; left = full.at(-1)) {
      full.pop();
      [root, size] = [nodeHash(left.root, root), 2 * size];
    }
    full.push({ root, size });
  }
  const last = full.pop();
  if (!last) return sha256();
  return full.reduceRight((right, { root }) => nodeHash(root, right), last.root);
}
