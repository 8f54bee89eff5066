import { isDeepStrictEqual } from 'node:util';
import { isOpen } from '../../../lambdas/run/approval.ts';
import type { ShownApproval } from '../../client/api-client.ts';
import { Page } from '../../terminal/page.ts';
import { printable, type Terminal } from '../../terminal/terminal.ts';
import { ago, dateAndTime } from '../../terminal/times.ts';
import { viaInWords } from '../runs/run-text.ts';
import {
  approvalCell,
  askedBecause,
  changeInWords,
  derivedInWords,
  exact,
  exactName,
  voteInWords,
} from './approval-text.ts';
import { requirementInWords } from './requirement-text.ts';

/** An approval as its deciders must see it: all of what will be written, uncut, and on what grounds. */
export function printApproval(approval: ShownApproval, terminal: Terminal): void {
  const page = new Page(terminal);
  // What is written is revealed character by character; all else may lose what would steer the terminal.
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
  printWhatPeopleSaid(page, approval);
}

function printFacts(page: Page, approval: ShownApproval): void {
  const { subject, automation, workflow, stepId, makers, requestedAt, slaAt, escalatedAt, expiresAt } = approval;
  const nowMs = Date.now();
  const moment = (at: string) => `${dateAndTime(at)}, ${ago(at, nowMs)}`;
  page.field('subject', subject ?? '-');
  page.field('asked by', `step ${stepId} of ${automation} (${workflow.name} v${workflow.version})`);
  page.field('because', askedBecause(approval));
  for (const words of derivedInWords(approval.action?.derived)) page.field('note', words);
  page.field('needs', requirementInWords(approval.requirement));
  page.field('but not', makers.length > 0 ? `${makers.join(', ')}: they had a hand in it` : '-');
  page.field('asked', moment(requestedAt));
  if (approval.decidedAt) page.field('closed', moment(approval.decidedAt));
  if (!isOpen(approval)) return;
  page.field('escalates', escalatedAt ? `others were called ${ago(escalatedAt, nowMs)}` : moment(slaAt));
  page.field('expires', moment(expiresAt));
}

function printWrite(page: Page, { action, message, before, after, actionHash }: ShownApproval): void {
  page.heading(action ? 'THE WRITE' : 'THE GATE');
  if (message !== undefined) page.wholeLine(exact(message));
  if (action) printAction(page, action, before, after);
  else page.line('the run goes on with what comes after this step');
  page.whole('action', actionHash, 'quiet');
}

function printAction(
  page: Page,
  action: NonNullable<ShownApproval['action']>,
  before: Record<string, unknown> | undefined,
  after: Record<string, unknown> | undefined,
): void {
  const { tool, target, fields, risk, blastRadius, environment } = action;
  page.wholeLine(exactName(`${tool} at ${target}`));
  for (const [name, value] of Object.entries(fields)) printChange(page, name, value, before);
  const follows = Object.entries(after ?? {}).filter(([name, value]) => !isDeepStrictEqual(fields[name], value));
  if (follows.length > 0) page.line('which changes', 'quiet');
  for (const [name, value] of follows) printChange(page, name, value, before);
  page.line(`risk ${risk}, blast radius ${blastRadius}, in ${environment}; ${wayBack(action)}`, 'quiet');
}

/** Every other write of the phase that the same decision is about. */
function printPhase(page: Page, { phase }: ShownApproval): void {
  if (!phase) return;
  page.heading(`ALSO IN THE PHASE ${phase.name.toUpperCase()}`);
  for (const { stepId, action, before, after } of phase.writes) {
    page.wholeLine(`${exactName(stepId)}:`);
    for (const words of derivedInWords(action.derived)) page.line(words);
    printAction(page, action, before, after);
  }
  for (const { stepId, tool, because } of phase.askedLater) {
    page.wholeLine(`${exactName(stepId)}: ${exactName(tool)}, asked about separately: ${exactName(because)}`);
  }
}

/** As in a plan: `~` what is there and changes, `+` what is added or cannot be compared. */
function printChange(page: Page, name: string, value: unknown, before: Record<string, unknown> | undefined): void {
  const written = `${exactName(name)}: ${exact(value)}`;
  if (!before || !Object.hasOwn(before, name)) page.wholeLine(`+ ${written}`, 'good');
  else if (isDeepStrictEqual(before[name], value)) page.wholeLine(`  ${written} (as it is)`, 'quiet');
  else page.wholeLine(changeInWords(name, before[name], value), 'waiting');
}

function wayBack({ undo, reversible, destructive }: NonNullable<ShownApproval['action']>): string {
  if (undo) return 'it takes back an earlier write of this run';
  if (destructive) return 'it takes something away that no later write can put back';
  return reversible ? 'it can be taken back' : 'it cannot be taken back';
}

function printWhatPeopleSaid(page: Page, { edits, votes, requestedAt }: ShownApproval): void {
  if (edits.length > 0) page.heading('EDITS');
  for (const { person, via, changes } of edits) {
    page.line(printable(`${person} ${viaInWords(via)}; votes before it do not count`));
    for (const { field, from, to } of changes) page.wholeLine(changeInWords(field, from, to));
  }
  if (votes.length > 0) page.heading('VOTES');
  for (const vote of votes) page.wholeLine(printable(voteInWords(vote, requestedAt)));
}
