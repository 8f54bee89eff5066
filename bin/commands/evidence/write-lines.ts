import type { EvidenceDocument } from '../../../lambdas/evidence/bundle/document.ts';
import type { EvidenceReceipt } from '../../../lambdas/evidence/bundle/receipt-entry.ts';
import { dateAndClock } from '../../terminal/times.ts';
import type { ReadEvidence } from './bundle-file.ts';

type Event = EvidenceDocument['commits'][number]['events'][number];

export const isRead = ({ effect }: Pick<EvidenceReceipt, 'effect'>): boolean => effect === 'read';

/** For each write one line, requester > decision > approvers > write, then its complete hashes, which fit 80 columns. */
export function writeLines(document: EvidenceDocument): string[][] {
  const { receipts, run } = document;
  return receipts
    .filter((receipt) => !isRead(receipt))
    .map((receipt) => {
      const { step, tool, target, fields, requestHash, key, runId } = receipt;
      const decision = decisionOf(document, receipt);
      const decided = decision
        ? `${decision.verdict} by ${decision.policies.join(', ') || 'no policy'}`
        : 'no decision';
      const made = runId === run.runId ? '' : `, made by ${runId}`;
      const written = `${step}: ${tool} ${target} (${fields.join(', ')}), ${outcomeText(receipt)}${made}`;
      return [
        [requesterOf(document), decided, approversOf(document, receipt), written].join(' > '),
        ...(decision ? [`policies ${decision.policyHash}`, `action   ${decision.actionHash}`] : []),
        `request  ${requestHash}`,
        `receipt  ${key}`,
      ];
    });
}

/** The person or program that asked for the run, else the system whose event started it. */
function requesterOf({ run }: EvidenceDocument): string {
  const { requester } = run as { requester?: { actor?: string; person?: string } };
  return requester?.person ?? requester?.actor ?? run.request?.actor ?? `${run.trigger.source} ${run.trigger.event}`;
}

/** The last decision on the step before the write. */
const decisionOf = ({ decisions, commits }: EvidenceDocument, { key, index }: EvidenceReceipt) => {
  const intended = commits.find(({ events }) =>
    events.some((event) => event.type === 'write.intended' && (event as { receiptKey?: string }).receiptKey === key),
  );
  const before = decisions.filter((each) => each.index === index && (!intended || each.commit <= intended.seq));
  return before.at(-1);
};

function approversOf({ approvals }: EvidenceDocument, { grounds }: EvidenceReceipt): string {
  if (grounds?.approvalId === undefined) return 'no approval required';
  const approval = approvals.find(({ approvalId }) => approvalId === grounds.approvalId);
  const votes = approval?.votes.map(({ person, decision, onBehalfOf }) => {
    const behalf = onBehalfOf === undefined ? '' : ` for ${onBehalfOf}`;
    return `${person}${behalf}${decision === 'approve' ? '' : ` (${decision})`}`;
  });
  return `${approval?.status ?? 'approval'} by ${votes?.join(', ') || 'nobody'} (${grounds.approvalId})`;
}

function outcomeText({ outcome, settledAt, recovered }: EvidenceReceipt): string {
  const at = settledAt === undefined ? '' : `, ${dateAndClock(settledAt)}`;
  return `${outcome}${recovered ? ', recovered' : ''}${at}`;
}

/** Whether the run was rolled back or is a rollback, for its title, and by whom and why. */
export function rollbackOf({
  document,
  addenda,
}: Pick<ReadEvidence, 'document' | 'addenda'>): { title: string; details: string } | undefined {
  const { run, commits } = document;
  const events: Event[] = [...commits, ...addenda.map(({ commit }) => commit)].flatMap((commit) => commit.events);
  const after = events.findLast(({ type }) => type === 'run.rollback_started');
  if (after) return { title: 'rolled back after its end', details: `by ${by(after)}, in ${after.rollbackRunId}` };
  const begins = events.find(({ type }) => type === 'run.rolls_back');
  if (begins) return { title: 'rollback', details: `of ${run.rollbackOf?.runId}, requested by ${by(begins)}` };
  if (!run.rollback) return undefined;
  const asked = events.findLast(({ type, kind }) => type === 'run.stop_requested' && kind === 'rollback');
  const why = run.rollback.error ? `, because of ${run.rollback.error.code}` : '';
  return { title: 'rolled back', details: `by ${asked ? by(asked) : run.rollback.actor}${why}` };
}

/** Reasons are digests in evidence. */
function by({ actor, reason }: Event): string {
  const digest = reason as { sha256?: string; bytes?: number } | undefined;
  return digest?.sha256 ? `${actor} (reason: ${digest.bytes} bytes, sha256 ${digest.sha256})` : String(actor);
}
