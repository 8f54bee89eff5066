import { fieldsOf, textOf } from '../exchange.ts';
import { textIn } from './block-limits.ts';

/** One input of a modal. */
interface ModalInput {
  block_id: string;
  action_id: string;
  type: string;
  label: string;
  hint: string;
  placeholder: string;
  initial: string;
  multiline: boolean;
  optional: boolean;
  /** Empty unless the input is a list. */
  options: { value: string; text: unknown }[];
}

/** The inputs of a modal, in their order. */
export function inputElements(view: Record<string, unknown>): ModalInput[] {
  const blocks = Array.isArray(view.blocks) ? view.blocks.map(fieldsOf) : [];
  return blocks.filter((block) => block.type === 'input').map(toInput);
}

export function toInput(block: Record<string, unknown>): ModalInput {
  const element = fieldsOf(block.element);
  const options = Array.isArray(element.options) ? element.options.map(fieldsOf) : [];
  return {
    block_id: textOf(block.block_id),
    action_id: textOf(element.action_id),
    type: textOf(element.type),
    label: textIn(block.label),
    hint: textIn(block.hint),
    placeholder: textIn(element.placeholder),
    initial: textOf(element.initial_value) || textOf(fieldsOf(element.initial_option).value),
    multiline: element.multiline === true,
    optional: block.optional === true,
    options: options.map(({ value, text }) => ({ value: textOf(value), text })),
  };
}
