import { isOpen } from '../../../lambdas/run/approval.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { printApproval } from './approval-page.ts';
import { findApproval } from './find-approval.ts';

export const APPROVAL_DETAILS =
  'ID is what approvals list shows, or the beginning of a run id if only one approval fits.';

export const approvalsShow: Command = {
  name: 'approvals show',
  takes: ['ID'],
  says: 'one approval: what will be written, why, and who said what',
  details: APPROVAL_DETAILS,
  options: {},
  async run(call) {
    const approval = await findApproval(call.api(), call.positional(0));
    if (call.json) call.printJson(approval);
    else {
      printApproval(approval, call.terminal);
      if (isOpen(approval) && call.terminal.isInteractive) {
        call.terminal.note(`\ndecide with npx countersign approvals approve, reject or edit ${call.positional(0)}`);
      }
    }
    return EXIT.ok;
  },
};
