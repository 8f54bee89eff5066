import { canonicalJson, listText, objectText, sha256Hex } from '../../run/canonical-json.ts';
import type { EvidenceCommit } from './commit-entry.ts';
import { type DocumentOutline, INDEXED_SECTIONS, type Index } from './document.ts';

/** Without the index, which is made of the hashes of entries. */
type Parts = Omit<DocumentOutline, 'index'>;

/**
 * The canonical texts of the parts of a document. Each entry and each commit is written once, when it is needed first: for its
 * hash, and for the text of the document. Throws for a part without canonical form.
 */
export class DocumentTexts {
  readonly #parts: Parts;
  readonly #commits: CommitTexts[] = [];
  readonly #entries: Partial<Record<keyof Index, string | string[]>> = {};

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** `sha256(JCS({seq, prevHash, at, events}))`, over the events as shown. */
  hashOfCommit(at: number): string {
    const { start, end } = this.#commit(at);
    return sha256Hex(`${start},${end}`);
  }

  /** The hash of an entry, or of each entry of a list. */
  hashOf(section: keyof Index): string | string[] {
    const texts = this.#entry(section);
    return Array.isArray(texts) ? texts.map(sha256Hex) : sha256Hex(texts);
  }

  whole(index: Index): string {
    const { format, head, commits } = this.#parts;
    const texts: Record<string, string> = {
      format: canonicalJson(format),
      index: canonicalJson(index),
      commits: listText(commits.map(({ hash }, at) => wholeCommit(this.#commit(at), hash))),
      head: canonicalJson(head),
    };
    for (const section of INDEXED_SECTIONS) {
      const entry = this.#entry(section);
      texts[section] = Array.isArray(entry) ? listText(entry) : entry;
    }
    return objectText(texts);
  }

  #commit(at: number): CommitTexts {
    this.#commits[at] ??= commitTexts(this.#parts.commits[at] as EvidenceCommit);
    return this.#commits[at];
  }

  #entry(section: keyof Index): string | string[] {
    const entry = this.#parts[section];
    this.#entries[section] ??= Array.isArray(entry) ? entry.map(canonicalJson) : canonicalJson(entry);
    return this.#entries[section];
  }
}

/** The members of a commit before and after its hash, in order. */
interface CommitTexts {
  start: string;
  end: string;
}

const commitTexts = ({ seq, prevHash, at, events }: EvidenceCommit): CommitTexts => ({
  start: `{"at":${canonicalJson(at)},"events":${canonicalJson(events)}`,
  end: `"prevHash":${canonicalJson(prevHash)},"seq":${canonicalJson(seq)}}`,
});

const wholeCommit = ({ start, end }: CommitTexts, hash: string) => `${start},"hash":${canonicalJson(hash)},${end}`;

/** The sha256 of the canonical form of each entry. */
export function indexOf(texts: DocumentTexts): Index {
  return Object.fromEntries(INDEXED_SECTIONS.map((section) => [section, texts.hashOf(section)])) as Index;
}
