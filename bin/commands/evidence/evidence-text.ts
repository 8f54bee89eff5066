import type { EvidenceApproval } from '../../../lambdas/evidence/bundle/approval-entry.ts';
import type { EvidenceCommit, EvidenceEvent } from '../../../lambdas/evidence/bundle/commit-entry.ts';
import type { EvidenceDocument } from '../../../lambdas/evidence/bundle/document.ts';
import type { EvidenceReceipt } from '../../../lambdas/evidence/bundle/receipt-entry.ts';
import type { Digest } from '../../../lambdas/run/digest.ts';
import { dateAndClock } from '../../terminal/times.ts';
import { requirementInWords } from '../approvals/requirement-text.ts';
import { eventInWords, viaInWords } from '../runs/run-text.ts';
import type { ReadEvidence } from './bundle-file.ts';

const HASH_SHOWN_DIGITS = 12;

/** A bundle as a person reads it, on a terminal or on paper. A cell may have several lines. */
export interface EvidenceInWords {
  heading: string;
  facts: [name: string, value: string][];
  sections: { title: string; columns: string[]; rows: (string | string[])[][] }[];
}

export function evidenceInWords({ document, verdict }: ReadEvidence): EvidenceInWords {
  const { run, steps, decisions, approvals, receipts, cost, commits } = document;
  const sections = [
    { title: 'Steps', columns: ['Step', 'Tool', 'Status', 'Attempts', 'Output'], rows: steps.map(stepRow) },
    {
      title: 'Policy decisions',
      columns: ['Commit', 'Step', 'Verdict', 'Policies', 'Reasons'],
      rows: decisions.map(({ commit, step, verdict: said, policies, reasons }) => [
        String(commit),
        step,
        said,
        policies.join(', '),
        reasons.join('; '),
      ]),
    },
    {
      title: 'Approvals',
      columns: ['Step', 'Time (UTC)', 'What people were asked and did'],
      rows: approvals.flatMap(approvalRows),
    },
    {
      title: 'Writes',
      columns: ['Step', 'Target', 'Fields', 'Outcome', 'Way back'],
      rows: receipts.map((receipt) => receiptRow(receipt, run.runId)),
    },
    {
      title: 'Taken back',
      columns: ['Step', 'Outcome', 'Reason'],
      rows: (run.compensation ?? []).map(({ step, outcome, reason }) => [
        step,
        outcome,
        reason ? shortened(reason) : '-',
      ]),
    },
    {
      title: 'Cost',
      columns: ['Provider', 'Model', 'Calls', 'Tokens in', 'Tokens out', 'USD'],
      rows: cost.map(({ provider, model, calls, inputTokens, outputTokens, usd }) =>
        [provider, model, calls, inputTokens, outputTokens, usd ?? 'not known'].map(String),
      ),
    },
    { title: 'Timeline', columns: ['Commit', 'Time (UTC)', 'What happened'], rows: commits.map(commitRow) },
  ];
  return {
    heading: `${run.tenant}/${run.runId}: ${run.status}`,
    facts: [...runFacts(document), ...proofFacts(document, verdict)],
    sections: sections.filter(({ rows }) => rows.length > 0),
  };
}

function runFacts({ run, versions, awsRequestsAtLeast }: EvidenceDocument): EvidenceInWords['facts'] {
  const { trigger, workflow, error } = run;
  const requests = Object.entries(awsRequestsAtLeast).map(([request, count]) => `${count} ${request}`);
  return [
    ['subject', run.subject ?? '-'],
    ['automation', run.automation],
    ['workflow', `${workflow.name}, version ${workflow.version}`],
    ['trigger', `${trigger.source} ${trigger.event} (${trigger.key})`],
    ['accepted', `${dateAndClock(run.createdAt)} UTC`],
    ['ended', `${dateAndClock(run.completedAt)} UTC`],
    ...(error ? ([['error', `${error.code}: ${shortened(error.message)}`]] satisfies EvidenceInWords['facts']) : []),
    ['AWS requests', `at least ${requests.join(', ')}`],
    ['runtime', versions.runtime],
    ['policies', versions.policies.join(' ') || '-'],
  ];
}

/** Hashes stand alone, so that they fit a terminal and can be copied. */
function proofFacts({ head }: EvidenceDocument, verdict: ReadEvidence['verdict']): EvidenceInWords['facts'] {
  const { sha256, keyId } = verdict.summary;
  const signature: EvidenceInWords['facts'] =
    verdict.verdict === 'valid'
      ? [
          ['signature', `valid: ${verdict.signedBy.algorithm}`],
          ['public key', verdict.signedBy.fingerprint],
        ]
      : [['signature', 'NOT CHECKED: no key was given, so anybody could have made this bundle']];
  return [
    ['document', sha256],
    ['commits', String(head.count)],
    ['head', head.hash],
    ['signed as', keyId],
    ...signature,
  ];
}

function stepRow({ id, tool, status, skipped, attempt, output }: EvidenceDocument['steps'][number]): string[] {
  return [
    id,
    tool,
    skipped ? 'skipped' : status,
    attempt > 0 ? String(attempt) : '-',
    output ? shortened(output) : '-',
  ];
}

/** In the order of time. Votes that an edit made void are only in the timeline. */
function approvalRows({ step, requestedAt, edits, votes, status, decidedAt, ...asked }: EvidenceApproval): string[][] {
  const acts: [at: string | undefined, what: string][] = [
    [requestedAt, whatWasAsked(asked)],
    ...edits.map(({ at, ...edit }): [string, string] => [at, editInWords(edit)]),
    ...votes.map(({ at, ...vote }): [string, string] => [at, voteInWords(vote)]),
    [decidedAt, status],
  ];
  return acts.map(([at, what], index) => [index === 0 ? step : '', at ? dateAndClock(at) : '-', what]);
}

function whatWasAsked({ requirement, makers }: Pick<EvidenceApproval, 'requirement' | 'makers'>): string {
  return `asked for ${requirementInWords(requirement)}${makers.length > 0 ? `; made by ${makers.join(', ')}` : ''}`;
}

function editInWords({ person, via, changes }: Omit<EvidenceApproval['edits'][number], 'at'>): string {
  const changed = changes.map(
    ({ field, from, to }) => `${field} from sha256 ${short(from.sha256)} to ${short(to.sha256)}`,
  );
  return `${person} ${viaInWords(via)}: edit ${changed.join(', ')}`;
}

function voteInWords({ person, via, decision, onBehalfOf, reason }: Omit<EvidenceApproval['votes'][number], 'at'>) {
  const place = onBehalfOf ? ` for ${onBehalfOf}` : '';
  return `${person}${place} ${viaInWords(via)}: ${decision}${reason ? ` (reason: ${shortened(reason)})` : ''}`;
}

function receiptRow(receipt: EvidenceReceipt, ownRunId: string): string[] {
  const { step, target, fields, outcome, recovered, runId, reversal } = receipt;
  const made = runId === ownRunId ? '' : `, made by ${runId}`;
  return [step, target, fields.join(', '), `${outcome}${recovered ? ', recovered' : ''}${made}`, wayBack(reversal)];
}

function wayBack(reversal: EvidenceReceipt['reversal']): string {
  if (!reversal) return '-';
  return 'tool' in reversal ? reversal.tool : `none: ${reversal.irreversible}`;
}

function commitRow({ seq, at, events }: EvidenceCommit): (string | string[])[] {
  return [String(seq), dateAndClock(at), events.map((event) => evidenceEventInWords(event, at))];
}

/** An event that nobody signed for may lack what its kind has: then it is shown as it is. */
function evidenceEventInWords(event: EvidenceEvent, at: string): string {
  const shown = withDigestsInWords(event) as Parameters<typeof eventInWords>[0];
  try {
    return eventInWords(shown, at);
  } catch {
    return JSON.stringify(shown);
  }
}

export const counted = (count: number, thing: string) => `${count} ${thing}${count === 1 ? '' : 's'}`;

const short = (hash: string) => (hash.length > HASH_SHOWN_DIGITS ? `${hash.slice(0, HASH_SHOWN_DIGITS)}…` : hash);

const shortened = ({ sha256, bytes }: Digest) => `${bytes} bytes, sha256 ${short(sha256)}`;

/** Where evidence has the digest of a text, a sentence about it. */
function withDigestsInWords(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withDigestsInWords);
  if (value === null || typeof value !== 'object') return value;
  if ('sha256' in value && 'bytes' in value) return `[${shortened(value as Digest)}]`;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withDigestsInWords(each)]));
}
