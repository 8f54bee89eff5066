import type { StoredChunk } from '../agents/output.ts';
import { docOf, type Item, keyOf } from '../run/dynamo/dynamo-items.ts';
import { COMMIT_PREFIX, type Key, PERSON_PREFIX } from '../run/dynamo/dynamo-keys.ts';
import { commitOf } from '../run/dynamo/dynamo-stored-run.ts';
import type { NewRow, RemovedPerson } from './fan-out.ts';

/**
 * A row as a stream has it: bytes are in base64. Undefined for other rows in the same partitions. Its content is read when it is
 * used, because most rows are of runs that nobody watches.
 */
export function newRowOf(image: Item, sequenceNumber: string): NewRow | undefined {
  const key = keyOf(image);
  const place = { ...tenantAndRunOf(key.pk), sequenceNumber };
  if (key.sk.startsWith(COMMIT_PREFIX)) {
    return {
      ...place,
      kind: 'commit',
      get commit() {
        return commitOf(withBytes(image));
      },
    };
  }
  const { isChunk, ...command } = commandOfOutput(key);
  if (!isChunk) return undefined;
  return {
    ...place,
    kind: 'output',
    ...command,
    get chunk() {
      return docOf<StoredChunk>(withBytes(image));
    },
  };
}

function withBytes(image: Item): Item {
  const bytes: unknown = image.doc?.B;
  return typeof bytes === 'string' ? { ...image, doc: { B: Buffer.from(bytes, 'base64') } } : image;
}

/** The person whose row was deleted. Undefined for other rows. */
export function removedPersonOf(keys: Item | undefined): RemovedPerson | undefined {
  if (!keys) return undefined;
  const { pk, sk } = keyOf(keys);
  return sk.startsWith(PERSON_PREFIX)
    ? { tenant: tenantAndRunOf(pk).tenant, person: sk.slice(PERSON_PREFIX.length) }
    : undefined;
}

function tenantAndRunOf(pk: string): { tenant: string; runId: string } {
  const [, tenant = '', runId = ''] = pk.split('#');
  return { tenant, runId };
}

function commandOfOutput({ sk }: Pick<Key, 'sk'>) {
  const [step, lease, rest = ''] = sk.split('#');
  return { stepIndex: Number(step), leaseVersion: Number(lease), isChunk: /^\d+$/.test(rest) };
}
