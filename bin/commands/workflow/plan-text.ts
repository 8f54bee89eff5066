import { nameOf } from '../../../lambdas/approval/texts/known-names.ts';
import type { Plan, PlannedStep } from '../../../lambdas/plan/plan.ts';
import { whyOf } from '../../../lambdas/policy/policy.ts';
import { requirementText } from '../../../lambdas/run/events/requirement-text.ts';
import { wrapIndented } from '../../terminal/fit-text.ts';
import { withShortIds } from '../../terminal/page.ts';
import type { Terminal, Tone } from '../../terminal/terminal.ts';
import { derivedText, GATE_REASONS } from '../approvals/approval-text.ts';

type Call = Extract<PlannedStep, { kind: 'call' }>;
type Line = { text: string; tone?: Tone };

const INDENT = '      ';

/** Like a diff: for each step the changes, the policy verdict and the required approval. */
export function planText(plan: Plan, terminal: Terminal): string[] {
  const { workflow, automation, environment, trigger, title } = plan;
  const lines: Line[] = [
    { text: `${workflow.name} v${workflow.version} as ${automation} in ${environment}`, tone: 'strong' },
    { text: `on ${trigger.source} ${trigger.event}: ${title}`, tone: 'quiet' },
    { text: '' },
    ...plan.steps.flatMap(stepText),
    { text: '' },
    summary(plan),
    ...plan.warnings.map((warning): Line => ({ text: `warning: ${warning}`, tone: 'bad' })),
    { text: `nothing was written; plan hash ${plan.planHash}`, tone: 'quiet' },
  ];
  return lines.flatMap(({ text, tone }) => {
    const shown = terminal.isInteractive ? withShortIds(text) : text;
    return wrapIndented(shown, terminal.columns).map((line) => terminal.paint(tone, line));
  });
}

function stepText(step: PlannedStep): Line[] {
  const notes = [step.conditional && 'if its condition is true', !step.reached && 'not reached'].filter(Boolean);
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
        { text: `needs approval by ${peopleText(step.gate)}`, tone: 'waiting' },
      ];
    case 'call':
      if (step.madeBy)
        return [{ text: `identical to the write of ${makerText(step.madeBy)}; not written again`, tone: 'quiet' }];
      return [...changes(step), ...verdict(step), ...remarks(step)];
  }
}

const makerText = (by: NonNullable<Call['madeBy']>) => ('runId' in by ? `run ${by.runId}` : `step ${by.step}`);

/** `~` changes a value, `+` adds a value or cannot be compared, blank leaves it unchanged. */
function changes({ effect, before, after, fields, names }: Call): Line[] {
  if (effect === 'read') return [];
  return Object.entries(after ?? fields).map(([name, value]) => {
    const shown = (each: unknown) => {
      const known = nameOf(names, name, each);
      return known === undefined ? JSON.stringify(each) : `${known} (${JSON.stringify(each)})`;
    };
    const to = shown(value);
    if (!before || !after) return { text: `+ ${name}: ${to}`, tone: 'good' };
    const from = shown(before[name]);
    if (from === to) return { text: `  ${name}: ${to} (unchanged)`, tone: 'quiet' };
    return { text: `~ ${name}: ${from} → ${to}`, tone: 'waiting' };
  });
}

function verdict({ outcome, decision, gate, coveredBy }: Call): Line[] {
  const why = whyOf(decision) && `: ${whyOf(decision)}`;
  if (outcome === 'denied') return [{ text: `denied${why}`, tone: 'bad' }];
  if (coveredBy) return [{ text: `approved together with ${coveredBy}, once for the phase`, tone: 'waiting' }];
  if (gate)
    return [{ text: `needs approval by ${peopleText(gate)}${gate.asks === 'policy' ? why : ''}`, tone: 'waiting' }];
  return [];
}

function peopleText({ asks, ...requirement }: NonNullable<Call['gate']>): string {
  return `${requirementText(requirement)} (${GATE_REASONS[asks]})`;
}

function remarks({ effect, reversible, provisional, unread, derived, foundByName }: Call): Line[] {
  const found = [
    ...derivedText(derived),
    foundByName !== undefined && `found by name: ${foundByName.join(', ')}; the run writes the sys_id`,
    unread !== null && `the current values were not read: ${unread}`,
    effect !== 'read' && !reversible && 'irreversible',
    provisional && 'policy decides again when all values are known',
  ];
  return found.flatMap((text) => (text ? [{ text, tone: 'quiet' }] : []));
}

function summary({ outcome, writes }: Plan): Line {
  const max = writes.max === null ? '' : ` of at most ${writes.max} per run`;
  const count = `${writes.planned} ${writes.planned === 1 ? 'write' : 'writes'}${max}`;
  switch (outcome) {
    case 'runs':
      return { text: `${count}; no approval needed`, tone: 'good' };
    case 'needs_approval':
      return { text: `${count}; approval needed`, tone: 'waiting' };
    case 'denied':
      return { text: `${count}; policy denies it`, tone: 'bad' };
    case 'fails':
      return { text: `${count}; the run would fail`, tone: 'bad' };
  }
}
