import type { EvidenceApproval } from '../../../lambdas/evidence/bundle/approval-entry.ts';
import type { EvidenceCommit } from '../../../lambdas/evidence/bundle/commit-entry.ts';
import type { EvidenceDocument } from '../../../lambdas/evidence/bundle/document.ts';
import type { EvidenceReceipt } from '../../../lambdas/evidence/bundle/receipt-entry.ts';
import type { RulesReport } from '../../../lambdas/evidence/verify/rules/rule.ts';
import { viaText } from '../../../lambdas/run/approval.ts';
import type { Digest } from '../../../lambdas/run/digest.ts';
import { requirementText } from '../../../lambdas/run/events/requirement-text.ts';
import { dateAndClock } from '../../terminal/times.ts';
import { eventText } from '../runs/event-text.ts';
import type { ReadEvidence } from './bundle-file.ts';
import { isRead, rollbackOf, writeLines } from './write-lines.ts';

const HASH_SHOWN_DIGITS = 12;

/** The text of a bundle, for the terminal and the HTML page. A list is a cell with several lines. */
export interface EvidenceText {
  heading: string;
  facts: [name: string, value: string][];
  sections: { title: string; columns: string[]; hasWholeIds?: true; rows: (string | string[])[][] }[];
}

export function evidenceText({ document, addenda, verdict }: ReadEvidence): EvidenceText {
  const { run, steps, decisions, approvals, receipts, cost, commits } = document;
  const rolledBack = rollbackOf({ document, addenda });
  const sections = [
    {
      title: 'Broken rules',
      columns: ['Rule', 'Entry', 'Problem'],
      rows: verdict.rules.broken.map(({ rule, name, entry, problem }) => [`${rule}, ${name}`, entry, problem]),
    },
    {
      title: 'From request to write',
      columns: ['Requested by > decision > approvers > write, then the complete hashes'],
      hasWholeIds: true as const,
      rows: writeLines(document).map((lines) => [lines]),
    },
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
      columns: ['Step', 'Time (UTC)', 'Event'],
      rows: approvals.flatMap(approvalRows),
    },
    {
      title: 'Writes',
      columns: ['Step', 'Target', 'Fields', 'Outcome', 'Undo'],
      rows: receipts.filter((receipt) => !isRead(receipt)).map((receipt) => receiptRow(receipt, run.runId)),
    },
    {
      title: 'Reads',
      columns: ['Step', 'Target', 'Fields', 'Outcome'],
      rows: receipts.filter(isRead).map((receipt) => receiptRow(receipt, run.runId).slice(0, -1)),
    },
    {
      title: 'Rollback',
      columns: ['Step', 'Outcome', 'Reason'],
      rows: (run.compensation ?? []).map(({ step, outcome, reason }) => [
        step,
        outcome,
        reason ? digestText(reason) : '-',
      ]),
    },
    {
      title: 'Cost',
      columns: ['Provider', 'Model', 'Calls', 'Tokens in', 'Tokens out', 'USD'],
      rows: cost.map(({ provider, model, calls, inputTokens, outputTokens, usd }) =>
        [provider, model, calls, inputTokens, outputTokens, usd ?? 'not known'].map(String),
      ),
    },
    { title: 'Timeline', columns: ['Commit', 'Time (UTC)', 'Event'], rows: commits.map(commitRow) },
    {
      title: 'After the end',
      columns: ['Commit', 'Time (UTC)', 'Event'],
      rows: addenda.map(({ commit }) => commitRow(commit)),
    },
  ];
  return {
    heading: `${run.tenant}/${run.runId}: ${run.status}${rolledBack ? `, ${rolledBack.title}` : ''}`,
    facts: [
      ...(rolledBack ? ([[rolledBack.title, rolledBack.details]] satisfies EvidenceText['facts']) : []),
      ...runFacts(document),
      ...proofFacts(document, verdict),
    ],
    sections: sections.filter(({ rows }) => rows.length > 0),
  };
}

function runFacts({ run, versions, awsRequestsAtLeast }: EvidenceDocument): EvidenceText['facts'] {
  const { trigger, workflow, error } = run;
  const requests = Object.entries(awsRequestsAtLeast).map(([request, count]) => `${count} ${request}`);
  return [
    ['subject', run.subject ?? '-'],
    ['automation', run.automation],
    ['workflow', `${workflow.name}, version ${workflow.version}`],
    ['trigger', `${trigger.source} ${trigger.event} (${trigger.key})`],
    ['accepted', `${dateAndClock(run.createdAt)} UTC`],
    ['ended', `${dateAndClock(run.completedAt)} UTC`],
    ...(error ? ([['error', `${error.code}: ${digestText(error.message)}`]] satisfies EvidenceText['facts']) : []),
    ['AWS requests', `at least ${requests.join(', ')}`],
    ['runtime', versions.runtime],
    ['policies', versions.policies.join(' ') || '-'],
  ];
}

function rulesText({ checked, broken, notCheckable }: RulesReport): string {
  const rest = notCheckable.length === 0 ? '' : `; ${notCheckable.length} cannot be checked with this bundle`;
  if (broken.length === 0) return `followed: ${checked.length} rules checked${rest}`;
  return `BROKEN: ${[...new Set(broken.map(({ rule, name }) => `${rule}, ${name}`))].join('; ')}`;
}

/** Each hash has its own line, so that it fits and can be copied. */
function proofFacts({ head }: EvidenceDocument, verdict: ReadEvidence['verdict']): EvidenceText['facts'] {
  const { sha256, keyId } = verdict.summary;
  const signature: EvidenceText['facts'] =
    verdict.verdict !== 'unproven'
      ? [
          ['signature', `valid: ${verdict.signedBy.algorithm}`],
          ['public key', verdict.signedBy.fingerprint],
        ]
      : [['signature', 'NOT CHECKED: without --key, anybody could have created this bundle']];
  return [
    ['document', sha256],
    ['commits', String(head.count)],
    ['head', head.hash],
    ['signed as', keyId],
    ...signature,
    ['rules', rulesText(verdict.rules)],
  ];
}

function stepRow({ id, tool, status, skipped, attempt, output, action }: EvidenceDocument['steps'][number]): string[] {
  return [
    id,
    action?.effect === 'read' ? `${tool} (read)` : tool,
    skipped ? 'skipped' : status,
    attempt > 0 ? String(attempt) : '-',
    output ? digestText(output) : '-',
  ];
}

/** In order of time. Votes that an edit made void are only in the timeline. */
function approvalRows({ step, requestedAt, edits, votes, status, decidedAt, ...asked }: EvidenceApproval): string[][] {
  const acts: [at: string | undefined, what: string][] = [
    [requestedAt, requestText(asked)],
    ...edits.map(({ at, ...edit }): [string, string] => [at, editText(edit)]),
    ...votes.map(({ at, ...vote }): [string, string] => [at, voteText(vote)]),
    [decidedAt, status],
  ];
  return acts.map(([at, what], index) => [index === 0 ? step : '', at ? dateAndClock(at) : '-', what]);
}

function requestText({ requirement, makers }: Pick<EvidenceApproval, 'requirement' | 'makers'>): string {
  return `requested: ${requirementText(requirement)}${makers.length > 0 ? `; makers: ${makers.join(', ')}` : ''}`;
}

function editText({ person, via, changes }: Omit<EvidenceApproval['edits'][number], 'at'>): string {
  const changed = changes.map(
    ({ field, from, to }) => `${field} from sha256 ${short(from.sha256)} to ${short(to.sha256)}`,
  );
  return `${person} ${viaText(via)}: edit ${changed.join(', ')}`;
}

function voteText({ person, via, decision, onBehalfOf, reason }: Omit<EvidenceApproval['votes'][number], 'at'>) {
  const behalf = onBehalfOf ? ` for ${onBehalfOf}` : '';
  return `${person}${behalf} ${viaText(via)}: ${decision}${reason ? ` (reason: ${digestText(reason)})` : ''}`;
}

function receiptRow(receipt: EvidenceReceipt, ownRunId: string): string[] {
  const { step, target, fields, outcome, recovered, runId, reversal } = receipt;
  const made = runId === ownRunId ? '' : `, made by ${runId}`;
  return [step, target, fields.join(', '), `${outcome}${recovered ? ', recovered' : ''}${made}`, undoText(reversal)];
}

function undoText(reversal: EvidenceReceipt['reversal']): string {
  if (!reversal) return '-';
  return 'tool' in reversal ? reversal.tool : `none: ${reversal.irreversible}`;
}

function commitRow({ seq, at, events }: EvidenceCommit): (string | string[])[] {
  return [String(seq), dateAndClock(at), events.map((event) => evidenceEventText(event, at))];
}

/** An unsigned bundle may lack fields of an event; then the event is shown as JSON. */
function evidenceEventText(event: EvidenceCommit['events'][number], at: string): string {
  const shown = withDigestText(event) as Parameters<typeof eventText>[0];
  try {
    return eventText(shown, at);
  } catch {
    return JSON.stringify(shown);
  }
}

const short = (hash: string) => (hash.length > HASH_SHOWN_DIGITS ? `${hash.slice(0, HASH_SHOWN_DIGITS)}…` : hash);

const digestText = ({ sha256, bytes }: Digest) => `${bytes} bytes, sha256 ${short(sha256)}`;

/** Replaces each digest by its text. */
function withDigestText(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withDigestText);
  if (value === null || typeof value !== 'object') return value;
  if ('sha256' in value && 'bytes' in value) return `[${digestText(value as Digest)}]`;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withDigestText(each)]));
}
