import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import { requirementText } from '../../../lambdas/run/events/requirement-text.ts';
import { shortSubject } from '../../../lambdas/run/subject.ts';
import type { ShownApproval } from '../../client/api-client.ts';
import { type Cell, type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import { age } from '../../terminal/times.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, UsageError } from '../failure.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';
import { shortApprovalIds } from './find-approval.ts';

const STATUSES = ['pending', 'decided', 'approved', 'rejected', 'expired', 'canceled'] as const;

export const approvalsList: Command = {
  name: 'approvals list',
  args: [],
  description: 'list open approvals, or closed ones, newest first',
  options: {
    status: { value: 'STATUS', description: `${STATUSES.join(', ')} (default pending)` },
    mine: { description: 'only those that you may decide or, if closed, that you voted on or edited' },
    ...pagingOptions('approvals'),
  },
  async run(call) {
    const api = call.api();
    const status = statusOf(call);
    const filter = { ...(status !== 'pending' && { status }), ...(call.isSet('mine') && { mine: 'true' as const }) };
    const { items: approvals, nextCursor } = await readPages(call, async (asked) => {
      const page = await api.call('GET /api/v1/approvals', { query: { ...filter, ...asked } });
      return { items: page.approvals, nextCursor: page.nextCursor };
    });
    if (call.json) call.printJson({ approvals, nextCursor });
    else printApprovals(call, printable(approvals), status, nextCursor);
    return EXIT.ok;
  },
};

function statusOf(call: Call): (typeof STATUSES)[number] {
  const status = call.option('status') ?? 'pending';
  const known = STATUSES.find((each) => each === status);
  if (known) return known;
  throw new UsageError(
    `--status must be one of ${STATUSES.join(', ')}, not "${status}"${didYouMean(status, STATUSES)}`,
  );
}

function printApprovals(call: Call, approvals: ShownApproval[], status: string, nextCursor: string | null): void {
  const { terminal } = call;
  const shown = status === 'pending' ? pendingTable : closedTable;
  if (approvals.length > 0) for (const line of shown(call, approvals)) terminal.print(line);
  else if (nextCursor === null) terminal.note(`no ${status === 'pending' ? 'open' : status} approvals`);
  else terminal.note('none on this page');
  noteMore(call, nextCursor);
  const [first] = approvals;
  if (first && terminal.isInteractive) {
    terminal.note(`\ndetails: npx countersign approvals show ${shortApprovalIds(approvals)(first)}`);
  }
}

function closedTable({ terminal }: Call, approvals: ShownApproval[]): string[] {
  const nowMs = Date.now();
  const short = terminal.isInteractive;
  const shortId = shortApprovalIds(approvals);
  const row = (approval: ShownApproval): Cell[] => {
    const { approvalId, decidedAt, requestedAt, status, votes, subject, title } = approval;
    const at = decidedAt ?? requestedAt;
    return [
      short ? shortId(approval) : approvalId,
      short ? age(at, nowMs) : at,
      { text: status, ...(status !== 'approved' && { tone: 'bad' as const }) },
      votes.map(({ person }) => person).join(', ') || '-',
      toolOf(approval),
      short ? shortSubject(subject ?? '-') : (subject ?? '-'),
      title,
    ];
  };
  const columns: Column[] = [
    { title: 'APPROVAL' },
    { title: short ? 'AGE' : 'CLOSED' },
    { title: 'STATUS' },
    { title: 'BY', shrink: 'cut-end' },
    { title: 'TOOL', shrink: 'cut-end' },
    { title: 'SUBJECT', shrink: 'cut-start' },
    { title: 'TITLE', shrink: 'cut-end' },
  ];
  return table(columns, approvals.map(row), terminal);
}

/** On a terminal, short ids and ages; in a pipe, full values. */
function pendingTable({ terminal }: Call, approvals: ShownApproval[]): string[] {
  const nowMs = Date.now();
  const short = terminal.isInteractive;
  const shortId = shortApprovalIds(approvals);
  const at = (time: string) => (short ? age(time, nowMs) : time);
  const row = (approval: ShownApproval): Cell[] => [
    short ? shortId(approval) : approval.approvalId,
    at(approval.requestedAt),
    { text: at(approval.expiresAt), tone: approval.escalatedAt ? 'bad' : 'waiting' },
    `${requirementText(approval.requirement)}${soFar(approval)}`,
    short ? toolOf(approval) : `${toolOf(approval)}${approval.action ? ` ${approval.action.target}` : ''}`,
    short ? shortSubject(approval.subject ?? '-') : (approval.subject ?? '-'),
    approval.title,
  ];
  const columns: Column[] = [
    { title: 'APPROVAL' },
    { title: short ? 'AGE' : 'REQUESTED' },
    { title: 'EXPIRES' },
    { title: 'NEEDS', shrink: 'cut-end' },
    { title: 'TOOL', shrink: 'cut-end' },
    { title: 'SUBJECT', shrink: 'cut-start' },
    { title: 'TITLE', shrink: 'cut-end' },
  ];
  return table(columns, approvals.map(row), terminal);
}

/** An approval step has no tool. */
const toolOf = ({ action, stepId }: ShownApproval) => action?.tool ?? stepId;

function soFar({ votes }: ShownApproval): string {
  const people = votes.filter(({ decision }) => decision === 'approve').map(({ person }) => person);
  return people.length > 0 ? `; approved by ${people.join(', ')}` : '';
}
