import { messageLabel, UNREAD, undoText } from '../../approval/texts/approval-words.ts';
import { type ChangedField, changesOf } from '../../approval/texts/changed-fields.ts';
import { type Approval, isOpen } from '../../run/approval.ts';
import { bold, type Inline, italic, ownText, type Paragraph, quoted, quotedAs } from '../block-kit.ts';
import { escapeAndCut } from '../escape-hidden-characters.ts';
import { modelText } from './card-text.ts';

/** A value up to this length is on the line of its field. */
const INLINE_MAX_CHARACTERS = 60;
const TARGET_MAX_CHARACTERS = 120;
const UNREAD_MAX_CHARACTERS = 200;
/** A name of these characters cannot imitate the card's own text; any other name is quoted. */
const PLAIN_NAME = /^[\w.-]{1,60}$/;

export interface Layout {
  /** Characters per value. */
  valueMax: number;
  fieldsMax: number;
  /** Whether the current values are shown. */
  withNow: boolean;
  /** Other writes of the phase. */
  writesMax: number;
}

/** From the most detailed to the shortest; the card uses the first that fits into a message. */
export const LAYOUTS: readonly Layout[] = [
  ...[3_000, 1_500, 600, 300, 150, 60].map((valueMax) => ({ valueMax, fieldsMax: 50, withNow: true, writesMax: 40 })),
  ...[60, 40, 20].map((valueMax) => ({ valueMax, fieldsMax: 50, withNow: false, writesMax: 40 })),
  ...[30, 15, 5].map((fieldsMax) => ({ valueMax: 20, fieldsMax, withNow: false, writesMax: 40 })),
  ...[20, 10, 5, 2].map((writesMax) => ({ valueMax: 20, fieldsMax: 5, withNow: false, writesMax })),
];

/** The write that the approval is about: each field with its current and its new value. */
export function changeLines(approval: Approval, layout: Layout): Paragraph[] {
  const { action, message } = approval;
  const lines: Paragraph[] = [];
  if (message !== undefined) lines.push(...boxed([bold(messageLabel(approval))], message, layout.valueMax));
  if (!action) return [...lines, [ownText('If you approve, the run continues with the next step.')]];
  const { written, follows } = changesOf(approval);
  const will = isOpen(approval) || approval.status === 'approved' ? 'will be' : 'would have been';
  lines.push([bold(`What ${will} ${action.effect === 'read' ? 'requested' : 'written'}`)]);
  lines.push(...fields(written, layout));
  if (follows.length > 0) lines.push([bold('What that changes')], ...fields(follows, layout));
  lines.push(...unreadLines(approval));
  lines.push([ownText(`Risk ${action.risk}, blast radius ${action.blastRadius}. ${undoText(action)}`)]);
  return [...lines, ...phaseLines(approval, layout)];
}

/** The other writes of the phase, which the same decision covers. */
function phaseLines({ phase }: Approval, layout: Layout): Paragraph[] {
  if (!phase) return [];
  const { writes, askedLater } = phase;
  const left = writes.length - layout.writesMax;
  const lines: Paragraph[] = [];
  if (writes.length > 0) {
    const count = writes.length === 1 ? 'One more write' : `${writes.length} more writes`;
    lines.push([bold(`${count} of the phase ${phase.name}, approved together with it`)]);
  }
  for (const write of writes.slice(0, layout.writesMax)) {
    const { tool, target, risk, blastRadius } = write.action;
    const { written, follows } = changesOf(write);
    lines.push(
      [
        bold('Step '),
        quoted(write.stepId, INLINE_MAX_CHARACTERS),
        ownText(`: ${tool} at `),
        quoted(target, TARGET_MAX_CHARACTERS),
      ],
      ...modelText(write.action),
      ...fields(written, layout),
      ...fields(follows, layout),
      ...unreadLines(write),
      [ownText(`Risk ${risk}, blast radius ${blastRadius}. ${undoText(write.action)}`)],
    );
  }
  if (left > 0) lines.push([italic(`… and ${left} more writes: press “Show all” before you decide`)]);
  for (const { stepId, tool } of askedLater.slice(0, layout.writesMax)) {
    lines.push([
      ownText('Not covered, needs its own approval: '),
      quoted(stepId, INLINE_MAX_CHARACTERS),
      ownText(` (${tool})`),
    ]);
  }
  const later = askedLater.length - layout.writesMax;
  if (later > 0) lines.push([italic(`… and ${later} more that need their own approval`)]);
  return lines;
}

const unreadLines = ({ unread }: Pick<Approval, 'unread'>): Paragraph[] =>
  unread === undefined ? [] : [[italic(UNREAD), quoted(unread, UNREAD_MAX_CHARACTERS)]];

function fields(all: ChangedField[], layout: Layout): Paragraph[] {
  const left = all.length - layout.fieldsMax;
  const lines = all.slice(0, layout.fieldsMax).flatMap((field) => fieldLines(field, layout));
  if (all.length === 0) lines.push([italic('no fields')]);
  if (left > 0) lines.push([italic(`… and ${left} more fields: press “Show all”`)]);
  if (!layout.withNow && all.some(({ from }) => from !== undefined)) {
    lines.push([italic('Current values are not shown here: press “Show all”')]);
  }
  return lines;
}

function fieldLines({ name, from: now, to }: ChangedField, { valueMax, withNow }: Layout): Paragraph[] {
  const from = withNow ? now : undefined;
  const inline = [from, to].every((text) => !text || (text.length <= INLINE_MAX_CHARACTERS && !text.includes('\n')));
  const label = fieldName(name);
  if (inline || valueMax <= INLINE_MAX_CHARACTERS) {
    const was = from === undefined ? [] : [...value(from, valueMax), ownText(' → ')];
    return [[...label, ownText(': '), ...was, ...value(to, valueMax)]];
  }
  const is = from === undefined ? [] : valueBox([...label, ownText(' is now')], from, valueMax);
  return [...is, ...valueBox([...label, ownText(' will be')], to, valueMax)];
}

function fieldName(name: string): Inline[] {
  return PLAIN_NAME.test(name) ? [ownText(`• ${name}`)] : [ownText('• '), quoted(name, INLINE_MAX_CHARACTERS)];
}

function value(text: string | null, max: number): Inline[] {
  if (text === null) return [italic('not set')];
  const { shown, hidden } = escapeAndCut(text, max, 'one');
  return hidden === 0 ? [quotedAs(shown)] : [quotedAs(shown), ownText(more(hidden))];
}

function valueBox(label: Inline[], text: string | null, max: number): Paragraph[] {
  return text === null ? [[...label, ownText(' '), italic('not set')]] : boxed(label, text, max);
}

/** External text in a box. The number of omitted characters is outside the box, where the text cannot imitate it. */
export function boxed(label: Inline[], text: string, max: number): Paragraph[] {
  const { shown, hidden } = escapeAndCut(text, max, 'many');
  return [hidden === 0 ? label : [...label, ownText(more(hidden))], { box: shown }];
}

const more = (hidden: number): string => ` … ${hidden.toLocaleString('en-US')} more characters`;
