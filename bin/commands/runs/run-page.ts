import { isOpen } from '../../../lambdas/run/approval.ts';
import { requirementText } from '../../../lambdas/run/events/requirement-text.ts';
import { errorText } from '../../../lambdas/run/events/run-events.ts';
import { compensationText } from '../../../lambdas/run/events/write-events.ts';
import type { Reversal } from '../../../lambdas/run/receipt.ts';
import type { RunDetail, ShownAction, ShownReceipt, ShownStep } from '../../client/api-client.ts';
import { Page } from '../../terminal/page.ts';
import type { Cell } from '../../terminal/table.ts';
import type { Terminal, Tone } from '../../terminal/terminal.ts';
import { ago, clockNear, clockTime, dateAndClock, dateAndTime, duration } from '../../terminal/times.ts';
import { approvalCell, voteText } from '../approvals/approval-text.ts';
import { eventText, eventTone } from './event-text.ts';
import { shortRunIds } from './find-run.ts';
import { nextAction } from './next-action.ts';
import { statusCell } from './run-status.ts';
import { cutValue, printInputs, printStepValues, printWritten, receiptOf } from './run-values.ts';
import { eventEntries, stepRows } from './step-rows.ts';

export function printRun(run: RunDetail, terminal: Terminal, actions: readonly ShownAction[] = []): void {
  const page = new Page(terminal);
  const shownId = terminal.isInteractive ? shortRunIds([run.runId])(run.runId) : run.runId;
  printHeader(page, run, shownId);
  printInputs(page, run);
  printSteps(page, run);
  printActions(page, actions);
  printStepValues(page, run, shownId);
  printApprovals(page, run);
  printReceipts(page, run);
  printRollback(page, run);
  printCommits(page, run);
  printEvidence(page, run);
}

/** The subject, the status and what to do come first; ids and hashes come last. */
function printHeader(page: Page, run: RunDetail, shownId: string): void {
  const { status, title, subject, automation, workflow, trigger, stopRequest, error } = run;
  page.title(title ?? automation, statusCell(status));
  page.blank();
  page.field('automation', automation);
  page.field('subject', subject ?? '-');
  if (error) page.field('error', errorText(error), 'bad');
  const next = nextAction(run, shownId);
  if (next !== undefined) page.field('next', next, 'waiting');
  if (run.assignee) page.field('assigned', run.assignee);
  printResolution(page, run);
  page.field('workflow', `${workflow.name}, version ${workflow.version}`);
  page.field('trigger', `${trigger.source} ${trigger.event}`);
  for (const [name, when] of times(run)) page.field(name, when);
  if (stopRequest && !run.completedAt)
    page.field('requested', `${stopRequest.kind} by ${stopRequest.actor}`, 'waiting');
  if (run.currentStep) page.field('at step', run.currentStep);
  if (run.resumeCount > 0) page.field('resumed', run.resumeCount === 1 ? 'once' : `${run.resumeCount} times`);
  if (run.cancellation) {
    const { actor, reason } = run.cancellation;
    page.field('canceled', `by ${actor}${reason === undefined ? '' : `: ${reason}`}`);
  }
  if (run.result !== null && run.result !== undefined) page.field('result', cutValue(run.result));
  const original = run.request?.rerunOf ?? run.request?.replay?.of;
  if (original) page.exactField('repeats', original);
  for (const { runId: again, kind, requestedBy } of run.reruns) page.field(kind, `${again} by ${requestedBy}`);
  if (run.rollbackOf) page.exactField('undoes', run.rollbackOf);
  if (run.rolledBackBy) page.exactField('undone by', run.rolledBackBy);
}

function printResolution(page: Page, { resolution }: RunDetail): void {
  if (!resolution) return;
  const { outcome, actor, at, reason, writes } = resolution;
  page.field('resolved', `as ${outcome} by ${actor}, ${dateAndTime(at)}: ${reason}`);
  for (const [step, finding] of Object.entries(writes)) {
    page.field('', `${step}: the write ${finding === 'happened' ? 'was' : 'was not'} made`);
  }
}

function times({ createdAt, startedAt, completedAt, deadlineAt, flags }: RunDetail): [name: string, when: string][] {
  const off = Object.entries(flags ?? {}).flatMap(([flag, on]) => (on ? [] : [flag]));
  const since = (at: string) =>
    `${clockNear(at, createdAt)}, ${duration(Date.parse(at) - Date.parse(createdAt))} later`;
  return [
    ['accepted', `${dateAndTime(createdAt)}, ${ago(createdAt, Date.now())}`],
    ['started', startedAt ? since(startedAt) : 'not yet'],
    completedAt ? ['ended', since(completedAt)] : ['deadline', dateAndTime(deadlineAt)],
    ...(off.length > 0 ? [['flags', `off at its start: ${off.join(', ')}`] as [string, string]] : []),
  ];
}

function printSteps(page: Page, run: RunDetail): void {
  // A rollback run has none.
  if (run.steps.length === 0) return;
  page.heading('STEPS');
  const rows = stepRows(run.steps).map((row): Cell[] => {
    const indent = '  '.repeat(row.depth);
    if ('unusedSlots' in row) {
      const slots = row.unusedSlots === 1 ? '1 unused slot' : `${row.unusedSlots} unused slots`;
      return [`${indent}${slots}`, '-', row.status, '-', '-', '-', '-'];
    }
    const { step, status, items } = row;
    const receiptKey = 'receiptKey' in step ? step.receiptKey : undefined;
    const receipt = run.receipts.find(({ key }) => key === receiptKey);
    return [
      `${indent}${step.id}`,
      items === undefined ? step.tool : `${step.tool}, ${items === 1 ? '1 item' : `${items} items`}`,
      statusCell(status),
      verdictOf(step),
      'attempt' in step && step.attempt > 0 ? String(step.attempt) : '-',
      'durationMs' in step && step.durationMs !== undefined ? duration(step.durationMs) : '-',
      receipt ? page.short(outcomeOf(receipt, run)) : '-',
    ];
  });
  const columns = [
    { title: 'STEP', shrink: 'wrap' },
    { title: 'TOOL', shrink: 'wrap' },
    { title: 'STATUS' },
    { title: 'POLICY' },
    { title: 'ATTEMPTS' },
    { title: 'TOOK' },
    { title: 'RECEIPT', shrink: 'wrap' },
  ] as const;
  page.table(columns, rows);
  for (const step of run.steps) {
    if ('error' in step) page.line(`${step.id}: ${errorText(step.error)}`, 'bad');
  }
}

/** What the sessions of the run proposed. Each action is a run of its own, with the same id. */
function printActions(page: Page, actions: readonly ShownAction[]): void {
  if (actions.length === 0) return;
  page.heading('ACTIONS OF SESSIONS');
  const columns = [
    { title: 'STEP' },
    { title: 'TOOL', shrink: 'wrap' },
    { title: 'TARGET', shrink: 'wrap' },
    { title: 'STATUS' },
    { title: 'ACTION' },
  ] as const;
  const rows = actions.map(({ session, tool, target, status, actionId }): Cell[] => [
    session?.step ?? '-',
    tool,
    target ?? '-',
    { text: status, ...toneOfAction(status) },
    page.short(actionId),
  ]);
  page.table(columns, rows);
}

function toneOfAction(status: ShownAction['status']): { tone?: Tone } {
  if (status === 'succeeded') return { tone: 'good' };
  return { tone: status === 'pending' || status === 'waiting_approval' ? 'waiting' : 'bad' };
}

/** The latest verdict. Its reasons are in the commits. */
function verdictOf(step: ShownStep): Cell {
  const verdict = 'governed' in step ? step.governed?.decision.verdict : undefined;
  switch (verdict) {
    case undefined:
      return '-';
    case 'allow':
      return 'allow';
    case 'needs_approval':
      return { text: 'approval', tone: 'waiting' };
    case 'deny':
      return { text: 'deny', tone: 'bad' };
  }
}

function outcomeOf(receipt: ShownReceipt, { runId }: RunDetail): string {
  if (receipt.runId !== runId) return `${receipt.outcome}, made by ${receipt.runId}`;
  return receipt.outcome === 'succeeded' && receipt.recovered ? 'succeeded, recovered' : receipt.outcome;
}

function printApprovals(page: Page, { approvals }: RunDetail): void {
  if (approvals.length === 0) return;
  page.heading('APPROVALS');
  for (const approval of approvals) {
    const { approvalId, stepId, requestedAt, expiresAt, edits, votes, makers } = approval;
    const { text, tone } = approvalCell(approval);
    page.line(`${stepId}: ${text}, ${page.short(approvalId)}`, tone);
    const excluded = makers.length > 0 ? `, not ${makers.join(' or ')}` : '';
    const until = isOpen(approval) ? `, until ${clockNear(expiresAt, requestedAt)}` : '';
    page.field('  needs', `${requirementText(approval.requirement)}${excluded}${until}`);
    for (const { person, changes } of edits) {
      page.field('  edited', `${changes.map(({ field }) => field).join(', ')} by ${person}`);
    }
    for (const vote of votes) page.field('  vote', voteText(vote, requestedAt));
  }
}

function printReceipts(page: Page, run: RunDetail): void {
  if (run.receipts.length === 0) return;
  page.heading('RECEIPTS');
  for (const receipt of run.receipts) {
    const { stepId, target, tool } = receipt;
    page.line(`${stepId}: ${tool} at ${target}`);
    printWritten(
      page,
      receipt,
      run.steps.find((step) => receiptOf(step, run.receipts) === receipt),
    );
    page.field('  outcome', page.short(outcomeOf(receipt, run)));
    if (receipt.outcome === 'succeeded') printUndo(page, receipt.reversal);
    if ('error' in receipt && receipt.error) page.field('  error', errorText(receipt.error), 'bad');
  }
}

function printUndo(page: Page, reversal: Reversal): void {
  if ('irreversible' in reversal) page.field('  undo', `none: ${reversal.irreversible}`);
  else page.field('  undo', `${reversal.tool} ${cutValue(reversal.input)}`);
}

/** The result for each write, in the order of the rollback. */
function printRollback(page: Page, { rollback, compensation, createdAt, completedAt }: RunDetail): void {
  if (!rollback && compensation.length === 0) return;
  page.heading('ROLLBACK');
  if (rollback) {
    const ends = completedAt ? '' : `; the run ends as ${rollback.endsAs}`;
    page.line(`started by ${rollback.actor}, ${clockNear(rollback.at, createdAt)}${ends}`);
  }
  for (const { step, outcome, reason } of compensation) {
    const tone = outcome === 'reversed' ? 'good' : outcome === 'kept' ? 'quiet' : 'bad';
    page.line(page.short(`${step}: ${compensationText({ outcome, reason })}`), tone);
  }
}

function printCommits(page: Page, { head, commits }: RunDetail): void {
  page.heading('COMMITS');
  const width = String(head.seq).length;
  const days = new Set(commits.map(({ at }) => at.slice(0, 10)));
  const time = days.size > 1 ? dateAndClock : clockTime;
  for (const { seq, at, events } of commits) {
    const when = `${String(seq).padStart(width)}  ${time(at)}`;
    for (const [index, { event, last }] of eventEntries(events).entries()) {
      const margin = index === 0 ? when : ' '.repeat(when.length);
      page.entry(`${margin}  `, page.short(eventText(event, at, last)), eventTone(event));
    }
  }
}

function printEvidence(page: Page, { runId, evidence, head, completedAt, trace }: RunDetail): void {
  page.heading('EVIDENCE');
  if (evidence) {
    page.field('sealed', `${dateAndTime(evidence.sealedAt)}, ${evidence.sizeBytes} bytes`);
    page.field('bundle', evidence.documentKey);
    page.exactField('sha256', evidence.sha256);
    for (const { name, key, sha256 } of evidence.artifacts ?? []) page.field(name, `${key}, sha256 ${sha256}`);
  } else {
    page.line(completedAt ? 'the bundle is being sealed' : 'the bundle is sealed when the run ends');
  }
  page.exactField('run', runId);
  page.field('commits', String(head.seq));
  page.exactField('last hash', head.hash);
  page.exactField('trace', trace.id);
  if (trace.url !== null) page.exactField('', trace.url);
}
