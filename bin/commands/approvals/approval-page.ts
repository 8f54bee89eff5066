import { isDeepStrictEqual } from 'node:util';
import { messageLabel, unreadText } from '../../../lambdas/approval/texts/approval-words.ts';
import { makerText } from '../../../lambdas/approval/texts/maker-names.ts';
import { isOpen, viaText } from '../../../lambdas/run/approval.ts';
import { requirementText } from '../../../lambdas/run/events/requirement-text.ts';
import type { ShownApproval } from '../../client/api-client.ts';
import { Page } from '../../terminal/page.ts';
import { printable, type Terminal } from '../../terminal/terminal.ts';
import { ago, dateAndTime } from '../../terminal/times.ts';
import {
  approvalCell,
  approvalReason,
  changeText,
  derivedText,
  exact,
  exactName,
  named,
  voteText,
} from './approval-text.ts';

/** Prints the complete write, uncut, and the reasons for the approval. */
export function printApproval(approval: ShownApproval, terminal: Terminal): void {
  const page = new Page(terminal);
  // The write is printed with control characters escaped; in all other fields they are removed.
  const shown = {
    ...printable(approval),
    action: approval.action,
    before: approval.before,
    after: approval.after,
    phase: approval.phase,
  };
  page.title(shown.approvalId, approvalCell(shown));
  page.line(shown.title);
  page.blank();
  printFacts(page, shown);
  printWrite(page, shown);
  printPhase(page, shown);
  printDecisions(page, approval);
}

function printFacts(page: Page, approval: ShownApproval): void {
  const { subject, automation, workflow, stepId, makers, requestedAt, slaAt, escalatedAt, expiresAt } = approval;
  const nowMs = Date.now();
  const moment = (at: string) => `${dateAndTime(at)}, ${ago(at, nowMs)}`;
  page.field('subject', subject ?? '-');
  page.field('step', `${stepId} of ${automation} (${workflow.name} v${workflow.version})`);
  page.field('because', approvalReason(approval));
  for (const text of derivedText(approval.action?.derived)) page.field('note', text);
  page.field('needs', requirementText(approval.requirement));
  if (approval.warning !== undefined) page.field('warning', approval.warning, 'bad');
  page.field(
    'excluded',
    makers.length > 0 ? `${makers.map((maker) => makerText(approval, maker)).join(', ')} (makers of this write)` : '-',
  );
  page.field('requested', moment(requestedAt));
  if (approval.decidedAt) page.field('closed', moment(approval.decidedAt));
  if (!isOpen(approval)) return;
  page.field('escalates', escalatedAt ? `escalated ${ago(escalatedAt, nowMs)}` : moment(slaAt));
  page.field('expires', moment(expiresAt));
}

function printWrite(
  page: Page,
  { action, message, before, after, unread, names, actionHash, edits }: ShownApproval,
): void {
  page.heading(action ? 'WRITE' : 'APPROVAL STEP');
  if (message !== undefined) {
    page.line(`${messageLabel({ edits })}:`, 'quiet');
    page.exactLine(exact(message));
  }
  if (action) printAction(page, action, { before, after, unread, names });
  else page.line('after approval, the run continues with the next step');
  page.exactField('action hash', actionHash, 'quiet');
}

function printAction(
  page: Page,
  action: NonNullable<ShownApproval['action']>,
  { before, after, unread, names }: Pick<ShownApproval, 'before' | 'after' | 'unread' | 'names'>,
): void {
  const { tool, target, fields, risk, blastRadius, environment } = action;
  page.exactLine(exactName(`${tool} at ${target}`));
  for (const [name, value] of Object.entries(fields)) printChange(page, name, value, { before, names });
  const follows = Object.entries(after ?? {}).filter(([name, value]) => !isDeepStrictEqual(fields[name], value));
  if (follows.length > 0) page.line('as a result', 'quiet');
  for (const [name, value] of follows) printChange(page, name, value, { before, names });
  const notRead = unreadText({ unread });
  if (notRead !== undefined) page.exactLine(exactName(notRead), 'waiting');
  page.line(`risk ${risk}, blast radius ${blastRadius}, in ${environment}; ${undoText(action)}`, 'quiet');
}

/** The other writes that the same decision covers. */
function printPhase(page: Page, { phase }: ShownApproval): void {
  if (!phase) return;
  page.heading(`OTHER WRITES IN PHASE ${phase.name.toUpperCase()}`);
  for (const { stepId, action, ...values } of phase.writes) {
    page.exactLine(`${exactName(stepId)}:`);
    for (const text of derivedText(action.derived)) page.line(text);
    printAction(page, action, values);
  }
  for (const { stepId, tool, because } of phase.askedLater) {
    page.exactLine(`${exactName(stepId)}: ${exactName(tool)}, approved separately: ${exactName(because)}`);
  }
}

/** As in a plan: `~` changes an existing value, `+` adds a value or cannot be compared. */
function printChange(
  page: Page,
  name: string,
  value: unknown,
  { before, names }: Pick<ShownApproval, 'before' | 'names'>,
): void {
  const written = `${exactName(name)}: ${named(names, name, value)}`;
  if (!before || !Object.hasOwn(before, name)) page.exactLine(`+ ${written}`, 'good');
  else if (isDeepStrictEqual(before[name], value)) page.exactLine(`  ${written} (unchanged)`, 'quiet');
  else page.exactLine(changeText(name, before[name], value, names), 'waiting');
}

function undoText({ undo, reversible, destructive }: NonNullable<ShownApproval['action']>): string {
  if (undo) return 'undoes an earlier write of this run';
  if (destructive) return 'destructive: no later write can restore what it removes';
  return reversible ? 'reversible' : 'irreversible';
}

function printDecisions(page: Page, { edits, votes, requestedAt, names }: ShownApproval): void {
  if (edits.length > 0) page.heading('EDITS');
  for (const { person, via, changes } of edits) {
    page.line(printable(`${person} ${viaText(via)}; earlier votes are void`));
    for (const { field, from, to } of changes) page.exactLine(changeText(field, from, to, names));
  }
  if (votes.length > 0) page.heading('VOTES');
  for (const vote of votes) page.exactLine(printable(voteText(vote, requestedAt)));
}
