import type { StoredChunk } from '../agents/output.ts';
import { docOf, type Item, keyOf } from '../run/dynamo/dynamo-items.ts';
import { COMMIT_PREFIX, type Key, PERSON_PREFIX } from '../run/dynamo/dynamo-keys.ts';
import { commitOf } from '../run/dynamo/dynamo-stored-run.ts';
import type { NewRow, RemovedPerson } from './fan-out.ts';

/** Reads a row as a stream has it: bytes are in base64. Undefined for other rows in the same partitions. */
export function newRowOf(image: Item, sequenceNumber: string): NewRow | undefined {
  const bytes: unknown = image.doc?.B;
  const item: Item = typeof bytes === 'string' ? { ...image, doc: { B: Buffer.from(bytes, 'base64') } } : image;
  const key = keyOf(item);
  const place = { ...tenantAndRunOf(key.pk), sequenceNumber };
  if (key.sk.startsWith(COMMIT_PREFIX)) return { ...place, kind: 'commit', commit: commitOf(item) };
  const { isChunk, ...command } = commandOfOutput(key);
  return isChunk ? { ...place, kind: 'output', ...command, chunk: docOf<StoredChunk>(item) } : undefined;
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
