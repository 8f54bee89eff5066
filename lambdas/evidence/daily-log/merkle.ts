import { createHash } from 'node:crypto';

/**
 * Merkle trees of RFC 6962 (section 2.1). Leaves and nodes have different prefixes, so that a node cannot be used as an
 * entry. The left subtree has the largest power of two that is smaller than the size of the tree.
 */
const LEAF = Buffer.from([0x00]);
const NODE = Buffer.from([0x01]);

const sha256 = (...parts: Uint8Array[]) => createHash('sha256').update(Buffer.concat(parts)).digest();

export const leafHash = (entry: Uint8Array): Buffer => sha256(LEAF, entry);

const nodeHash = (left: Uint8Array, right: Uint8Array): Buffer => sha256(NODE, left, right);

/** Reads the leaves one by one. Stores only the roots of full trees, each larger than the one to its right. */
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

/** The siblings from a leaf up to the root (section 2.1.1). */
export function auditPath(leaves: readonly Buffer[], index: number): Buffer[] {
  if (leaves.length < 2) return [];
  const left = 2 ** Math.floor(Math.log2(leaves.length - 1));
  const [own, sibling] = [leaves.slice(0, left), leaves.slice(left)];
  return index < left
    ? [...auditPath(own, index), merkleRoot(sibling)]
    : [...auditPath(sibling, index - left), merkleRoot(own)];
}

/** The root that a leaf and its audit path lead to; undefined if a tree of this size has no such path (RFC 9162, section 2.1.3.2). */
export function rootOfPath(
  leaf: Buffer,
  { index, size, path }: { index: number; size: number; path: readonly Buffer[] },
): Buffer | undefined {
  if (index >= size) return undefined;
  let [root, at, last] = [leaf, index, size - 1];
  for (const sibling of path) {
    if (last === 0) return undefined;
    if (at % 2 === 1 || at === last) {
      root = nodeHash(sibling, root);
      while (at % 2 === 0 && at !== 0) [at, last] = [at / 2, Math.floor(last / 2)];
    } else root = nodeHash(root, sibling);
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  return last === 0 ? root : undefined;
}
