import { requirementText } from '../../../lambdas/run/events/requirement-text.ts';
import type { ShownApproval } from '../../client/api-client.ts';
import { type Cell, type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import { age } from '../../terminal/times.ts';
import type { Call, Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';
import { shortSubject } from '../runs/run-text.ts';
import { shortApprovalIds } from './find-approval.ts';

export const approvalsList: Command = {
  name: 'approvals list',
  args: [],
  description: 'list open approvals, oldest first',
  options: pagingOptions('approvals'),
  async run(call) {
    const api = call.api();
    const { items: approvals, nextCursor } = await readPages(call, async (asked) => {
      const page = await api.call('GET /api/v1/approvals', { query: asked });
      return { items: page.approvals, nextCursor: page.nextCursor };
    });
    if (call.json) call.printJson({ approvals, nextCursor });
    else printPending(call, printable(approvals), nextCursor);
    return EXIT.ok;
  },
};

function printPending(call: Call, approvals: ShownApproval[], nextCursor: string | null): void {
  const { terminal } = call;
  if (approvals.length === 0) terminal.note('no open approvals');
  else for (const line of pendingTable(call, approvals)) terminal.print(line);
  noteMore(call, nextCursor);
  const [first] = approvals;
  if (first && terminal.isInteractive) {
    terminal.note(`\ndetails: npx countersign approvals show ${shortApprovalIds(approvals)(first)}`);
  }
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
