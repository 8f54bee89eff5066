import { readFileSync, writeFileSync } from 'node:fs';
import type { EvidenceDocument } from '../../../lambdas/evidence/bundle/document.ts';
import { type TrustedKey, trustedKeys } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { type HeldBundle, type Verdict, verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import type { Call, Option } from '../command.ts';
import { EXIT, Failure } from '../failure.ts';

export const KEY_OPTION: Option = {
  value: 'PEM',
  says: 'file with the public keys you trust: PEM, or countersign-keys.json of the stage',
};

export const FILE_DETAILS = [
  'FILE is bundle.json; its signed envelope, bundle.dsse.json, lies beside it under the same name.',
  'Nothing is asked over the network.',
].join('\n');

/** A bundle is two files, `X.json` and `X.dsse.json`; either one names both. */
export function bundleFiles(file: string): { document: string; envelope: string } {
  const name = file.replace(/(\.dsse)?\.json$/, '');
  return { document: `${name}.json`, envelope: `${name}.dsse.json` };
}

export function readBundle(call: Call): HeldBundle {
  const { document, envelope } = bundleFiles(call.positional(0));
  const key = call.text('key');
  return {
    document: readOrFail(document, 'the document'),
    envelope: readOrFail(envelope, 'the signed envelope'),
    keys: key === undefined ? [] : readKeys(key),
  };
}

export interface ReadEvidence {
  document: EvidenceDocument;
  verdict: Extract<Verdict, { summary: unknown }>;
}

/** What can be shown of a bundle. Of one that was tampered with that is nothing: nothing of it can be relied on. */
export function readEvidence(call: Call): ReadEvidence {
  const bundle = readBundle(call);
  const verdict = verifyBundle(bundle);
  if (verdict.verdict === 'tampered') {
    throw new Failure(EXIT.failed, `tampered: ${verdict.entry} ${verdict.problem}; nothing of it is shown`);
  }
  if (verdict.verdict === 'unreadable') throw unreadable(verdict.problem);
  return { document: JSON.parse(bundle.document.toString()), verdict };
}

export function readKeys(file: string): TrustedKey[] {
  const text = readOrFail(file, 'the key').toString();
  try {
    const keys = trustedKeys(text);
    if (keys.length > 0) return keys;
  } catch (cause) {
    throw unreadable(`${file} holds no usable key: ${cause instanceof Error ? cause.message : cause}`);
  }
  throw unreadable(`there is no public key in ${file}; one begins with -----BEGIN PUBLIC KEY-----`);
}

export function readOrFail(file: string, what: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    const why = reasonOf(cause);
    throw unreadable(why === 'ENOENT' ? `${what} ${file} is not there` : `${what} ${file} cannot be read: ${why}`);
  }
}

export function writeOrFail(file: string, content: string | Buffer): void {
  try {
    writeFileSync(file, content);
  } catch (cause) {
    throw unreadable(`${file} cannot be written: ${reasonOf(cause)}`);
  }
}

/** `EACCES`, as the operating system calls it. */
export const reasonOf = (cause: unknown) => (cause instanceof Error && 'code' in cause ? cause.code : cause);

/** It cannot be told whether it was tampered with, since a file cannot be read or written. */
export const unreadable = (message: string) => new Failure(EXIT.usage, message);
