import { sha256Hex } from '../../run/canonical-json.ts';
import { dayOf } from '../../run/log-entry.ts';
import type { EvidenceRecord } from '../../run/run-store.ts';
import type { ObjectPart } from '../evidence-store.ts';

/**
 * An object with the bundles of several runs of a tenant, sealed together: for each run a line with its document and a line
 * with its envelope. Canonical JSON has no line breaks. The name is the SHA-256 of the content, so an object can only be
 * replaced by itself, and sealing the same runs again finds it.
 */
export class BundleObject {
  readonly #lines: Buffer[] = [];
  #bytes = 0;

  add(document: Buffer, envelope: Buffer): NonNullable<EvidenceRecord['within']> {
    return { document: this.#addLine(document), envelope: this.#addLine(envelope), envelopeBytes: envelope.length };
  }

  #addLine(line: Buffer): number {
    const at = this.#bytes;
    this.#lines.push(line, NEW_LINE);
    this.#bytes += line.length + NEW_LINE.length;
    return at;
  }

  content(): Buffer {
    return Buffer.concat(this.#lines);
  }
}

const NEW_LINE = Buffer.from('\n');

export const bundleObjectKey = (tenant: string, sealedAt: string, content: Buffer): string =>
  `evidence/${tenant}/bundles/${dayOf(sealedAt)}/${sha256Hex(content)}.jsonl`;

export const isBundleObject = (key: string): boolean => /(^|\/)bundles\/[^/]+\/[0-9a-f]{64}\.jsonl$/.test(key);

/** The bundles of an object, in order. A last document without an envelope has none. */
export function bundlesIn(content: Buffer): { document: Buffer; envelope: Buffer | undefined }[] {
  const lines: Buffer[] = [];
  for (let at = 0; at < content.length; ) {
    const end = content.indexOf(NEW_LINE, at);
    lines.push(content.subarray(at, end < 0 ? content.length : end));
    at = end < 0 ? content.length : end + NEW_LINE.length;
  }
  return lines.flatMap((document, index) => (index % 2 === 0 ? [{ document, envelope: lines[index + 1] }] : []));
}

/** Where the files of a bundle are stored. */
export function documentPlace({ documentKey, within, sizeBytes }: EvidenceRecord): [key: string, part?: ObjectPart] {
  return within ? [documentKey, { offset: within.document, sizeBytes }] : [documentKey];
}

export function envelopePlace({ envelopeKey, within }: EvidenceRecord): [key: string, part?: ObjectPart] {
  return within ? [envelopeKey, { offset: within.envelope, sizeBytes: within.envelopeBytes }] : [envelopeKey];
}
