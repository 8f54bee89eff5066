import { isOpen } from '../../../lambdas/run/approval.ts';
import type { Decided, ShownApproval } from '../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command, Option } from '../command.ts';
import { EXIT, type ExitCode, Failure, UsageError } from '../failure.ts';
import { printApproval } from './approval-page.ts';
import { changeInWords } from './approval-text.ts';
import { findApproval } from './find-approval.ts';
import { requirementInWords } from './requirement-text.ts';
import { APPROVAL_DETAILS } from './show.ts';

type Verb = 'approve' | 'reject' | 'edit';

const YES: Record<string, Option> = { yes: { says: 'do not ask; needed where nobody can be asked' } };
const REASON: Record<string, Option> = {
  reason: { value: 'TEXT', required: true, says: 'why not, for whoever asked' },
};
const FIELD: Record<string, Option> = {
  field: { value: 'NAME=VALUE', many: true, required: true, says: 'what to write instead; once for each field' },
};

const SEEN = 'What you decide on is shown first; if it is something else by the time you answer, nothing happens.';

/** One person's word. The same commands stand under `approvals` and, for people at a run, under `runs`. */
export const approvalsDecide: readonly Command[] = [
  decision('approvals approve', 'approve', 'let a write happen', { ...YES }, SEEN),
  decision('approvals reject', 'reject', 'keep a write from happening', { ...REASON, ...YES }, SEEN),
  decision(
    'approvals edit',
    'edit',
    'change what would be written; others then decide on it',
    { ...FIELD, ...YES },
    `${SEEN}\nPolicy is asked again, earlier votes do not count any more, and you cannot approve it yourself.\n` +
      'A field that holds text now takes text; any other takes JSON.',
  ),
];

export const runsDecide: readonly Command[] = [
  decision('runs approve', 'approve', 'let the write happen that a run waits with', { ...YES }, SEEN),
  decision('runs reject', 'reject', 'keep that write from happening', { ...REASON, ...YES }, SEEN),
];

function decision(name: string, verb: Verb, says: string, options: Record<string, Option>, details: string): Command {
  return {
    name,
    takes: ['ID'],
    says,
    details: `${details}\n${APPROVAL_DETAILS}`,
    options,
    run: (call) => decide(call, verb),
  };
}

async function decide(call: Call, verb: Verb): Promise<ExitCode> {
  if (verb === 'reject' && !call.text('reason')?.trim()) throw new UsageError('say why with --reason');
  const api = call.api();
  const approval = await findApproval(api, call.positional(0));
  const body = bodyOf(call, verb, approval);
  if (!call.json) {
    printApproval(approval, call.terminal);
    if ('fields' in body) printEdit(call, approval, body.fields);
  }
  if (isOpen(approval) && !(await agreed(call, verb))) {
    call.terminal.note('nothing was decided');
    return EXIT.failed;
  }
  const decided = await api.decide(approval.approvalId, { decision: verb, ...body, actionHash: approval.actionHash });
  if (call.json) call.printJson(decided);
  else call.terminal.print(`\n${printable(outcomeInWords(decided))}`);
  return EXIT.ok;
}

type Body = { reason?: string } | { fields: Record<string, unknown> };

function bodyOf(call: Call, verb: Verb, approval: ShownApproval): Body {
  switch (verb) {
    case 'approve':
      return {};
    case 'reject':
      return { reason: call.text('reason') };
    case 'edit':
      return { fields: fieldsOf(call.texts('field'), approval.action?.fields ?? {}) };
  }
}

function fieldsOf(given: readonly string[], now: Record<string, unknown>): Record<string, unknown> {
  if (given.length === 0) throw new UsageError('say what to write instead with --field name=value');
  return Object.fromEntries(
    given.map((text) => {
      const [, name = '', value = ''] = /^([^=]+)=([\s\S]*)$/.exec(text) ?? [];
      if (!name) throw new UsageError(`--field ${text} is not name=value`);
      return [name, typeof (now[name] ?? '') === 'string' ? value : parsedJson(name, value)];
    }),
  );
}

function parsedJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${name} is not text: give it as JSON, e.g. '${name}=["a", "b"]'`);
  }
}

function printEdit({ terminal }: Call, { action }: ShownApproval, fields: Record<string, unknown>): void {
  terminal.print(`\n${terminal.paint('strong', 'YOUR EDIT')}`);
  for (const [name, value] of Object.entries(fields)) {
    terminal.print(terminal.paint('waiting', changeInWords(name, action?.fields[name], value)));
  }
}

async function agreed(call: Call, verb: Verb): Promise<boolean> {
  if (call.isSet('yes')) return true;
  const answer = call.json ? undefined : await call.terminal.ask(`\n${verb}? y/N `);
  if (answer === undefined) throw new Failure(EXIT.usage, 'there is nobody to ask; look first, then say --yes');
  return /^y(es)?$/i.test(answer.trim());
}

function outcomeInWords(decided: Decided): string {
  const { approval } = decided;
  const follow = `follow it with npx countersign runs watch ${approval.runId.slice(0, 12)}`;
  switch (decided.outcome) {
    case 'approved':
      return `approved; ${follow}`;
    case 'rejected':
      return 'rejected; it will not be written';
    case 'counted':
      return `counted; ${decided.missing} more must approve, of ${requirementInWords(approval.requirement)}`;
    case 'edited':
      return `edited; now it needs ${requirementInWords(approval.requirement)}, and not ${approval.makers.join(' or ')}`;
    case 'already':
      return `you have said so before; it is ${isOpen(approval) ? 'waiting for more' : approval.status}`;
  }
}
