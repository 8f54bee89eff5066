import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Addendum } from '../../../lambdas/evidence/addendum/addendum.ts';
import type { EvidenceDocument } from '../../../lambdas/evidence/bundle/document.ts';
import { type LimitedFile, tooLarge } from '../../../lambdas/evidence/verify/limits.ts';
import { type TrustedKey, trustedKeys } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import type { HeldAddendum } from '../../../lambdas/evidence/verify/verify-addenda.ts';
import { type HeldBundle, type Verdict, verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import type { Call } from '../command.ts';
import { EXIT, Failure } from '../failure.ts';
import { readFile } from '../read-file.ts';
import { bundleFiles } from './bundle-names.ts';

export function readBundle(call: Call): HeldBundle {
  const { document, envelope } = bundleFiles(call.arg(0));
  const key = call.option('key');
  return {
    document: readBounded(document, 'document'),
    envelope: readEnvelope(envelope),
    keys: key === undefined ? [] : readKeys(key),
    addenda: readAddenda(document),
  };
}

/** The size is checked first: a file that is no bundle may not fit into memory. */
function readBounded(file: string, what: LimitedFile): Buffer<ArrayBuffer> {
  const { refused, content } = readLimited(file, what);
  if (refused !== undefined) throw unreadable(`${file} is not a bundle: ${refused}`);
  return content;
}

/** A file that is far too large has no content here. */
export function readLimited(file: string, what: LimitedFile): { content: Buffer<ArrayBuffer>; refused?: string } {
  const refused = tooLarge(what, statSync(file, { throwIfNoEntry: false })?.size ?? 0);
  return refused === undefined ? { content: readFile(file) } : { content: Buffer.alloc(0), refused };
}

/** A file and its envelope, if it exists. */
export function readSigned(file: string, what: LimitedFile) {
  const document = readLimited(file, what);
  const beside = file.replace(/json$/, 'dsse.json');
  const envelope = existsSync(beside) ? readLimited(beside, 'envelope') : undefined;
  const refused = document.refused ?? envelope?.refused;
  return {
    document: document.content,
    envelope: envelope?.content,
    ...(refused !== undefined && { refused }),
  };
}

function readEnvelope(file: string): Buffer<ArrayBuffer> {
  if (existsSync(file)) return readBounded(file, 'envelope');
  throw new Failure(
    EXIT.usage,
    `${file} does not exist; the signature of a bundle must be beside it, as evidence get writes it`,
  );
}

/** The addenda beside a bundle, as `evidence get` or the bucket names them. */
export function readAddenda(document: string): HeldAddendum[] {
  const folder = dirname(document);
  const name = basename(document, '.json');
  const prefixes = [`${name}.addendum-`, ...(name === 'bundle' ? ['addendum-'] : [])];
  return readdirSync(folder)
    .filter((file) => prefixes.some((prefix) => file.startsWith(prefix)) && /\d\.json$/.test(file))
    .map((file) => ({ name: file, ...readSigned(join(folder, file), 'addendum') }));
}

export interface ReadEvidence {
  document: EvidenceDocument;
  /** What was recorded after the end of the run, in order. */
  addenda: Addendum[];
  verdict: Extract<Verdict, { summary: unknown }>;
}

/** Fails for a bundle that was tampered with: nothing in it is reliable. */
export function readEvidence(call: Call): ReadEvidence {
  const bundle = readBundle(call);
  const verdict = verifyBundle(bundle);
  if (verdict.verdict === 'tampered') {
    const { entry, problem } = verdict;
    throw new Failure(EXIT.failed, `tampered: ${entry} ${problem}; the bundle is not shown`);
  }
  if (verdict.verdict === 'unreadable') throw unreadable(verdict.problem);
  const addenda = (bundle.addenda ?? []).map((each): Addendum => JSON.parse(each.document.toString()));
  addenda.sort((a, b) => a.commit.seq - b.commit.seq);
  return { document: JSON.parse(bundle.document.toString()), addenda, verdict };
}

export function readKeys(file: string): TrustedKey[] {
  const text = readFile(file).toString();
  try {
    const keys = trustedKeys(text);
    if (keys.length > 0) return keys;
  } catch (cause) {
    throw unreadable(`${file} contains no usable key: ${cause instanceof Error ? cause.message : cause}`);
  }
  throw unreadable(`${file} contains no public key; expected -----BEGIN PUBLIC KEY-----`);
}

/** A file cannot be read, so the bundle is neither valid nor tampered. */
export const unreadable = (message: string) => new Failure(EXIT.usage, message);
