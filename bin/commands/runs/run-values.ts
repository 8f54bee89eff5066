import type { RunDetail, ShownReceipt, ShownStep } from '../../client/api-client.ts';
import type { Page } from '../../terminal/page.ts';

/** A longer value is cut on the page of the run, and shown in full with `--step`. */
const SHOWN_MAX_CHARACTERS = 200;

/** What the run was started with. */
export function printInputs(page: Page, { inputs }: RunDetail): void {
  const given = Object.entries(inputs ?? {});
  if (given.length === 0) return;
  page.heading('INPUTS');
  for (const [name, value] of given) page.entry(`${name}: `, cutValue(value));
}

/** Inputs and outputs of the steps. The written values are in the receipts. */
export function printStepValues(page: Page, run: RunDetail, shownId: string): void {
  const steps = run.steps.filter((step) => inputOf(step) !== undefined || outputOf(step) !== undefined);
  if (steps.length === 0) return;
  page.heading('VALUES');
  for (const step of steps) {
    const [input, output] = [inputOf(step), outputOf(step)];
    page.line(step.id);
    if (input !== undefined) page.field('  input', cutValue(input));
    if (output !== undefined) page.field('  output', cutValue(output));
  }
  page.line(`in full: npx countersign runs show ${shownId} --step STEP`, 'quiet');
}

/** Each written field, with the value before if the target was read. */
export function printWritten(page: Page, { fields, ...receipt }: ShownReceipt, step: ShownStep | undefined): void {
  const values = writtenBy(step);
  if (!values) page.field('  fields', fields.join(', '));
  const before = 'before' in receipt ? receipt.before : undefined;
  const isWritten = receipt.outcome === 'succeeded' || receipt.outcome === 'reversed';
  for (const [index, [name, value]] of Object.entries(values ?? {}).entries()) {
    const was = before && Object.hasOwn(before, name) ? `, before ${cutValue(before[name])}` : '';
    page.field(index > 0 ? '' : isWritten ? '  wrote' : '  fields', `${name}: ${cutValue(value)}${was}`);
  }
}

/** Everything about one step, nothing cut or wrapped: for people who check a write or repeat it by hand. */
export function printStep(page: Page, step: ShownStep, receipt: ShownReceipt | undefined): void {
  const values: [name: string, value: unknown][] = [
    ['INPUT', inputOf(step)],
    ['WRITTEN', writtenBy(step)],
    ['BEFORE', receipt && 'before' in receipt ? receipt.before : undefined],
    ['OUTPUT', outputOf(step)],
    ['UNDO', receipt && 'reversal' in receipt ? receipt.reversal : undefined],
  ];
  for (const [name, value] of values) {
    if (value === undefined || value === null) continue;
    page.heading(name);
    for (const line of JSON.stringify(value, null, 2).split('\n')) page.exactLine(line);
  }
}

export const receiptOf = (step: ShownStep, receipts: readonly ShownReceipt[]): ShownReceipt | undefined =>
  'receiptKey' in step ? receipts.find(({ key }) => key === step.receiptKey) : undefined;

const inputOf = (step: ShownStep): unknown => ('input' in step ? step.input : undefined);
const outputOf = (step: ShownStep): unknown =>
  'output' in step && step.output !== null && !('skipped' in step && step.skipped) ? step.output : undefined;
/** A large response leaves values out; then only the names of the fields are known. */
const writtenBy = (step: ShownStep | undefined): Record<string, unknown> | undefined =>
  step && 'governed' in step ? step.governed?.request?.action?.fields : undefined;

export function cutValue(value: unknown): string {
  const text = JSON.stringify(value) ?? '-';
  return text.length > SHOWN_MAX_CHARACTERS ? `${text.slice(0, SHOWN_MAX_CHARACTERS)}…` : text;
}
