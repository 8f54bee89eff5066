import { printable } from '../../terminal/terminal.ts';
import { printApproval } from '../approvals/approval-page.ts';
import { confirmed } from '../approvals/decide.ts';
import type { Call, Command, Option } from '../command.ts';
import { EXIT, type ExitCode, Failure, UsageError } from '../failure.ts';
import { findRunId } from '../runs/find-run.ts';
import type { Execution } from './execution-page.ts';

const DETAILS =
  'Shows the write and asks for confirmation. If the write changes meanwhile, nothing is decided.\n' +
  'ID is that of the execution (the run), or its first characters.';
const STEP: Option = { value: 'NUMBER', description: 'which step; may be left out if one step waits' };
const YES: Option = { description: 'do not ask for confirmation; required without a terminal' };

export const executionsDecide: readonly Command[] = [
  {
    name: 'executions approve',
    args: ['ID'],
    description: 'approve the pending write of a step',
    details: DETAILS,
    options: { step: STEP, notes: { value: 'TEXT', description: 'in the history' }, yes: YES },
    run: (call) => decide(call, true),
  },
  {
    name: 'executions reject',
    args: ['ID'],
    description: 'reject the pending write of a step',
    details: DETAILS,
    options: { step: STEP, notes: { value: 'TEXT', required: true, description: 'why you reject it' }, yes: YES },
    run: (call) => decide(call, false),
  },
];

async function decide(call: Call, approved: boolean): Promise<ExitCode> {
  const notes = call.option('notes');
  if (!approved && !notes?.trim()) throw new UsageError('--notes is required');
  const api = call.api();
  const id = await findRunId(api, call.arg(0));
  const execution = await api.call('GET /api/v1/executions/{id}', { params: { id } });
  const { approval_id, step_number, action_hash } = waiting(call, execution);
  if (!call.json) {
    printApproval(await api.call('GET /api/v1/approvals/{id}', { params: { id: approval_id } }), call.terminal);
  }
  if (!(await confirmed(call, approved ? 'approve' : 'reject'))) {
    call.terminal.note('canceled; no decision was made');
    return EXIT.failed;
  }
  const decided = await api.call('POST /api/v1/executions/{id}/approve', {
    params: { id },
    body: { step_number, approved, action_hash, ...(notes !== undefined && { notes }) },
  });
  if (call.json) call.printJson(decided);
  else {
    const more = decided.approvals_missing ? `; ${decided.approvals_missing} more needed` : '';
    call.terminal.print(printable(`step ${step_number}: ${decided.outcome}${more}`));
  }
  return EXIT.ok;
}

/** The approval of the step that is named, or of the only one that waits. */
function waiting(call: Call, { session_id, approvals }: Execution): Execution['approvals'][number] {
  const step = call.numberOption('step');
  const open = approvals.filter(({ state }) => state === 'pending' || state === 'notified');
  const [found, ...others] = open.filter(({ step_number }) => step === undefined || step_number === step);
  if (!found)
    throw new Failure(EXIT.failed, `${step === undefined ? 'no step' : `step ${step}`} of ${session_id} waits`);
  if (others.length === 0) return found;
  const numbers = open.map(({ step_number }) => step_number).join(', ');
  throw new UsageError(`steps ${numbers} wait; choose one with --step`);
}
