import * as z from 'zod';
import { RESOLVED_AS, RunStatus, WRITE_FINDINGS } from '../run.ts';
import {
  Count,
  eventKind,
  Hash,
  Id,
  Ids,
  ofWrite,
  RecordedErrorFields,
  Sentence,
  type Severity,
  Time,
} from './event-kind.ts';

const INITIATORS = ['user', 'system', 'timeout', 'policy', 'webhook', 'approval', 'agent'] as const;
export type Initiator = (typeof INITIATORS)[number];

/** The actor of these initiators is a person. */
export const PERSONAL_INITIATORS: readonly Initiator[] = ['user', 'approval'];

/** The approval that a change of status waits for or results from. */
const ApprovalContext = z.strictObject({
  approvalId: Id,
  /** The tool that would be called; `approval` for an approval step. */
  action: Id,
  /** The automation that started the run. */
  requestedBy: Id,
  decision: z.enum(['approved', 'rejected', 'expired']).optional(),
  decidedBy: Ids.optional(),
  /** Of the reason for a rejection. The approval stores the reason. */
  reasonHash: Hash.optional(),
});
export type ApprovalContext = z.infer<typeof ApprovalContext>;

/** The external event that a change of status results from, or that the run waits for. */
const ExternalEventContext = z.strictObject({
  /** `issues.opened`, `incident.update`; `signal` for a signal, whose name is a sentence. */
  type: Id,
  signal: Sentence.optional(),
  source: Id,
  /** The id that its source gave it. Absent while the run waits for it. */
  id: Id.optional(),
  deadlineAt: Time.optional(),
});
export type ExternalEventContext = z.infer<typeof ExternalEventContext>;

/** Who changed the status, and why. */
const By = z.strictObject({
  initiator: z.enum(INITIATORS),
  actor: Id,
  reason: Sentence.optional(),
  approval: ApprovalContext.optional(),
  externalEvent: ExternalEventContext.optional(),
});
export type By = z.infer<typeof By>;

const ResumedFields = z.discriminatedUnion('because', [
  z.strictObject({ resumeCount: Count, because: z.literal('orphaned'), silentSince: Time }),
  z.strictObject({ resumeCount: Count, because: z.literal('lease_expired') }),
  z.strictObject({ resumeCount: Count, because: z.literal('operator'), actor: Id }),
]);

type WithoutCount<Fields> = Fields extends unknown ? Omit<Fields, 'resumeCount'> : never;
/** Why a run continues from its last commit. */
export type Resumed = WithoutCount<z.infer<typeof ResumedFields>>;

const SEVERITY: Partial<Record<RunStatus, Severity>> = {
  needs_human: 'high',
  failed_terminal: 'medium',
  timed_out: 'medium',
};

export const errorText = ({ code, message }: { code: string; message: string }) => `${code}: ${message}`;

export const RUN_EVENTS = {
  'run.accepted': eventKind({
    summary: 'Intake accepted a delivery and created the run. Always in commit 1.',
    fields: z.strictObject({
      automation: Id,
      workflow: z.strictObject({ name: Id, version: z.int() }),
      source: Id,
      event: Id,
      key: Id,
      triggerHash: Hash,
    }),
    text: ({ source, event, automation, workflow }) =>
      `accepted ${source} ${event} for ${automation} (${workflow.name} v${workflow.version})`,
    replay: ({ run, trigger }, { automation, workflow, source, event, key, triggerHash }, { at, seq }) => {
      if (seq !== 1) return;
      Object.assign(run, { automation, workflow, trigger: { source, event, key }, createdAt: at });
      Object.assign(trigger, { source, event, receivedAt: at, payload: { sha256: triggerHash } });
    },
    proves: {
      run: 'in commit 1: `automation`, `workflow`, `trigger` (`source`, `event`, `key`), `createdAt` = *at*; of the entry `trigger`: `source`, `event`, `receivedAt` = *at*, `payload` = `triggerHash`',
    },
  }),
  'run.requested': eventKind({
    summary: 'A person, a program or a schedule requested the run. In commit 1 of a run that no webhook started.',
    fields: z.strictObject({
      actor: Id,
      rerunOf: Id.optional(),
      replay: z.strictObject({ of: Id, from: Id, root: Id.optional() }).optional(),
      planHash: Hash.optional(),
      slot: Time.optional(),
      validationMode: Id.optional(),
      profile: Id.optional(),
      action: z
        .strictObject({
          tool: Id,
          inputHash: Hash,
          of: z.strictObject({ runId: Id, step: Id }).optional(),
        })
        .optional(),
    }),
    text: ({ actor, rerunOf, replay, planHash, slot, action }, time) => {
      if (action)
        return `${actor} proposed ${action.tool}${action.of ? ` in ${action.of.step} of ${action.of.runId}` : ''}`;
      if (replay) return `${actor} requested a replay of ${replay.of} from ${replay.from}`;
      if (rerunOf !== undefined) return `${actor} requested a rerun of ${rerunOf}`;
      if (planHash !== undefined) return `${actor} applied the plan ${planHash}`;
      return slot === undefined ? `requested by ${actor}` : `requested by ${actor} for ${time(slot)}`;
    },
    replay: ({ run }, { type: _type, ...request }, { seq }) => {
      if (seq === 1) run.request = request;
    },
    proves: { run: 'in commit 1: `request`, with all fields; absent if there is no such event' },
  }),
  'run.enriched': eventKind({
    summary: 'The worker read title, actor and links from the trigger, and checked the inputs.',
    fields: z.strictObject({
      enrichmentHash: Hash,
      inputsHash: Hash.optional(),
      /** The person who requested the run or caused its event; of an unknown one the hash of their identity. */
      requester: z.strictObject({ person: Id.optional(), identityHash: Hash.optional() }).optional(),
      /** Decisions of this run have the digests that their hashes are made of. */
      salted: z.literal(true).optional(),
      /** Of the published version of the workflow, which is stored under it. */
      workflowHash: Hash.optional(),
      /** The flags that change what a run does, as they were when it started. */
      flags: z.record(Id, z.boolean()).optional(),
    }),
    text: () => 'title, actor and links were extracted from the trigger',
    replay: ({ run }, { requester, flags }, { at }) => {
      run.startedAt = at;
      run.requester = requester;
      run.flags = flags;
    },
    proves: { run: '`startedAt` = *at*, `requester`, `flags`' },
  }),
  'run.target_resolved': eventKind({
    summary:
      'The worker chose the configuration for the sessions of the run. Without `configuration`, there is none, and the run fails.',
    fields: z.strictObject({
      strategy: z.enum(['fixed', 'agent_decide']),
      configuration: Id.optional(),
      /** What named it: the model, or the automation. */
      via: z.enum(['model', 'fallback', 'default']).optional(),
      model: Id.optional(),
      /** Why the model did not choose it, or why there is none. */
      reason: Sentence.optional(),
    }),
    text: ({ configuration, via, reason }) => {
      const why = reason === undefined ? '' : `: ${reason}`;
      return configuration === undefined
        ? `no configuration for sessions${why}`
        : `configuration ${configuration} (${via})${why}`;
    },
    tone: ({ configuration }) => (configuration === undefined ? 'bad' : undefined),
  }),
  'run.status_changed': eventKind({
    summary: 'The status of the run changed.',
    fields: By.extend({ from: RunStatus, to: RunStatus, error: RecordedErrorFields.optional() }),
    text: ({ to, initiator, actor, error, reason }) => {
      const why = error ? `: ${errorText(error)}` : reason ? ` (${reason})` : '';
      return `run: ${to}${PERSONAL_INITIATORS.includes(initiator) ? ` by ${actor}` : ''}${why}`;
    },
    siem: ({ to, error }) => ({ severity: SEVERITY[to] ?? (error ? 'low' : 'informational'), failed: !!error }),
    replay: ({ run }, { to, actor, error }, { at }) => {
      const durationMs = Math.max(0, Date.parse(at) - Date.parse(String(run.createdAt)));
      Object.assign(run, { status: to, error, completedAt: at, durationMs });
      if (to !== 'rolling_back') return;
      const endsAs = error ? 'failed_terminal' : run.rollbackOf ? 'succeeded' : 'canceled';
      run.rollback = { endsAs, actor, at, error };
    },
    proves: {
      run: '`status` = `to`, `error`, `completedAt` = *at*, `durationMs` = *at* - `createdAt`, at least 0; if `to` is `rolling_back`, `rollback`: `actor`, `error`, `at` = *at*, `endsAs` = `failed_terminal` with an error, `succeeded` in a run with `rollbackOf`, else `canceled`',
    },
  }),
  'run.stop_requested': eventKind({
    summary: 'A person asked to cancel, pause or roll back the run. It stops when no step is in flight.',
    fields: By.pick({ initiator: true, actor: true, reason: true }).extend({
      kind: z.enum(['cancel', 'pause', 'rollback']),
    }),
    text: ({ actor, kind, reason }) =>
      `${actor} requested ${kind === 'rollback' ? 'a rollback' : kind}${reason ? `: ${reason}` : ''}`,
  }),
  'run.resumed': eventKind({
    summary: 'The run continued from its last commit.',
    fields: ResumedFields,
    text: (event, time) => `run: resumed (${event.resumeCount}): ${resumedText(event, time)}`,
    replay: ({ run }) => {
      run.resumeCount = Number(run.resumeCount ?? 0) + 1;
    },
    proves: { run: '`resumeCount`: the number of these events; absent if there is none' },
  }),
  'run.deadline_extended': eventKind({
    summary: 'The deadline was extended by the time that the run waited for people.',
    fields: z.strictObject({ deadlineAt: Time, waitedMs: Count }),
    text: ({ deadlineAt }, time) => `run: deadline extended to ${time(deadlineAt)}, by the time people needed`,
    replay: ({ run }, { deadlineAt }) => {
      run.deadlineAt = deadlineAt;
    },
    proves: { run: '`deadlineAt`' },
  }),
  'run.rolls_back': eventKind({
    summary: 'The run undoes the writes of these steps of a run that has ended. Always in commit 1.',
    fields: z.strictObject({ runId: Id, bundleHash: Hash, steps: Ids, actor: Id, reason: Sentence.optional() }),
    text: ({ runId, steps, actor, reason }) =>
      `${actor} requested to undo ${steps.join(', ')} of ${runId}${reason ? `: ${reason}` : ''}`,
    replay: ({ run }, { runId, bundleHash, steps }, { seq }) => {
      if (seq === 1) run.rollbackOf = { runId, bundleHash, steps };
    },
    proves: { run: 'in commit 1: `rollbackOf` (`runId`, `bundleHash`, `steps`)' },
  }),
  'run.subscribed': eventKind({
    summary: 'A person asked to notify somebody of the end of the run.',
    fields: z.strictObject({
      actor: Id,
      to: z.enum(['slack_channel', 'slack_dm_user']),
      channel: Id.optional(),
      person: Id.optional(),
    }),
    text: ({ actor, channel, person }) => `${actor} asked to notify ${channel ?? person} of the end of the run`,
  }),
  'run.assigned': eventKind({
    summary: 'The run was assigned to a person.',
    fields: z.strictObject({ assignee: Id, actor: Id }),
    text: ({ assignee, actor }) =>
      actor === assignee ? `${actor} assigned the run to themselves` : `${actor} assigned the run to ${assignee}`,
  }),
  'run.released': eventKind({
    summary: 'The run is no longer assigned to the person.',
    fields: z.strictObject({ assignee: Id, actor: Id }),
    text: ({ assignee, actor }) =>
      actor === assignee ? `${actor} released the run` : `${actor} released the run, which ${assignee} had`,
  }),
  'run.resolved': eventKind({
    summary: 'After the end of the run, a person recorded its result and whether each unknown write was made.',
    fields: z.strictObject({
      outcome: z.enum(RESOLVED_AS),
      actor: Id,
      reason: Sentence,
      writes: z.array(z.strictObject({ ...ofWrite, finding: z.enum(WRITE_FINDINGS) })),
    }),
    text: ({ outcome, actor, reason, writes }) => {
      const found = writes.map(({ step, finding }) => `; ${step}: ${FINDING_TEXT[finding]}`);
      return `${actor} resolved the run as ${outcome}: ${reason}${found.join('')}`;
    },
  }),
  'run.broken_rules_accepted': eventKind({
    summary: 'After the end of the run, an owner accepted that it broke these rules, so that it is sealed as such.',
    fields: z.strictObject({ rules: z.array(z.int()), actor: Id, reason: Sentence }),
    text: ({ rules, actor, reason }) => `${actor} accepted that the run broke rules ${rules.join(', ')}: ${reason}`,
    tone: () => 'bad',
    siem: () => ({ severity: 'high' }),
  }),
  'run.rollback_started': eventKind({
    summary: 'After the end of the run, a person started another run that undoes its writes.',
    fields: z.strictObject({ rollbackRunId: Id, actor: Id, reason: Sentence.optional() }),
    text: ({ rollbackRunId, actor, reason }) =>
      `${actor} started the rollback ${rollbackRunId}${reason ? `: ${reason}` : ''}`,
  }),
};

const FINDING_TEXT = { happened: 'the write was made', did_not: 'the write was not made' };

function resumedText(event: z.infer<typeof ResumedFields>, time: (iso: string) => string): string {
  switch (event.because) {
    case 'orphaned':
      return `no progress since ${time(event.silentSince)}`;
    case 'lease_expired':
      return 'the lease of a step expired';
    case 'operator':
      return `by ${event.actor}`;
  }
}
