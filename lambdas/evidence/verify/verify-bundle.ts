import { tryParseJsonBytes } from '../../entry/parse-json.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import { dayOf } from '../../run/log-entry.ts';
import type { TerminalStatus } from '../../run/run.ts';
import { type Signed, signedIn } from '../bundle/bundle-claim.ts';
import { BUNDLE_FORMATS, type EvidenceDocument } from '../bundle/document.ts';
import { checkDocument } from './check-document.ts';
import { beyondLimits } from './limits.ts';
import { type OpenedEnvelope, openEnvelope } from './open-envelope.ts';
import type { Problem } from './problem.ts';
import { checkRules } from './rules/check-rules.ts';
import type { RulesReport } from './rules/rule.ts';
import { checkKey, signingKey, type TrustedKey } from './trusted-keys.ts';
import { type HeldAddendum, verifyAddenda } from './verify-addenda.ts';

/** A bundle and the keys that the auditor trusts. Verification needs no AWS and no network. */
export interface HeldBundle {
  document: Buffer;
  envelope: Buffer;
  keys: readonly TrustedKey[];
  /** What was recorded after the end of the run, in any order. */
  addenda?: readonly HeldAddendum[];
}

export interface Summary {
  tenant: string;
  runId: string;
  status: TerminalStatus;
  sha256: string;
  head: string;
  commits: number;
  steps: number;
  decisions: number;
  approvals: number;
  receipts: number;
  addenda: number;
  keyId: string;
}

/** Two results: `intact` says that nothing was changed, `rules` what the run did. */
interface Intact {
  intact: true;
  summary: Summary;
  rules: RulesReport;
}

export type Verdict =
  /** Intact, and the run followed the rules, or intact, and it did not. */
  | (Intact & { verdict: 'valid' | 'rules_broken'; signedBy: Pick<TrustedKey, 'algorithm' | 'fingerprint'> })
  /** Consistent, but no key was given to check the signature, so anybody could have made it. */
  | (Intact & { verdict: 'unproven' })
  | ({ verdict: 'tampered' } & Problem)
  | { verdict: 'unreadable'; problem: string };

/** Verifies a bundle together with its addenda. */
export function verifyBundle({ addenda = [], ...bundle }: HeldBundle): Verdict {
  const verdict = verifyAlone(bundle);
  if (!('summary' in verdict) || addenda.length === 0) return verdict;
  const found = verifyAddenda(verdict.summary, addenda, bundle.keys);
  if ('problem' in found) return { verdict: 'tampered', ...found };
  return { ...verdict, summary: { ...verdict.summary, addenda: found.addenda.length } };
}

function verifyAlone({ document, envelope, keys }: Omit<HeldBundle, 'addenda'>): Verdict {
  const refused = beyondLimits('envelope', envelope) ?? beyondLimits('document', document);
  if (refused !== undefined) return { verdict: 'unreadable', problem: refused };
  const opened = tryToOpen(envelope);
  if ('verdict' in opened) return opened;
  const signed = signedIn(opened.statement);
  if (!signed) return { verdict: 'unreadable', problem: 'the envelope is not that of an evidence bundle' };
  const signer = signingKey(opened, keys);
  if (!signer && keys.length > 0) return tampered('signature', byAnotherKey(opened, keys));
  const read = readDocument(document, signed);
  if ('verdict' in read) return read;
  const { rulesBroken: sealedAsBroken } = signed;
  const rules = { ...checkRules(read.document), ...(sealedAsBroken && { sealedAsBroken }) };
  const intact = { intact: true as const, summary: summaryOf(read.document, signed), rules };
  if (!signer) return { verdict: 'unproven', ...intact };
  const problem = checkKey(signer, opened.keyId, dayOf(read.document.run.completedAt));
  if (problem !== undefined) return tampered('signature', problem);
  const { algorithm, fingerprint } = signer;
  const verdict = rules.broken.length === 0 && !sealedAsBroken ? 'valid' : 'rules_broken';
  return { verdict, ...intact, signedBy: { algorithm, fingerprint } };
}

const tampered = (entry: string, problem: string): Verdict => ({ verdict: 'tampered', entry, problem });

function tryToOpen(envelope: Buffer): OpenedEnvelope | Verdict {
  if (tryParseJsonBytes(envelope) === undefined) return { verdict: 'unreadable', problem: 'the envelope is not JSON' };
  try {
    return openEnvelope(envelope);
  } catch (error) {
    return tampered('envelope', `is invalid: ${error instanceof Error ? error.message : error}`);
  }
}

function byAnotherKey({ keyId }: OpenedEnvelope, keys: readonly TrustedKey[]): string {
  const prints = keys.map(({ fingerprint }) => fingerprint).join(', ');
  return `was not made by the trusted key (sha256 ${prints}); it names ${keyId}`;
}

function readDocument(bytes: Buffer, signed: Signed): { document: EvidenceDocument } | Verdict {
  const parsed = tryParseJsonBytes(bytes);
  if (parsed === undefined) return tampered('document', 'is not JSON: it was truncated or edited');
  const isAsSigned = () => sha256Hex(bytes) === signed.sha256;
  const { format } = Object(parsed) as { format?: unknown };
  if (!(BUNDLE_FORMATS as readonly unknown[]).includes(format) && isAsSigned()) {
    const known = BUNDLE_FORMATS.join(' and ');
    return { verdict: 'unreadable', problem: `the document is ${format}; this program reads ${known}` };
  }
  const problem = checkDocument(bytes, parsed, signed);
  if (problem) return { verdict: 'tampered', ...problem };
  if (!isAsSigned()) return tampered('document', 'differs from the signed document');
  return { document: parsed as EvidenceDocument };
}

function summaryOf(document: EvidenceDocument, { sha256, keyId }: Signed): Summary {
  const { run, head, commits, steps, decisions, approvals, receipts } = document;
  return {
    tenant: run.tenant,
    runId: run.runId,
    status: run.status,
    sha256,
    head: head.hash,
    commits: commits.length,
    steps: steps.length,
    decisions: decisions.length,
    approvals: approvals.length,
    receipts: receipts.length,
    addenda: 0,
    keyId,
  };
}
