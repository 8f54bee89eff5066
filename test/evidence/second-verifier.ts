import { createHash, createPublicKey, verify } from 'node:crypto';

/**
 * A second verifier, written from docs/evidence-format.md alone and sharing no code with the first: if both say the same
 * of the vectors, the document says enough. It finds that something is wrong; naming it well is the first one's work.
 */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type Fields = { [name: string]: Json };

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');

/** "Canonical form": for what a bundle holds, ECMAScript's own spelling of strings and numbers, and sorted names. */
export function canonical(value: Json): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name] ?? null)}`).join(',')}}`;
}

const at = (value: Json | undefined, name: string): Json => (value as Fields | undefined)?.[name] ?? null;
const listAt = (value: Json, name: string): Json[] => at(value, name) as Json[];

export function isGenuine(document: string, envelope: string, publicKey: string): boolean {
  try {
    const statement = signedStatement(JSON.parse(envelope), publicKey);
    if (canonical(JSON.parse(envelope)) !== envelope || statement === undefined) return false;
    const [subject] = listAt(statement, 'subject');
    const predicate = at(statement, 'predicate');
    const parsed: Json = JSON.parse(document);
    const run = at(parsed, 'run');
    return (
      at(at(subject, 'digest'), 'sha256') === sha256(document) &&
      at(subject ?? null, 'name') === `${at(run, 'tenant')}/${at(run, 'runId')}` &&
      canonical(parsed) === document &&
      isWhole(parsed, predicate) &&
      isIndexed(parsed, predicate)
    );
  } catch {
    return false;
  }
}

/** "The envelope": the statement, if this key signed it. */
function signedStatement(envelope: Json, publicKey: string): Json | undefined {
  const [signature] = listAt(envelope, 'signatures');
  const payload = Buffer.from(String(at(envelope, 'payload')), 'base64');
  const type = String(at(envelope, 'payloadType'));
  const signed = Buffer.concat([Buffer.from(`DSSEv1 ${type.length} ${type} ${payload.length} `), payload]);
  const key = createPublicKey(publicKey);
  const digest = key.asymmetricKeyType === 'ed25519' ? null : 'sha256';
  if (!verify(digest, signed, key, Buffer.from(String(at(signature ?? null, 'sig')), 'base64'))) return undefined;
  const statement: Json = JSON.parse(payload.toString());
  return at(at(statement, 'predicate'), 'keyId') === at(signature ?? null, 'keyid') ? statement : undefined;
}

/** "The chain". */
function isWhole(document: Json, predicate: Json): boolean {
  const { tenant, runId } = at(document, 'run') as Fields;
  let prevHash = sha256(canonical({ tenant: tenant ?? null, runId: runId ?? null }));
  for (const [index, commit] of listAt(document, 'commits').entries()) {
    const { hash, ...rest } = commit as Fields;
    if (rest.seq !== index + 1 || rest.prevHash !== prevHash || sha256(canonical(rest)) !== hash) return false;
    prevHash = hash;
  }
  const { count, head } = predicate as Fields;
  return count === listAt(document, 'commits').length && head === prevHash && at(at(document, 'head'), 'hash') === head;
}

/** "The index". */
function isIndexed(document: Json, predicate: Json): boolean {
  const index = at(document, 'index') as Fields;
  const hashed = (entry: Json) => sha256(canonical(entry));
  const fits = Object.entries(index).every(([section, was]) => {
    const entry = at(document, section);
    return canonical(Array.isArray(entry) ? entry.map(hashed) : hashed(entry)) === canonical(was);
  });
  return fits && sha256(canonical(index)) === at(predicate, 'index');
}
