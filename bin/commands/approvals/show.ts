import { isOpen } from '../../../lambdas/run/approval.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { printApproval } from './approval-page.ts';
import { findApproval } from './find-approval.ts';

export const APPROVAL_DETAILS =
  'ID is an approval id from approvals list, or a run id (or prefix) if the run has one open approval.';

export const approvalsShow: Command = {
  name: 'approvals show',
  args: ['ID'],
  description: 'show an approval: the write, the reasons and the votes',
  details: APPROVAL_DETAILS,
  options: {},
  async run(call) {
    const approval = await findApproval(call.api(), call.arg(0));
    if (call.json) call.printJson(approval);
    else {
      printApproval(approval, call.terminal);
      if (isOpen(approval) && call.terminal.isInteractive) {
        call.terminal.note(`\ndecide: npx countersign approvals approve|reject|edit ${call.arg(0)}`);
      }
    }
    return EXIT.ok;
  },
};
