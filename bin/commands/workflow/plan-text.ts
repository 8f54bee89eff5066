import type { Plan, PlannedStep } from '../../../lambdas/plan/plan.ts';
import { whyOf } from '../../../lambdas/policy/policy.ts';
import { wrapUnder } from '../../terminal/fit-text.ts';
import type { Terminal, Tone } from '../../terminal/terminal.ts';
import { derivedInWords } from '../approvals/approval-text.ts';
import { requirementInWords } from '../approvals/requirement-text.ts';
import { withShortIds } from '../runs/run-text.ts';

type Call = Extract<PlannedStep, { kind: 'call' }>;
type Line = { text: string; tone?: Tone };

const INDENT = '      ';

/** A plan as people read it: like a diff, step by step, with what stands in the way of each. */
export function planInWords(plan: Plan, terminal: Terminal): string[] {
  const { workflow, automation, environment, trigger, title } = plan;
  const lines: Line[] = [
    { text: `${workflow.name} v${workflow.version} as ${automation} in ${environment}`, tone: 'strong' },
    { text: `on ${trigger.source} ${trigger.event}: ${title}`, tone: 'quiet' },
    { text: '' },
    ...plan.steps.flatMap(stepInWords),
    { text: '' },
    summary(plan),
    { text: `nothing was written; plan ${plan.planHash}`, tone: 'quiet' },
  ];
  return lines.flatMap(({ text, tone }) => {
    const shown = terminal.isInteractive ? withShortIds(text) : text;
    return wrapUnder(shown, terminal.columns).map((line) => terminal.paint(tone, line));
  });
}

function stepInWords(step: PlannedStep): Line[] {
  const notes = [step.conditional && 'if its condition holds', !step.reached && 'not reached'].filter(Boolean);
  const about = step.kind === 'call' ? ` ${step.target}` : '';
  const head = `  ${step.id}: ${step.tool}${about}${notes.length > 0 ? ` (${notes.join(', ')})` : ''}`;
  const tone = step.reached ? undefined : 'quiet';
  return [{ text: head, tone }, ...bodyOf(step).map(({ text, tone }) => ({ text: `${INDENT}${text}`, tone }))];
}

function bodyOf(step: PlannedStep): Line[] {
  switch (step.kind) {
    case 'skipped':
      return [{ text: 'skipped: its condition is false', tone: 'quiet' }];
    case 'inner':
      return [];
    case 'failing':
      return [{ text: `fails: ${step.error.code}: ${step.error.message}`, tone: 'bad' }];
    case 'gate':
      return [
        ...(step.message === null ? [] : [{ text: String(step.message) }]),
        { text: `waits for ${peopleInWords(step.gate)}`, tone: 'waiting' },
      ];
    case 'call':
      if (step.madeBy) return [{ text: `made already by ${makerInWords(step.madeBy)}: not made again`, tone: 'quiet' }];
      return [...changes(step), ...verdict(step), ...remarks(step)];
  }
}

const makerInWords = (by: NonNullable<Call['madeBy']>) => ('runId' in by ? `run ${by.runId}` : `step ${by.step}`);

/** `~` what is there and changes, `+` what is added or cannot be compared, and a blank where it is so already. */
function changes({ effect, before, after, fields }: Call): Line[] {
  if (effect === 'read') return [];
  const shown = after ?? fields;
  return Object.entries(shown).map(([name, value]) => {
    const to = JSON.stringify(value);
    if (!before || !after) return { text: `+ ${name}: ${to}`, tone: 'good' };
    const from = JSON.stringify(before[name]);
    if (from === to) return { text: `  ${name}: ${to} (as it is)`, tone: 'quiet' };
    return { text: `~ ${name}: ${from} → ${to}`, tone: 'waiting' };
  });
}

function verdict({ outcome, decision, gate, coveredBy }: Call): Line[] {
  const why = whyOf(decision) && `: ${whyOf(decision)}`;
  if (outcome === 'denied') return [{ text: `denied${why}`, tone: 'bad' }];
  if (coveredBy) return [{ text: `is approved with ${coveredBy}, once for the phase`, tone: 'waiting' }];
  if (gate) return [{ text: `waits for ${peopleInWords(gate)}${gate.asks === 'policy' ? why : ''}`, tone: 'waiting' }];
  return [];
}

function peopleInWords({ asks, ...requirement }: NonNullable<Call['gate']>): string {
  return `${requirementInWords(requirement)} (${WHO_ASKS[asks]})`;
}

const WHO_ASKS = {
  policy: 'policy asks',
  mode: 'the validation mode asks',
  always_two: 'always, for a write that hits much or is destructive',
  tainted: 'a model has a part in where this goes',
  step: 'the workflow asks',
  retry: 'an operator must agree to send it again',
} as const;

function remarks({ effect, reversible, provisional, unread, derived }: Call): Line[] {
  const found = [
    ...derivedInWords(derived),
    unread !== null && `what is there now was not read: ${unread}`,
    effect !== 'read' && !reversible && 'cannot be taken back',
    provisional && 'policy is asked again when the rest is known',
  ];
  return found.flatMap((text) => (text ? [{ text, tone: 'quiet' }] : []));
}

function summary({ outcome, writes }: Plan): Line {
  const max = writes.max === null ? '' : ` of ${writes.max} a run may make`;
  const count = `${writes.planned} ${writes.planned === 1 ? 'write' : 'writes'}${max}`;
  switch (outcome) {
    case 'runs':
      return { text: `${count}; nobody has to agree`, tone: 'good' };
    case 'needs_approval':
      return { text: `${count}; people have to agree`, tone: 'waiting' };
    case 'denied':
      return { text: `${count}; policy denies it`, tone: 'bad' };
    case 'fails':
      return { text: `${count}; the run would fail`, tone: 'bad' };
  }
}
