import { describe, expect, it } from 'vitest';
import { auditPath, leafHash, merkleRoot, rootOfPath } from '../../../lambdas/evidence/daily-log/merkle.ts';

/** The tree of the reference tests of Certificate Transparency: eight entries, and the root after each of them. */
const ENTRIES = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'];
const ROOTS = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];
const LEAVES = ENTRIES.map((hex) => leafHash(Buffer.from(hex, 'hex')));

describe('an audit path', () => {
  const places = LEAVES.flatMap((_, last) =>
    Array.from({ length: last + 1 }, (__, index) => ({ index, size: last + 1 })),
  );

  it('leads from each leaf of a tree of any size to its root', () => {
    for (const { index, size } of places) {
      const leaves = LEAVES.slice(0, size);
      const root = rootOfPath(leaves[index] as Buffer, { index, size, path: auditPath(leaves, index) });
      expect(root?.equals(merkleRoot(leaves)), `${index} of ${size}`).toBe(true);
    }
  });

  it('of the reference tests is the same', () => {
    expect(auditPath(LEAVES, 5).map((each) => each.toString('hex'))).toEqual([
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ]);
  });

  it('leads to no root or another one if leaf, index, size or a sibling is different, missing or added', () => {
    for (const { index, size } of places) {
      const leaves = LEAVES.slice(0, size);
      const [root, path, leaf] = [merkleRoot(leaves), auditPath(leaves, index), leaves[index] as Buffer];
      const others = [
        rootOfPath(leafHash(Buffer.from('other')), { index, size, path }),
        rootOfPath(leaf, { index, size, path: [...path, leaf] }),
        ...path.map((_, at) => rootOfPath(leaf, { index, size, path: path.toSpliced(at, 1) })),
        ...path.map((_, at) => rootOfPath(leaf, { index, size, path: path.with(at, leafHash(Buffer.from('x'))) })),
        ...leaves.flatMap((_, at) => (at === index ? [] : [rootOfPath(leaf, { index: at, size, path })])),
        rootOfPath(leaf, { index: size, size, path }),
      ];
      for (const each of others) expect(each?.equals(root) ?? false, `${index} of ${size}`).toBe(false);
    }
  });
});

describe('a Merkle tree', () => {
  it.each(ROOTS.map((root, size) => [size, root]))('of %i entries has the root of RFC 6962', (size, root) => {
    expect(merkleRoot(LEAVES.slice(0, Number(size))).toString('hex')).toBe(root);
  });

  it('has another root if an entry is changed, removed, added or moved', () => {
    const root = merkleRoot(LEAVES);
    for (const index of LEAVES.keys()) {
      const edited = LEAVES.with(index, leafHash(Buffer.from('other')));
      const moved = LEAVES.toSpliced(index, 1).toSpliced((index + 3) % 7, 0, LEAVES[index] as Buffer);
      for (const changed of [edited, moved, LEAVES.toSpliced(index, 1), [...LEAVES, LEAVES[index] as Buffer]]) {
        if (changed.every((leaf, at) => LEAVES[at]?.equals(leaf)) && changed.length === LEAVES.length) continue;
        expect(merkleRoot(changed).equals(root)).toBe(false);
      }
    }
  });
});
