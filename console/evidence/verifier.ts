import './node-in-browser/prepare.ts';
import type { KeyObject } from 'node:crypto';
import { type EvidenceText, evidenceText } from '../../bin/commands/evidence/evidence-text.ts';
import type { Addendum } from '../../lambdas/evidence/addendum/addendum.ts';
import type { EvidenceDocument } from '../../lambdas/evidence/bundle/document.ts';
import { PAYLOAD_TYPE, preAuthEncoding } from '../../lambdas/evidence/signing/dsse.ts';
import { type OpenedEnvelope, openEnvelope } from '../../lambdas/evidence/verify/open-envelope.ts';
import { type TrustedKey, trustedKeys } from '../../lambdas/evidence/verify/trusted-keys.ts';
import { type Verdict, verifyBundle } from '../../lambdas/evidence/verify/verify-bundle.ts';
import type { HeldFile, HeldFiles } from './held-files.ts';
import { BrowserBuffer } from './node-in-browser/buffer.ts';
import { checkSignature } from './node-in-browser/crypto.ts';

export interface Verified {
  verdict: Verdict;
  /** What the bundle says; undefined if it was tampered with or cannot be read: nothing in it is reliable then. */
  text: EvidenceText | undefined;
}

/** Verifies a bundle with the code of `countersign evidence verify`. Makes no request. */
export async function verify({ document, envelope, addenda, keys: keyFile }: HeldFiles): Promise<Verified> {
  const keys = keyFile === undefined ? [] : trustedKeys(keyFile);
  await checkSignatures([envelope, ...addenda.map((each) => each.envelope)], keys);
  const held = addenda.map((each) => ({
    name: each.name,
    document: buffer(each.document),
    envelope: each.envelope && buffer(each.envelope),
  }));
  const verdict = verifyBundle({ document: buffer(document), envelope: buffer(envelope), keys, addenda: held });
  return { verdict, text: 'summary' in verdict ? textOf(document, addenda, verdict) : undefined };
}

const buffer = (bytes: Uint8Array) => BrowserBuffer.from(bytes) as unknown as Buffer;

/** WebCrypto checks every signature with every key; the verifier then decides which one counts. */
async function checkSignatures(envelopes: readonly (Uint8Array | undefined)[], keys: readonly TrustedKey[]) {
  const opened = envelopes.flatMap((bytes) => (bytes === undefined ? [] : (tryToOpen(buffer(bytes)) ?? [])));
  for (const { signed: statement, signature } of opened) {
    const signed = preAuthEncoding(PAYLOAD_TYPE, statement);
    for (const { key } of keys) await checkSignature(key as BrowserKeyObject, signed, signature);
  }
}

type BrowserKeyObject = KeyObject & Parameters<typeof checkSignature>[0];

/** The verifier says what is wrong with an envelope that cannot be opened. */
function tryToOpen(bytes: Buffer): OpenedEnvelope | undefined {
  try {
    return openEnvelope(bytes);
  } catch {
    return undefined;
  }
}

function textOf(
  document: Uint8Array,
  held: readonly HeldFile[],
  verdict: Extract<Verdict, { summary: unknown }>,
): EvidenceText {
  const read = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes));
  const addenda = held.map((each): Addendum => read(each.document)).sort((a, b) => a.commit.seq - b.commit.seq);
  return evidenceText({ document: read(document) as EvidenceDocument, addenda, verdict });
}
