import { type Approval, isOpen } from '../../run/approval.ts';
import { aside, type Inline, type Paragraph, quoted, quotedAs, strong, words } from '../block-kit.ts';
import { cut } from '../escape-hidden-characters.ts';
import { derivedWords, undoWords } from './card-text.ts';
import { type ChangedField, changesOf } from './changed-fields.ts';

/** Up to this length a value stands in the line of its field. */
const INLINE_MAX_CHARACTERS = 60;
const TARGET_MAX_CHARACTERS = 120;
/** A name of these letters cannot be taken for words of ours; any other is quoted. */
const PLAIN_NAME = /^[\w.-]{1,60}$/;

export interface Room {
  /** Characters of each value, and fields. */
  valueMax: number;
  fieldsMax: number;
  /** Whether there is room for what is there now. */
  withNow: boolean;
  /** Of the other writes of a phase, how many. */
  writesMax: number;
}

/** From roomy to crowded: the first that fits into a message is used. */
export const ROOM: readonly Room[] = [
  ...[3_000, 1_500, 600, 300, 150, 60].map((valueMax) => ({ valueMax, fieldsMax: 50, withNow: true, writesMax: 40 })),
  ...[60, 40, 20].map((valueMax) => ({ valueMax, fieldsMax: 50, withNow: false, writesMax: 40 })),
  ...[30, 15, 5].map((fieldsMax) => ({ valueMax: 20, fieldsMax, withNow: false, writesMax: 40 })),
  ...[20, 10, 5, 2].map((writesMax) => ({ valueMax: 20, fieldsMax: 5, withNow: false, writesMax })),
];

/** What approving lets happen: each field as it is and as it will be. */
export function content(approval: Approval, room: Room): Paragraph[] {
  const { action, message } = approval;
  const lines: Paragraph[] = [];
  if (message !== undefined) lines.push(...boxed([strong('To be read')], message, room.valueMax));
  if (!action) return [...lines, [words('Approving lets the run go on with what comes after this step.')]];
  const { written, follows } = changesOf(approval);
  const will = isOpen(approval) || approval.status === 'approved' ? 'will be' : 'would have been';
  lines.push([strong(`What ${will} ${action.effect === 'read' ? 'asked for' : 'written'}`)]);
  lines.push(...fields(written, room));
  if (follows.length > 0) lines.push([strong('What that changes')], ...fields(follows, room));
  lines.push([words(`Risk ${action.risk}, blast radius ${action.blastRadius}. ${undoWords(action)}`)]);
  return [...lines, ...phaseLines(approval, room)];
}

/** The other writes of the phase, which the same decision is about. */
function phaseLines({ phase }: Approval, room: Room): Paragraph[] {
  if (!phase) return [];
  const { writes, askedLater } = phase;
  const left = writes.length - room.writesMax;
  const lines: Paragraph[] = [];
  if (writes.length > 0) {
    const count = writes.length === 1 ? 'One more write' : `${writes.length} more writes`;
    lines.push([strong(`${count} of the phase ${phase.name}, approved together with it`)]);
  }
  for (const write of writes.slice(0, room.writesMax)) {
    const { tool, target, risk, blastRadius } = write.action;
    const { written, follows } = changesOf(write);
    lines.push(
      [
        strong('Step '),
        quoted(write.stepId, INLINE_MAX_CHARACTERS),
        words(`: ${tool} at `),
        quoted(target, TARGET_MAX_CHARACTERS),
      ],
      ...derivedWords(write.action),
      ...fields(written, room),
      ...fields(follows, room),
      [words(`Risk ${risk}, blast radius ${blastRadius}. ${undoWords(write.action)}`)],
    );
  }
  if (left > 0) lines.push([aside(`… and ${left} more writes: press “Show all” before you decide`)]);
  for (const { stepId, tool } of askedLater.slice(0, room.writesMax)) {
    lines.push([
      words('Not covered, asked about separately: '),
      quoted(stepId, INLINE_MAX_CHARACTERS),
      words(` (${tool})`),
    ]);
  }
  const later = askedLater.length - room.writesMax;
  if (later > 0) lines.push([aside(`… and ${later} more that are asked about separately`)]);
  return lines;
}

function fields(all: ChangedField[], room: Room): Paragraph[] {
  const left = all.length - room.fieldsMax;
  const lines = all.slice(0, room.fieldsMax).flatMap((field) => fieldLines(field, room));
  if (all.length === 0) lines.push([aside('no fields')]);
  if (left > 0) lines.push([aside(`… and ${left} more fields: press “Show all”`)]);
  if (!room.withNow && all.some(({ from }) => from !== undefined)) {
    lines.push([aside('There is no room here for what is there now: press “Show all”')]);
  }
  return lines;
}

function fieldLines({ name, from: now, to }: ChangedField, { valueMax, withNow }: Room): Paragraph[] {
  const from = withNow ? now : undefined;
  const inline = [from, to].every((text) => !text || (text.length <= INLINE_MAX_CHARACTERS && !text.includes('\n')));
  const label = fieldName(name);
  if (inline || valueMax <= INLINE_MAX_CHARACTERS) {
    const was = from === undefined ? [] : [...value(from, valueMax), words(' → ')];
    return [[...label, words(': '), ...was, ...value(to, valueMax)]];
  }
  const is = from === undefined ? [] : valueBox([...label, words(' is now')], from, valueMax);
  return [...is, ...valueBox([...label, words(' will be')], to, valueMax)];
}

function fieldName(name: string): Inline[] {
  return PLAIN_NAME.test(name) ? [words(`• ${name}`)] : [words('• '), quoted(name, INLINE_MAX_CHARACTERS)];
}

function value(text: string | null, max: number): Inline[] {
  if (text === null) return [aside('not set')];
  const { shown, hidden } = cut(text, max, 'one');
  return hidden === 0 ? [quotedAs(shown)] : [quotedAs(shown), words(more(hidden))];
}

function valueBox(label: Inline[], text: string | null, max: number): Paragraph[] {
  return text === null ? [[...label, words(' '), aside('not set')]] : boxed(label, text, max);
}

/** A text from outside; what is left out of it is said outside of the box, where no payload can say it. */
export function boxed(label: Inline[], text: string, max: number): Paragraph[] {
  const { shown, hidden } = cut(text, max, 'many');
  return [hidden === 0 ? label : [...label, words(more(hidden))], { box: shown }];
}

const more = (hidden: number): string => ` … ${hidden.toLocaleString('en-US')} more characters`;
