import * as z from 'zod';
import { RISKS } from '../connectors/connector.ts';
import { GroupSets } from '../policy/approval-requirement.ts';
import { QUORUM_MAX_PEOPLE } from '../policy/policy.ts';
import { parsedInput } from '../run/check-input.ts';
import { CountersignError } from '../run/errors.ts';
import { later } from '../run/lease.ts';
import type { Awaited } from '../run/step.ts';
import { checkedInputs, WorkflowInputs } from './inputs.ts';

const WAIT_MAX_SECONDS = 30 * 24 * 3600;
const MESSAGE_MAX_CHARACTERS = 2000;

const Seconds = z.number().positive().max(WAIT_MAX_SECONDS);

/** Who must approve, and what they are shown. */
export const ApprovalInput = z.lazy(() =>
  z.strictObject({
    message: z.string().max(MESSAGE_MAX_CHARACTERS).optional().describe('what approvers are shown'),
    tier: z.enum(RISKS).default('medium').describe('the tier that approvers need'),
    quorum: z.int().min(1).max(QUORUM_MAX_PEOPLE).default(1).describe('how many people must approve'),
    groups: GroupSets.default([]).describe('`[a, b]`: members of a or b; `[[a], [b]]`: members of both'),
  }),
);
export type ApprovalInput = z.infer<typeof ApprovalInput>;

/** What the worker does to start a step that calls no connector. */
export type StepStart =
  | { action: 'succeed'; output: unknown }
  | { action: 'wait'; awaits: Exclude<Awaited, { kind: 'session' }> }
  | { action: 'request_approval'; approval: ApprovalInput };

/**
 * A kind of step that calls no connector. Validation, plans, the worker, the flow of model output and docs/workflows.md
 * are derived from its definition. CONTRIBUTING says how to add one.
 */
export interface StepKind<Input> {
  /** For the documentation: the fields of `with`, and what the step does. */
  documented: { fields: string; summary: string };
  input: z.ZodType<Input>;
  start(input: Input, run: { at: string; deadlineAt: string }): StepStart;
  /** Fields that do not decide whom or what the step waits for. Only these may derive from a model. */
  contentFields: readonly string[];
  /** The output is the input or this field of it, so a plan knows it, and values of a model pass through. */
  passesOn?: 'input' | { field: string };
  /** Only in expanded workflows (expand-workflow.ts): no file can name it. */
  internal?: true;
  requestsApproval?: true;
  /** The field with the longest time that the step waits. `always`: it waits exactly that long. */
  waits?: { field: string; always: boolean };
}

/** Only for type inference. */
const stepKind = <Input>(kind: StepKind<Input>): StepKind<Input> => kind;

/** A kind whose output is the payload of an external system is named `wait.…`: evidence hides the names in such outputs. */
const KINDS = {
  transform: stepKind({
    documented: { fields: 'any', summary: 'The output is the rendered input.' },
    input: z.unknown(),
    start: (input) => ({ action: 'succeed', output: input }),
    contentFields: [],
    passesOn: 'input',
  }),
  approval: stepKind({
    documented: {
      fields: '`message?`, `tier?`, `quorum?`, `groups?`',
      summary: 'Waits until people approve. A rejection fails the step.',
    },
    input: ApprovalInput,
    start: (approval) => ({ action: 'request_approval', approval }),
    contentFields: ['message'],
    requestsApproval: true,
  }),
  wait: stepKind({
    documented: { fields: '`seconds` or `until`', summary: 'Waits for a time.' },
    input: z.union([
      z.strictObject({ seconds: Seconds.describe('how long it waits') }),
      z.strictObject({ until: z.iso.datetime().describe('the time until which it waits') }),
    ]),
    start: (input, { at }) => {
      const until = 'until' in input ? new Date(input.until).toISOString() : later(at, input.seconds * 1000);
      return { action: 'wait', awaits: { kind: 'time', until } };
    },
    contentFields: ['seconds', 'until'],
    waits: { field: 'seconds', always: true },
  }),
  'wait.external': stepKind({
    documented: {
      fields: '`event`, `timeoutSeconds?`',
      summary: 'Waits for a signal, by default until the deadline of the run. The output is its payload.',
    },
    input: z.strictObject({
      event: z.string().min(1).max(100).describe('the name of the signal'),
      timeoutSeconds: Seconds.optional().describe('the longest wait; after it the step fails'),
    }),
    start: ({ event, timeoutSeconds }, { at, deadlineAt }) => {
      const until = timeoutSeconds === undefined ? deadlineAt : later(at, timeoutSeconds * 1000);
      return { action: 'wait', awaits: { kind: 'signal', event, until } };
    },
    contentFields: ['timeoutSeconds'],
    waits: { field: 'timeoutSeconds', always: false },
  }),
  'workflow.call': stepKind({
    documented: {
      fields: '`workflow`, `version?`, `inputs?`',
      summary: 'Runs the steps of another workflow in this run. The output is its `outputs`.',
    },
    input: z.unknown(),
    start: (outputs) => ({ action: 'succeed', output: outputs }),
    contentFields: [],
    passesOn: 'input',
  }),
  'workflow.inputs': stepKind({
    documented: { fields: '', summary: 'Checks the inputs of a call. They are the output.' },
    input: z.strictObject({
      workflow: z.string(),
      version: z.int(),
      inputs: z.record(z.string(), z.unknown()),
      takes: WorkflowInputs,
    }),
    start: ({ workflow: name, inputs, takes }) => ({
      action: 'succeed',
      output: checkedInputs({ name, inputs: takes }, inputs),
    }),
    contentFields: [],
    passesOn: { field: 'inputs' },
    internal: true,
  }),
  'forEach.items': stepKind({
    documented: { fields: '', summary: 'Evaluates the list of a loop once. The list is the output.' },
    input: z.strictObject({ items: z.unknown(), max: z.int() }),
    start: ({ items, max }) => {
      // JSONata gives no value for an empty list, and the value itself for a list with one.
      const list = items === null || items === undefined ? [] : [items].flat();
      if (list.length <= max) return { action: 'succeed', output: list };
      const message = `the list has ${list.length} items, and max is ${max}; nothing was done for any of them`;
      throw new CountersignError('INPUT_INVALID', message);
    },
    contentFields: [],
    passesOn: { field: 'items' },
    internal: true,
  }),
  forEach: stepKind({
    documented: { fields: '', summary: 'The output is the list of outputs; null for an item that was skipped.' },
    input: z.strictObject({ items: z.array(z.unknown()), outputs: z.array(z.unknown()) }),
    start: ({ items, outputs }) => ({ action: 'succeed', output: outputs.slice(0, items.length) }),
    contentFields: [],
    passesOn: { field: 'outputs' },
    internal: true,
  }),
};

export const STEP_KINDS: Readonly<Record<string, StepKind<unknown>>> = KINDS;

/** The kinds that a workflow file can use. */
export const FILE_KINDS = Object.entries(STEP_KINDS).filter(([, { internal }]) => !internal);

/** The kind of a step, by its tool; undefined for a tool of a connector. */
export const stepKindOf = (tool: string): StepKind<unknown> | undefined =>
  Object.hasOwn(STEP_KINDS, tool) ? STEP_KINDS[tool] : undefined;

/** Parses the input and says how to start the step. Throws INPUT_INVALID. */
export const startOf = (
  kind: StepKind<unknown>,
  tool: string,
  input: unknown,
  run: { at: string; deadlineAt: string },
) => kind.start(parsedInput(kind.input, tool, input), run);
