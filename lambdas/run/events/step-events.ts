import * as z from 'zod';
import { Count, eventKind, Hash, Id, ofStep, RecordedErrorFields, Sentence, Time } from './event-kind.ts';
import { type Fields, type RecordedEvent, type RecordedStep, type Replay, stepOf } from './replay-state.ts';
import { errorText } from './run-events.ts';

/** Every step that a commit has reached ends before its run does. */
export const STEP_EVENTS = {
  'step.claimed': eventKind({
    summary: 'A worker claimed the step: it holds the lease for one attempt.',
    fields: z.strictObject({
      ...ofStep,
      tool: Id,
      owner: Id,
      leaseVersion: Count,
      leaseExpiresAt: Time,
      attempt: Count,
      inputHash: Hash,
    }),
    text: ({ step, attempt, tool, leaseExpiresAt }, time) =>
      `${step}: attempt ${attempt} of ${tool}, lease until ${time(leaseExpiresAt)}`,
    replay: (replay, event) => {
      const step = stepOf(replay, event);
      step.claim = event;
      step.hasSession = false;
      step.fields.tool = event.tool;
      replay.claimedLast = step;
    },
    proves: { step: '`tool`; begins the *claim* of the step' },
  }),
  'step.succeeded': eventKind({
    summary: 'The step succeeded, or its condition was false and it was skipped.',
    fields: z.strictObject({ ...ofStep, outputHash: Hash, skipped: z.literal(true).optional() }),
    text: ({ step, skipped }) => `${step}: ${skipped ? 'skipped' : 'succeeded'}`,
    replay: (replay, event, { at }) => {
      const step = stepOf(replay, event);
      const output = { sha256: event.outputHash };
      const reused = takeReused(replay, step, event);
      endStep(step, at, {
        status: 'succeeded',
        skipped: event.skipped,
        output,
        receiptKey: reused?.receiptKey,
        input: undefined,
      });
      // A write and its step end in one commit, with one output. A session ends later than its start.
      const write = step.hasSession ? undefined : replay.writes.get(step.claim?.receiptKey);
      if (write) write.fields.output = output;
    },
    proves: {
      step: '`status` `succeeded`, `skipped`, `output` = `outputHash`, no `error`, no `input`; without a claim: the `receiptKey` of a `write.reused` right before it, else none',
      receipt: 'of the receipt of the claim, unless it has started a session: `output` = `outputHash`',
    },
  }),
  'step.copied': eventKind({
    summary: 'The step of a replay takes its output from the run that is replayed. `step.succeeded` follows.',
    fields: z.strictObject({ ...ofStep, from: Id }),
    text: ({ step, from }) => `${step}: output copied from ${from}`,
  }),
  'step.waiting': eventKind({
    summary: 'The step waits for a time, or for a signal until a time.',
    fields: z.strictObject({
      ...ofStep,
      awaits: z.enum(['time', 'signal']),
      signal: Sentence.optional(),
      until: Time,
    }),
    text: ({ step, signal, until }, time) =>
      `${step}: waiting ${signal ? `for the signal "${signal}" ` : ''}until ${time(until)}`,
  }),
  'step.signaled': eventKind({
    summary: 'The signal that the step waited for arrived.',
    fields: z.strictObject({
      ...ofStep,
      signal: Sentence,
      source: Id,
      /** The id that the sender gave it. */
      eventId: Id,
      actor: Id,
      payloadHash: Hash,
    }),
    text: ({ step, actor, signal }) => `${step}: ${actor} sent the signal "${signal}"`,
  }),
  'step.retry_scheduled': eventKind({
    summary: 'An attempt failed, and the next one is scheduled; or with `flag`, the step waits until this flag is on.',
    fields: z.strictObject({ ...ofStep, retryAt: Time, error: RecordedErrorFields, flag: Id.optional() }),
    text: ({ step, retryAt, error, flag }, time) =>
      flag === undefined
        ? `${step}: retry at ${time(retryAt)}: ${errorText(error)}`
        : `${step}: waits for ${flag}: ${errorText(error)}`,
    tone: () => 'waiting',
    replay: endClaim,
    proves: { step: 'ends the claim' },
  }),
  'step.retry_requested': eventKind({
    summary: 'A person requested a retry of a step that had failed.',
    fields: z.strictObject({ ...ofStep, actor: Id }),
    text: ({ step, actor }) => `${step}: ${actor} requested a retry`,
    replay: endClaim,
    proves: { step: 'ends the claim' },
  }),
  'step.failed': eventKind({
    summary: 'The step failed and is not tried again.',
    fields: z.strictObject({ ...ofStep, error: RecordedErrorFields }),
    text: ({ step, error }) => `${step}: failed: ${errorText(error)}`,
    tone: () => 'bad',
    replay: (replay, event, { at }) => {
      const step = stepOf(replay, event);
      takeReused(replay, step, event);
      endStep(step, at, { status: 'failed_terminal', error: event.error });
      // The next attempt needs its own approval.
      step.approvalId = undefined;
    },
    proves: { step: '`status` `failed_terminal`, `error`, no `output`, not `skipped`' },
  }),
  'step.canceled': eventKind({
    summary: 'The run stopped before the step ended.',
    fields: z.strictObject(ofStep),
    text: ({ step }) => `${step}: canceled with the run`,
    replay: (replay, event, { at }) => endStep(stepOf(replay, event), at, { status: 'canceled', input: undefined }),
    proves: { step: '`status` `canceled`, no `output`, `error` or `input`, not `skipped`' },
  }),
};

function endClaim(replay: Replay, event: RecordedEvent): void {
  stepOf(replay, event).claim = undefined;
}

/** Returns the write that this step reused. Such a step has no claim, although the reuse counts as an attempt. */
function takeReused(replay: Replay, step: RecordedStep, { step: id }: RecordedEvent): RecordedEvent | undefined {
  const { reusedLast } = replay;
  replay.reusedLast = undefined;
  if (reusedLast?.step !== id) return undefined;
  step.claim = undefined;
  return reusedLast;
}

function endStep(step: RecordedStep, at: string, ending: Fields): void {
  const { id, index, undoes, tool } = step.fields;
  step.fields = {
    ...(tool !== undefined && { tool }),
    ...{ id, index, undoes, skipped: undefined, output: undefined, error: undefined, updatedAt: at, completedAt: at },
    ...ending,
    ...claimFields(step),
  };
}

/** Fields of the last claim, of the decision that it was made on and of the approval that it depends on. */
function claimFields({ claim, decided, approvalId }: RecordedStep): Fields {
  if (!claim) return {};
  const { attempt, leaseVersion, receiptKey, assigned } = claim;
  const action = decided && { tool: decided.tool, target: decided.target, derived: decided.derived };
  return { attempt, leaseVersion, receiptKey, approvalId, action, assigned };
}
