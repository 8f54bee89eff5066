import { hashOf } from '../../run/canonical-json.ts';
import { type DocumentOutline, INDEXED_SECTIONS, type Index } from '../bundle/document.ts';
import type { DocumentTexts } from '../bundle/document-texts.ts';
import { entryName, type Problem } from './problem.ts';

/** Returns the first entry that differs from the signed index. */
export function checkIndex(document: DocumentOutline, texts: DocumentTexts, signedIndex: string): Problem | undefined {
  if (hashOf(document.index) !== signedIndex) {
    return { entry: 'index', problem: 'was edited: another index was signed, so no entry is reliable' };
  }
  for (const section of INDEXED_SECTIONS) {
    const problem = checkSection(section, document[section], document.index[section], texts.hashOf(section));
    if (problem) return problem;
  }
  return undefined;
}

type Hashes = string | readonly string[];

function checkSection(section: keyof Index, content: unknown, signed: Hashes, found: Hashes): Problem | undefined {
  if (typeof signed !== 'string' && typeof found !== 'string') return checkList(section, content, signed, found);
  return found === signed ? undefined : { entry: section, problem: 'was edited' };
}

function checkList(
  section: keyof Index,
  content: unknown,
  signed: readonly string[],
  found: readonly string[],
): Problem | undefined {
  const length = Math.max(signed.length, found.length);
  const at = Array.from({ length }).findIndex((_, index) => signed[index] !== found[index]);
  return at < 0 ? undefined : differenceAt(at, { section, entry: Object(content)[at], signed, found });
}

interface Lists {
  section: keyof Index;
  entry: unknown;
  signed: readonly string[];
  found: readonly string[];
}

/** Describes the first difference of the two lists, by the positions of each hash. */
function differenceAt(at: number, { section, entry: content, signed, found }: Lists): Problem {
  const entry = entryName(section, at, content);
  const [due, is] = [signed[at], found[at]];
  const isElsewhere = due !== undefined && found.includes(due);
  const wasElsewhere = is !== undefined && signed.includes(is);
  if (is !== undefined && found.indexOf(is) < at) return { entry, problem: 'is duplicated' };
  if (due === undefined) return { entry, problem: 'was added' };
  if (is === undefined || (wasElsewhere && !isElsewhere)) {
    return { entry: entryName(section, at), problem: `of ${signed.length} is missing` };
  }
  if (wasElsewhere) return { entry, problem: 'is in the wrong position' };
  return { entry, problem: isElsewhere ? 'was added' : 'was edited' };
}
