import type * as z from 'zod';
import { canonicalJson } from '../../run/canonical-json.ts';
import type { Signed } from '../bundle/bundle-claim.ts';
import { DocumentEntries, DocumentOutline, type EvidenceDocument } from '../bundle/document.ts';
import { DocumentTexts } from '../bundle/document-texts.ts';
import { checkChain } from './check-chain.ts';
import { checkIndex } from './check-index.ts';
import { checkReplay } from './check-replay.ts';
import { EVENTS_MAX } from './limits.ts';
import { entryName, type Problem } from './problem.ts';

/**
 * Returns the first problem of a document. Compares it with the signature part by part, so that the problem can be named.
 * All checks use the parsed JSON, not the output of zod, because the hashes are over the parsed JSON.
 */
export function checkDocument(bytes: Buffer, parsed: unknown, signed: Signed): Problem | undefined {
  const [outline, document] = [parsed as DocumentOutline, parsed as EvidenceDocument];
  const texts = new DocumentTexts(outline);
  try {
    return (
      checkSchema(DocumentOutline, parsed) ??
      checkSubject(outline, signed) ??
      checkChain(outline, texts, signed) ??
      checkIndex(outline, texts, signed.index) ??
      checkSchema(DocumentEntries, parsed) ??
      checkEvents(document) ??
      checkReplay(document) ??
      checkForm(bytes, texts.whole(document.index))
    );
  } catch (error) {
    if (hasCanonicalForm(parsed)) throw error;
    return { entry: 'document', problem: 'was edited: it contains a value without canonical form (RFC 8785)' };
  }
}

/** JSON can contain lone surrogates and numbers beyond a double. A sealed document never does. */
function hasCanonicalForm(value: unknown): boolean {
  try {
    return canonicalJson(value) !== '';
  } catch {
    return false;
  }
}

/** Returns the first difference from the format: `commits.3.at` is commit 4. */
function checkSchema(schema: z.ZodType, parsed: unknown): Problem | undefined {
  const [issue] = schema.safeParse(parsed).error?.issues ?? [];
  if (!issue) return undefined;
  const [section = 'document', index] = issue.path;
  const at = typeof index === 'number' ? index : undefined;
  const entry = at === undefined ? undefined : Object(parsed)[section]?.[at];
  const where = issue.path.slice(at === undefined ? 1 : 2).join('.');
  return {
    entry: entryName(String(section), at, entry),
    problem: `does not match the format: ${where ? `${where}: ` : ''}${issue.message}`,
  };
}

function checkEvents({ commits }: EvidenceDocument): Problem | undefined {
  const events = commits.reduce((sum, commit) => sum + commit.events.length, 0);
  if (events <= EVENTS_MAX) return undefined;
  return { entry: 'document', problem: `has ${events} events; no run has more than ${EVENTS_MAX}` };
}

function checkSubject({ run }: DocumentOutline, signed: Signed): Problem | undefined {
  const name = `${run.tenant}/${run.runId}`;
  if (name !== signed.subject) return { entry: 'run', problem: `is ${name}, the envelope is of ${signed.subject}` };
  if (run.status === signed.status) return undefined;
  return { entry: 'run', problem: `was edited: it ended as ${signed.status}, not as ${run.status}` };
}

/** All values are as signed; checks the form of the bytes. */
function checkForm(bytes: Buffer, text: string): Problem | undefined {
  if (bytes.equals(Buffer.from(text))) return undefined;
  return { entry: 'document', problem: 'is not in canonical form (RFC 8785): it was rewritten or edited' };
}
