import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { hasExactFields } from './second-fields.ts';
import { matchesCommits } from './second-replay.ts';

/**
 * A second verifier, written from docs/evidence-format.md and docs/evidence-log.md alone and sharing no code with the
 * first: if both agree on the vectors, the documents are complete. It only finds that something is wrong; the first one
 * also names it.
 */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Fields = { [name: string]: Json };

const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
const PAYLOAD_TYPE = 'application/vnd.in-toto+json';
const BUNDLE_TYPE = 'https://countersign.dev/evidence/v1';
const ADDENDUM_TYPE = 'https://countersign.dev/evidence-addendum/v1';
const BATCH_TYPE = 'https://countersign.dev/evidence-batch/v1';
const LOG_TYPE = 'https://countersign.dev/evidence-log/v1';

export const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');

/** "Canonical form": for the values of a bundle, strings and numbers as ECMAScript writes them, and sorted names. */
export function canonical(value: Json): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name] ?? null)}`).join(',')}}`;
}

export const at = (value: Json | undefined, name: string): Json => (value as Fields | undefined)?.[name] ?? null;
export const listAt = (value: Json | undefined, name: string): Json[] => at(value, name) as Json[];

const namesOf = (value: Json | undefined) =>
  Object.keys(value as Fields)
    .sort()
    .join();

/** Whether all checks succeed; a check that throws fails. */
function holds(...checks: (() => boolean)[]): boolean {
  try {
    return checks.every((check) => check());
  } catch {
    return false;
  }
}

/** The numbers are those of the steps under "Verifying". */
export function isGenuine(document: string, envelope: string, publicKey: string): boolean {
  const read = (): Json => JSON.parse(document);
  const statement = () => statementIn(envelope);
  const predicate = () => at(statement(), 'predicate');
  return holds(
    () =>
      ['', ',rulesBroken'].some((more) => isEnvelope(envelope, BUNDLE_TYPE, `count,head,index,keyId${more},status`)), // 1
    () => isSigned(envelope, createPublicKey(publicKey)), // 2
    () => ['countersign.evidence/1', 'countersign.evidence/2'].includes(String(at(read(), 'format'))), // 3
    () => subjectOf(statement()).name === `${at(at(read(), 'run'), 'tenant')}/${at(at(read(), 'run'), 'runId')}`, // 4
    () => at(predicate(), 'status') === at(at(read(), 'run'), 'status'),
    () => isWhole(read(), predicate()), // 5
    () => sha256(canonical(at(read(), 'index'))) === at(predicate(), 'index'), // 6
    () => canonical(indexOf(read())) === canonical(at(read(), 'index')),
    () => hasExactFields(read()), // 7
    () => matchesCommits(read()), // 8
    () => canonical(read()) === document && subjectOf(statement()).sha256 === sha256(document), // 9
  );
}

/** "Addenda", of a bundle that is genuine. */
export function areGenuineAddenda(
  bundle: string,
  addenda: readonly { document: string; envelope: string }[],
  publicKey: string,
): boolean {
  return holds(() => {
    const { head, run } = JSON.parse(bundle) as { head: Fields; run: Fields };
    let [hash, count] = [head.hash, Number(head.count)];
    const read = addenda.map((each) => ({ ...each, addendum: JSON.parse(each.document) as Fields }));
    const seqOf = ({ addendum }: (typeof read)[number]) => Number(at(at(addendum, 'commit'), 'seq'));
    return read
      .sort((a, b) => seqOf(a) - seqOf(b))
      .every(({ addendum, document, envelope }) => {
        const { hash: own, ...commit } = at(addendum, 'commit') as Fields;
        const subject = subjectOf(statementIn(envelope));
        const predicate = at(statementIn(envelope), 'predicate');
        const genuine =
          isEnvelope(envelope, ADDENDUM_TYPE, 'bundle,count,head,keyId') &&
          isSigned(envelope, createPublicKey(publicKey)) &&
          canonical(addendum) === document &&
          namesOf(addendum) === 'bundle,commit,format,runId,tenant' &&
          namesOf(commit) === 'at,events,prevHash,seq' &&
          addendum.format === 'countersign.evidence-addendum/1' &&
          addendum.tenant === run.tenant &&
          addendum.runId === run.runId &&
          addendum.bundle === sha256(bundle) &&
          subject.name === `${addendum.tenant}/${addendum.runId}/${commit.seq}` &&
          subject.sha256 === sha256(document) &&
          at(predicate, 'bundle') === addendum.bundle &&
          at(predicate, 'head') === own &&
          at(predicate, 'count') === commit.seq &&
          sha256(canonical(commit)) === own &&
          !(commit.events as Fields[]).some(({ type }) => type === 'write.intended' || type === 'step.claimed') &&
          commit.seq === count + 1 &&
          commit.prevHash === hash;
        [hash, count] = [own, count + 1];
        return genuine;
      });
  });
}

const signatureIn = (envelope: string) => listAt(JSON.parse(envelope), 'signatures')[0];
const payloadIn = (envelope: string) => Buffer.from(String(at(JSON.parse(envelope), 'payload')), 'base64');
const statementIn = (envelope: string): Json => JSON.parse(payloadIn(envelope).toString());

function subjectOf(statement: Json): { name: Json; sha256: Json } {
  const [subject] = listAt(statement, 'subject');
  return { name: at(subject, 'name'), sha256: at(at(subject, 'digest'), 'sha256') };
}

/** "The envelope", but for the signature itself. */
function isEnvelope(envelope: string, predicateType: string, predicate: string): boolean {
  const [read, signature, payload] = [JSON.parse(envelope), signatureIn(envelope), payloadIn(envelope)];
  const statement = statementIn(envelope);
  const [subject] = listAt(statement, 'subject');
  const isStrict = (text: Json) => Buffer.from(String(text), 'base64').toString('base64') === text;
  return (
    canonical(read) === envelope &&
    ['payload,payloadType,signatures', 'batch,payload,payloadType,signatures'].includes(namesOf(read)) &&
    isInBatch(envelope) &&
    at(read, 'payloadType') === PAYLOAD_TYPE &&
    listAt(read, 'signatures').length === 1 &&
    namesOf(signature) === 'keyid,sig' &&
    isStrict(at(read, 'payload')) &&
    isStrict(at(signature, 'sig')) &&
    canonical(statement) === payload.toString() &&
    namesOf(statement) === '_type,predicate,predicateType,subject' &&
    at(statement, '_type') === STATEMENT_TYPE &&
    listAt(statement, 'subject').length === 1 &&
    namesOf(subject) === 'digest,name' &&
    namesOf(at(subject, 'digest')) === 'sha256' &&
    at(statement, 'predicateType') === predicateType &&
    namesOf(at(statement, 'predicate')) === predicate &&
    at(at(statement, 'predicate'), 'keyId') === at(signature, 'keyid')
  );
}

/** "Batches": an envelope without `batch` is not in one. */
function isInBatch(envelope: string): boolean {
  const batch = at(JSON.parse(envelope), 'batch');
  if (batch === null) return !envelope.includes('"batch":');
  const text = batchPayloadIn(envelope).toString();
  const statement = JSON.parse(text) as Json;
  const [subject] = listAt(statement, 'subject');
  const [index, size, path] = [at(batch, 'index'), at(at(statement, 'predicate'), 'size'), listAt(batch, 'path')];
  const own = createHash('sha256')
    .update(Buffer.from([0]))
    .update(payloadIn(envelope))
    .digest();
  return (
    namesOf(batch) === 'index,path,payload' &&
    Buffer.from(text).toString('base64') === at(batch, 'payload') &&
    canonical(statement) === text &&
    namesOf(statement) === '_type,predicate,predicateType,subject' &&
    at(statement, '_type') === STATEMENT_TYPE &&
    at(statement, 'predicateType') === BATCH_TYPE &&
    namesOf(at(statement, 'predicate')) === 'keyId,size' &&
    at(at(statement, 'predicate'), 'keyId') === at(signatureIn(envelope), 'keyid') &&
    listAt(statement, 'subject').length === 1 &&
    namesOf(subject) === 'digest,name' &&
    at(subject, 'name') === 'batch' &&
    namesOf(at(subject, 'digest')) === 'sha256' &&
    [index, size].every(Number.isSafeInteger) &&
    Number(index) >= 0 &&
    Number(index) < Number(size) &&
    Number(size) >= 2 &&
    path.every((sibling) => /^[0-9a-f]{64}$/.test(String(sibling))) &&
    rootFrom(own, Number(index), Number(size), path.map(String)) === at(at(subject, 'digest'), 'sha256')
  );
}

/** The root of a tree of `size` leaves: the last sibling of the path is the other half of the whole tree. */
function rootFrom(leaf: Buffer, index: number, size: number, path: readonly string[]): string | undefined {
  if (size === 1) return path.length === 0 ? leaf.toString('hex') : undefined;
  let left = 1;
  while (left * 2 < size) left *= 2;
  const [inner, sibling] = [path.slice(0, -1), path.at(-1)];
  const isLeft = index < left;
  const own = isLeft ? rootFrom(leaf, index, left, inner) : rootFrom(leaf, index - left, size - left, inner);
  if (own === undefined || sibling === undefined) return undefined;
  return sha256(Buffer.from(`01${isLeft ? `${own}${sibling}` : `${sibling}${own}`}`, 'hex'));
}

const batchPayloadIn = (envelope: string) =>
  Buffer.from(String(at(at(JSON.parse(envelope), 'batch'), 'payload')), 'base64');

function isSigned(envelope: string, key: KeyObject): boolean {
  const payload = at(JSON.parse(envelope), 'batch') === null ? payloadIn(envelope) : batchPayloadIn(envelope);
  const signed = Buffer.concat([Buffer.from(`DSSEv1 28 ${PAYLOAD_TYPE} ${payload.length} `), payload]);
  const digest = key.asymmetricKeyType === 'ed25519' ? null : 'sha256';
  return verify(digest, signed, key, Buffer.from(String(at(signatureIn(envelope), 'sig')), 'base64'));
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
  const count = listAt(document, 'commits').length;
  const { head } = document as Fields;
  const signed = { hash: at(predicate, 'head'), count: at(predicate, 'count') };
  return (
    canonical(head ?? null) === canonical({ hash: prevHash, count }) && canonical(signed) === canonical(head ?? null)
  );
}

const ONE_ENTRY = ['run', 'trigger', 'awsRequestsAtLeast', 'versions'];
const LISTS = ['steps', 'decisions', 'approvals', 'receipts', 'cost'];

/** "The index". */
export function indexOf(document: Json): Json {
  const hashed = (entry: Json) => sha256(canonical(entry));
  return Object.fromEntries([
    ...ONE_ENTRY.map((section) => [section, hashed(at(document, section))]),
    ...LISTS.map((section) => [section, listAt(document, section).map(hashed)]),
  ]);
}

/** "The log of a day", with the Merkle root that RFC 6962 gives. */
export function isGenuineLog(document: string, envelope: string, publicKey: string): boolean {
  const log = () => JSON.parse(document) as Fields;
  const statement = () => statementIn(envelope);
  return holds(
    () => isEnvelope(envelope, LOG_TYPE, 'keyId,previous,root,size'),
    () => isSigned(envelope, createPublicKey(publicKey)),
    () => canonical(log()) === document,
    () => namesOf(log()) === 'day,entries,format,previous,root,size,tenant',
    () => log().format === 'countersign.evidence-log/1',
    () =>
      listAt(log(), 'entries').every((entry) => /^(addendum,)?count,head,runId,sealedAt,sha256$/.test(namesOf(entry))),
    () => log().size === listAt(log(), 'entries').length,
    () => log().root === rootOf(listAt(log(), 'entries').map(leaf)).toString('hex'),
    () => isSorted(listAt(log(), 'entries').map(placeInLog)),
    () => subjectOf(statement()).name === `${log().tenant}/${log().day}`,
    () => subjectOf(statement()).sha256 === sha256(document),
    () => {
      const { keyId: _, ...predicate } = at(statement(), 'predicate') as Fields;
      const { size = null, root = null, previous = null } = log();
      return canonical(predicate) === canonical({ size, root, previous });
    },
  );
}

/** By time, then run, then number of the addendum. */
const placeInLog = (entry: Json) =>
  `${at(entry, 'sealedAt')} ${at(entry, 'runId')} ${String(at(entry, 'addendum') ?? '').padStart(8)}`;

export const isSorted = (places: readonly string[]) =>
  places.every((place, index) => index === 0 || (places[index - 1] ?? '') < place);

const hash = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest();
const leaf = (entry: Json) => hash(Buffer.from([0]), Buffer.from(canonical(entry)));

function rootOf(hashes: Buffer[]): Buffer {
  const [only] = hashes;
  if (only === undefined) return hash();
  if (hashes.length === 1) return only;
  const split = 2 ** Math.ceil(Math.log2(hashes.length) - 1);
  return hash(Buffer.from([1]), rootOf(hashes.slice(0, split)), rootOf(hashes.slice(split)));
}
