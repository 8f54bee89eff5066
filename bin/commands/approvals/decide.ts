import type { RequestFor } from '../../../client/api-client.ts';
import { valueNamed } from '../../../lambdas/approval/texts/known-names.ts';
import { makerText } from '../../../lambdas/approval/texts/maker-names.ts';
import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import { isOpen } from '../../../lambdas/run/approval.ts';
import { requirementText } from '../../../lambdas/run/events/requirement-text.ts';
import type { Decided, ShownApproval } from '../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command, Option } from '../command.ts';
import { EXIT, type ExitCode, Failure, UsageError } from '../failure.ts';
import { printApproval } from './approval-page.ts';
import { changeText } from './approval-text.ts';
import { findApproval } from './find-approval.ts';
import { APPROVAL_DETAILS } from './show.ts';

type Verb = 'approve' | 'reject' | 'edit';

const YES: Record<string, Option> = {
  yes: { description: 'do not ask for confirmation; required without a terminal' },
};
const REASON: Record<string, Option> = {
  reason: { value: 'TEXT', required: true, description: 'why you reject it' },
};
const FIELD: Record<string, Option> = {
  field: { value: 'NAME=VALUE', repeatable: true, required: true, description: 'new value of a field' },
};

const CONFIRMATION = 'Shows the write and asks for confirmation. If the write changes meanwhile, nothing is decided.';

export const approvalsDecide: readonly Command[] = [
  decision('approvals approve', 'approve', 'approve a pending write', { ...YES }, CONFIRMATION),
  decision('approvals reject', 'reject', 'reject a pending write', { ...REASON, ...YES }, CONFIRMATION),
  decision(
    'approvals edit',
    'edit',
    'change a pending write; other people then decide on it',
    { ...FIELD, ...YES },
    `${CONFIRMATION}\nPolicy decides again, earlier votes are void, and you cannot approve your own edit.\n` +
      'A field that contains text takes text; any other field takes JSON.\n' +
      'A reference takes a sys_id, or a name that the approval shows.',
  ),
];

export const runsDecide: readonly Command[] = [
  decision('runs approve', 'approve', 'approve the pending write of a run', { ...YES }, CONFIRMATION),
  decision('runs reject', 'reject', 'reject the pending write of a run', { ...REASON, ...YES }, CONFIRMATION),
];

function decision(
  name: string,
  verb: Verb,
  description: string,
  options: Record<string, Option>,
  details: string,
): Command {
  return {
    name,
    args: ['ID'],
    description,
    details: `${details}\n${APPROVAL_DETAILS}`,
    options,
    run: (call) => decide(call, verb),
  };
}

async function decide(call: Call, verb: Verb): Promise<ExitCode> {
  if (verb === 'reject' && !call.option('reason')?.trim()) throw new UsageError('--reason is required');
  const api = call.api();
  const approval = await findApproval(api, call.arg(0));
  const body = bodyOf(call, verb, approval);
  if (!call.json) {
    printApproval(approval, call.terminal);
    if ('fields' in body) printEdit(call, approval, body.fields);
  }
  if (isOpen(approval) && !(await confirmed(call, verb))) {
    call.terminal.note('canceled; no decision was made');
    return EXIT.failed;
  }
  const decided = await api
    .call('POST /api/v1/approvals/{id}/decision', {
      params: { id: approval.approvalId },
      body: { ...body, actionHash: approval.actionHash },
    })
    .catch((error: unknown) => {
      // The command was used correctly: the stage refuses the decision.
      throw error instanceof UsageError ? new Failure(EXIT.failed, error.message) : error;
    });
  if (call.json) call.printJson(decided);
  else call.terminal.print(`\n${printable(outcomeText(decided))}`);
  return EXIT.ok;
}

type DecisionBody = RequestFor<'POST /api/v1/approvals/{id}/decision'>['body'];
/** Without `actionHash`, in each variant. */
type Body = DecisionBody extends infer Each ? (Each extends unknown ? Omit<Each, 'actionHash'> : never) : never;
type Fields = Extract<DecisionBody, { decision: 'edit' }>['fields'];

function bodyOf(call: Call, verb: Verb, approval: ShownApproval): Body {
  switch (verb) {
    case 'approve':
      return { decision: verb };
    case 'reject':
      return { decision: verb, reason: call.option('reason') ?? '' };
    case 'edit':
      return { decision: verb, fields: fieldsOf(call.options('field'), approval) };
  }
}

function fieldsOf(given: readonly string[], { action }: ShownApproval): Fields {
  if (given.length === 0) throw new UsageError('--field name=value is required');
  const now = action?.fields ?? {};
  return Object.fromEntries(
    given.map((text) => {
      const [, name = '', value = ''] = /^([^=]+)=([\s\S]*)$/.exec(text) ?? [];
      if (!name) throw new UsageError(`--field ${text} must be name=value`);
      if (action && !Object.hasOwn(now, name)) {
        const known = Object.keys(now);
        const hint = didYouMean(name, known) || `; it has: ${known.join(', ')}`;
        throw new UsageError(`--field ${name} is not a field of this write${hint}`);
      }
      return [name, typeof (now[name] ?? '') === 'string' ? value : parsedJson(name, value)];
    }),
  );
}

function parsedJson(name: string, text: string): Fields[string] {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${name} must be JSON, for example '${name}=["a", "b"]'`);
  }
}

function printEdit({ terminal }: Call, { action, names }: ShownApproval, fields: Record<string, unknown>): void {
  terminal.print(`\n${terminal.paint('strong', 'YOUR EDIT')}`);
  for (const [name, value] of Object.entries(fields)) {
    const to = typeof value === 'string' ? (valueNamed(names, name, value) ?? value) : value;
    terminal.print(terminal.paint('waiting', changeText(name, action?.fields[name], to, names)));
  }
}

export async function confirmed(call: Call, verb: Verb): Promise<boolean> {
  if (call.isSet('yes')) return true;
  const answer = call.json ? undefined : await call.terminal.ask(`\n${verb}? y/N `);
  if (answer === undefined)
    throw new Failure(
      EXIT.usage,
      'cannot ask for confirmation without a terminal; check the write with approvals show, then pass --yes',
    );
  return /^y(es)?$/i.test(answer.trim());
}

function outcomeText(decided: Decided): string {
  const { approval } = decided;
  const follow = `follow the run: npx countersign runs watch ${approval.runId.slice(0, 12)}`;
  switch (decided.outcome) {
    case 'approved':
      return `approved; ${follow}`;
    case 'rejected':
      return 'rejected; the write will not be made';
    case 'counted':
      return `your vote counts; ${decided.missing} more needed (${requirementText(approval.requirement)})`;
    case 'edited':
      return `edited; needs approval by ${requirementText(approval.requirement)}, excluding ${approval.makers.map((maker) => makerText(approval, maker)).join(', ')}`;
    case 'already':
      return `you already voted; the approval is ${isOpen(approval) ? 'waiting for more votes' : approval.status}`;
  }
}
