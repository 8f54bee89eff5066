import type { ShownApproval } from '../../client/api-client.ts';
import { type Cell, type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import { age } from '../../terminal/times.ts';
import type { Call, Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';
import { shortSubject } from '../runs/run-text.ts';
import { shortApprovalIds } from './find-approval.ts';
import { requirementInWords } from './requirement-text.ts';

export const approvalsList: Command = {
  name: 'approvals list',
  takes: [],
  says: 'what waits for people, longest first',
  options: pagingOptions('approvals'),
  async run(call) {
    const api = call.api();
    const { items: approvals, nextCursor } = await readPages(call, async (asked) => {
      const page = await api.approvals(asked);
      return { items: page.approvals, nextCursor: page.nextCursor };
    });
    if (call.json) call.printJson({ approvals, nextCursor });
    else printPending(call, printable(approvals), nextCursor);
    return EXIT.ok;
  },
};

function printPending(call: Call, approvals: ShownApproval[], nextCursor: string | null): void {
  const { terminal } = call;
  if (approvals.length === 0) terminal.note('nothing waits for an approval');
  else for (const line of pendingTable(call, approvals)) terminal.print(line);
  noteMore(call, nextCursor);
  const [first] = approvals;
  if (first && terminal.isInteractive) {
    terminal.note(`\nlook with npx countersign approvals show ${shortApprovalIds(approvals)(first)}`);
  }
}

/** A person gets what tells them apart and how long there is; a pipe gets everything in full. */
function pendingTable({ terminal }: Call, approvals: ShownApproval[]): string[] {
  const nowMs = Date.now();
  const person = terminal.isInteractive;
  const short = shortApprovalIds(approvals);
  const at = (time: string) => (person ? age(time, nowMs) : time);
  const row = (approval: ShownApproval): Cell[] => [
    person ? short(approval) : approval.approvalId,
    at(approval.requestedAt),
    { text: at(approval.expiresAt), tone: approval.escalatedAt ? 'bad' : 'waiting' },
    `${requirementInWords(approval.requirement)}${soFar(approval)}`,
    person ? toolOf(approval) : `${toolOf(approval)}${approval.action ? ` ${approval.action.target}` : ''}`,
    person ? shortSubject(approval.subject ?? '-') : (approval.subject ?? '-'),
    approval.title,
  ];
  const columns: Column[] = [
    { title: 'APPROVAL' },
    { title: person ? 'AGE' : 'ASKED' },
    { title: 'EXPIRES' },
    { title: 'NEEDS', keeps: 'start' },
    { title: 'WHAT', keeps: 'start' },
    { title: 'SUBJECT', keeps: 'end' },
    { title: 'TITLE', keeps: 'start' },
  ];
  return table(columns, approvals.map(row), terminal);
}

/** A gate of the workflow's own goes by the name of its step. */
const toolOf = ({ action, stepId }: ShownApproval) => action?.tool ?? stepId;

function soFar({ votes }: ShownApproval): string {
  const people = votes.filter(({ decision }) => decision === 'approve').map(({ person }) => person);
  return people.length > 0 ? `; has ${people.join(', ')}` : '';
}
