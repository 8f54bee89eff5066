import type { PolicyDecision, PolicyRequest, ProposedAction } from '../../../lambdas/policy/policy.ts';
import type { Approval } from '../../../lambdas/run/approval.ts';
import { hashOf, sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { type Commit, genesisHash } from '../../../lambdas/run/commit.ts';
import { digestSentences } from '../../../lambdas/run/events/digest-sentences.ts';
import type { CommitEvent } from '../../../lambdas/run/events/events.ts';
import type { Compensation } from '../../../lambdas/run/events/write-events.ts';
import { later } from '../../../lambdas/run/lease.ts';
import type { Receipt, SucceededReceipt } from '../../../lambdas/run/receipt.ts';
import type { TerminalRun, Trigger } from '../../../lambdas/run/run.ts';
import type { Step } from '../../../lambdas/run/step.ts';
import { STORY_BEGINS_AT } from '../../fakes/fake-clock.ts';
import type { BundleContents } from './built-bundle.ts';

/** Texts of people, systems and secrets in all parts of the run. None may be in its evidence. */
export const TEXT_CANARIES = [
  'CANARY-payload',
  'CANARY-title',
  'CANARY-key',
  'CANARY-value',
  'CANARY-before',
  'CANARY-output',
  'CANARY-message',
  'CANARY-reason',
  'CANARY-error',
];

const POLICY_HASH = sha256Hex('policies of acme');
const WORKFLOW = { name: 'triage-incident', version: 3 };
const SYS_ID = '6dbb1847acd165f19a4179377de298c8';
const TARGET = `servicenow:acme:incident:${SYS_ID}`;
const ERROR = { code: 'TARGET_REFUSED', message: 'Slack says: CANARY-error' } as const;

const ENRICHMENT = { title: 'CANARY-title', links: ['https://example.com/CANARY-title'] };

/** Commits that follow the formula of docs/evidence-format.md, not the code of the engine. */
class Chronicle {
  readonly commits: Commit[] = [];
  #prevHash: string;
  #at = STORY_BEGINS_AT;

  constructor(tenant: string, runId: string) {
    this.#prevHash = genesisHash(tenant, runId);
  }

  get at(): string {
    return this.#at;
  }

  commit(...events: CommitEvent[]): this {
    const unsealed = { seq: this.commits.length + 1, prevHash: this.#prevHash, at: this.#at };
    const hash = hashOf({ ...unsealed, events: digestSentences(events) });
    this.commits.push({ ...unsealed, events, hash });
    this.#prevHash = hash;
    this.#at = later(this.#at, 1_250);
    return this;
  }
}

const moved = (from: TerminalRun['status'] | string, to: string, error?: { code: string; message: string }) =>
  ({
    type: 'run.status_changed',
    from,
    to,
    initiator: 'system',
    actor: 'worker',
    ...(error && { error, reason: 'CANARY-reason' }),
  }) as CommitEvent;

const action = (tool: string, target: string, fields: Record<string, unknown>, undo = false): ProposedAction => ({
  tool,
  connector: tool.split('.')[0] ?? '',
  instance: 'acme',
  target,
  fields,
  effect: 'natural',
  risk: 'medium',
  blastRadius: 'medium',
  environment: 'prod',
  destructive: false,
  reversible: true,
  undo,
  makers: ['dora'],
});

const ACTIONS = {
  classify: action('model.invoke', 'model:claude', { prompt: 'CANARY-value' }),
  assign: action('servicenow.incident.update', TARGET, { assignment_group: 'CANARY-value' }),
  post: action('slack.message.post', 'slack:#incidents', { text: 'CANARY-value' }),
  undo_assign: action('servicenow.incident.update', TARGET, { assignment_group: 'CANARY-before' }, true),
};
type Named = keyof typeof ACTIONS;
const INDEXES: Record<Named, number> = { classify: 0, assign: 1, post: 2, undo_assign: 5001 };
const REQUIREMENT = { tier: 'medium' as const, quorum: 2, groups: [['dba']] };
const BEFORE_THE_EDIT = sha256Hex('before the edit');

export interface StoryOptions {
  tenant?: string;
  runId?: string;
  /** More commits in the middle, as in a run that waits and retries. */
  heartbeats?: number;
}

/** A run with everything that evidence shows: decisions, two votes, an edit, costs, an undo, a failure. */
export class GovernedStory {
  readonly #chronicle: Chronicle;
  readonly #tenant: string;
  readonly #runId: string;
  readonly #heartbeats: number;
  /** When each recorded event was committed. */
  readonly #recordedAt = new Map<string, string>();

  constructor({ tenant = 'acme', runId = 'run_00000001', heartbeats = 0 }: StoryOptions = {}) {
    this.#tenant = tenant;
    this.#runId = runId;
    this.#heartbeats = heartbeats;
    this.#chronicle = new Chronicle(tenant, runId);
    this.#record();
  }

  get contents(): BundleContents {
    return {
      run: this.#run(),
      trigger: this.#trigger(),
      steps: this.#steps(),
      commits: this.#chronicle.commits,
      receipts: this.#receipts(),
      approvals: [this.#approval()],
    };
  }

  #record(): void {
    const { payload, source, event } = this.#trigger();
    const key = `github:${this.#runId}`;
    const accepted = { automation: 'triage', workflow: WORKFLOW, source, event, key, triggerHash: hashOf(payload) };
    this.#chronicle
      .commit({ type: 'run.accepted', ...accepted })
      .commit(
        moved('queued', 'enriching'),
        { type: 'run.enriched', enrichmentHash: hashOf(ENRICHMENT) },
        moved('enriching', 'ready'),
        moved('ready', 'running'),
        ...this.#decided('classify', 'allow'),
        ...this.#begun('classify'),
      )
      .commit(
        ...this.#wrote('classify'),
        ...this.#decided('assign', 'needs_approval', BEFORE_THE_EDIT),
        ...this.#asked(),
      )
      .commit(...this.#decided('assign', 'needs_approval'), this.#edited())
      .commit(this.#voted('ben', 'CANARY-reason'))
      .commit(this.#voted('cleo'), ...this.#agreed());
    for (let beat = 0; beat < this.#heartbeats; beat += 1) {
      const retryAt = later(this.#chronicle.at, 1_000);
      this.#chronicle.commit({ type: 'step.retry_scheduled', step: 'assign', index: 1, retryAt, error: ERROR });
    }
    this.#chronicle
      .commit(...this.#decided('assign', 'needs_approval'), ...this.#begun('assign'))
      .commit(...this.#wrote('assign'), ...this.#decided('post', 'allow'), ...this.#begun('post'))
      .commit(
        { type: 'write.settled', step: 'post', receiptKey: this.#key('post'), outcome: 'failed' },
        { type: 'step.failed', step: 'post', index: 2, error: ERROR },
        this.#recorded('post ended', moved('running', 'rolling_back', ERROR)),
        ...this.#decided('undo_assign', 'allow'),
        ...this.#begun('undo_assign'),
      )
      .commit(
        ...this.#wrote('undo_assign'),
        {
          type: 'write.reversed',
          step: 'assign',
          receiptKey: this.#key('assign'),
          reversedBy: this.#key('undo_assign'),
        },
        { type: 'write.compensated', ...this.#compensation() },
        moved('rolling_back', 'failed_terminal', ERROR),
      );
  }

  #recorded<Event extends CommitEvent>(what: string, event: Event): Event {
    this.#recordedAt.set(what, this.#chronicle.at);
    return event;
  }

  #when(what: string): string {
    return this.#recordedAt.get(what) ?? this.#chronicle.at;
  }

  #key = (step: Named) => `${ACTIONS[step].tool}:acme:${step}:${this.#runId}`;
  #actionHash = (step: Named) => sha256Hex(`${step} of ${this.#runId}`);
  #approvalId = () => `${this.#runId}.3-1`;

  #decided(step: Named, verdict: 'allow' | 'needs_approval', actionHash = this.#actionHash(step)): CommitEvent[] {
    const { tool, target } = ACTIONS[step];
    const grounds = { policyHash: POLICY_HASH, policies: ['writes'], reasons: [`${verdict} in prod`] };
    const asks = verdict === 'allow' ? {} : REQUIREMENT;
    return [
      { type: 'policy.decided', step, index: INDEXES[step], tool, target, verdict, ...grounds, actionHash, ...asks },
    ];
  }

  #begun(step: Named): CommitEvent[] {
    const { tool, target, fields } = ACTIONS[step];
    const claimed = { step, index: INDEXES[step], tool, owner: 'lease_1', leaseVersion: 1, attempt: 1 };
    const { at } = this.#chronicle;
    return [
      { type: 'step.claimed', ...claimed, leaseExpiresAt: later(at, 60_000), inputHash: hashOf(fields) },
      this.#recorded(`${step} begun`, {
        type: 'write.intended',
        step,
        receiptKey: this.#key(step),
        tool,
        target,
        requestHash: hashOf(fields),
      }),
    ];
  }

  #wrote(step: Named): CommitEvent[] {
    const outputHash = hashOf(this.#output(step));
    return [
      { type: 'write.settled', step, receiptKey: this.#key(step), outcome: 'succeeded' },
      this.#recorded(`${step} ended`, { type: 'step.succeeded', step, index: INDEXES[step], outputHash }),
    ];
  }

  #asked(): CommitEvent[] {
    const { slaAt, expiresAt, asks } = this.#approval();
    return [
      this.#recorded('asked', {
        type: 'approval.requested',
        step: 'assign',
        approvalId: this.#approvalId(),
        asks,
        actionHash: BEFORE_THE_EDIT,
        ...REQUIREMENT,
        makers: ['olga'],
        slaAt,
        expiresAt,
      }),
      moved('running', 'waiting_approval'),
    ];
  }

  #edited(): CommitEvent {
    const { makers } = this.#approval();
    const edit = { person: 'dora', via: 'slack' as const, fields: ['assignment_group'], previousHash: BEFORE_THE_EDIT };
    const asks = { actionHash: this.#actionHash('assign'), ...REQUIREMENT, makers };
    const approvalId = this.#approvalId();
    return this.#recorded('edited', { type: 'approval.edited', step: 'assign', approvalId, ...edit, ...asks });
  }

  #voted(person: string, reason?: string): CommitEvent {
    const said = reason === undefined ? {} : { reasonHash: sha256Hex(reason) };
    const vote = { person, via: 'slack' as const, decision: 'approve' as const, ...said };
    const approvalId = this.#approvalId();
    return this.#recorded(`${person} voted`, { type: 'approval.voted', step: 'assign', approvalId, ...vote });
  }

  #agreed(): CommitEvent[] {
    const people = ['ben', 'cleo'];
    return [
      { type: 'approval.decided', step: 'assign', approvalId: this.#approvalId(), status: 'approved', people },
      moved('waiting_approval', 'running'),
    ];
  }

  #run(): TerminalRun {
    const last = this.#chronicle.commits.at(-1);
    const completedAt = last?.at ?? '';
    return {
      schemaVersion: 1,
      tenant: this.#tenant,
      runId: this.#runId,
      automation: 'triage',
      workspace: 'default',
      workflow: WORKFLOW,
      trigger: { source: 'github', event: 'issues.opened', key: `github:${this.#runId}` },
      subject: 'github:octo-org/payments#7',
      enrichment: ENRICHMENT,
      concurrencyKey: 'CANARY-key',
      seq: last?.seq ?? 0,
      headHash: last?.hash ?? '',
      createdAt: STORY_BEGINS_AT,
      updatedAt: completedAt,
      startedAt: later(STORY_BEGINS_AT, 1_250),
      deadlineAt: later(STORY_BEGINS_AT, 7_200_000),
      writes: 4,
      rollback: { endsAs: 'failed_terminal', actor: 'worker', at: this.#when('post ended'), error: ERROR },
      compensation: [this.#compensation()],
      status: 'failed_terminal',
      completedAt,
      durationMs: Date.parse(completedAt) - Date.parse(STORY_BEGINS_AT),
      error: ERROR,
    };
  }

  #compensation(): Compensation {
    return { step: 'assign', receiptKey: this.#key('assign'), outcome: 'reversed', reason: 'CANARY-reason' };
  }

  #trigger(): Trigger {
    return {
      source: 'github',
      event: 'issues.opened',
      fields: { title: 'CANARY-title' },
      payload: { text: `CANARY-payload of ${this.#runId}`, 'CANARY-key': ['CANARY-payload'] },
      receivedAt: STORY_BEGINS_AT,
    };
  }

  #output = (step: Named) => ({ said: `CANARY-output of ${step}`, count: 2 });

  #steps(): Step[] {
    const facts = (step: Named) => ({
      schemaVersion: 1 as const,
      index: INDEXES[step],
      id: step,
      tool: ACTIONS[step].tool,
      leaseVersion: 1,
      attempt: 1,
      updatedAt: this.#when(step === 'assign' ? 'undo_assign ended' : `${step} ended`),
      governed: {
        request: this.#request(step),
        decision: DECISION,
        ...(step === 'assign' && { approvalId: this.#approvalId() }),
      },
    });
    const ended = (step: Named) => ({
      output: this.#output(step),
      receiptKey: this.#key(step),
      completedAt: this.#when(`${step} ended`),
    });
    return [
      { ...facts('classify'), status: 'succeeded', ...ended('classify') },
      { ...facts('assign'), status: 'rolled_back', ...ended('assign') },
      {
        ...facts('post'),
        status: 'failed_terminal',
        input: ACTIONS.post.fields,
        receiptKey: this.#key('post'),
        error: ERROR,
        completedAt: this.#when('post ended'),
      },
      {
        ...facts('undo_assign'),
        status: 'succeeded',
        undoes: 1,
        expects: { assignment_group: 'CANARY-value' },
        ...ended('undo_assign'),
      },
    ];
  }

  #request(step: Named): PolicyRequest {
    const of = {
      tenant: this.#tenant,
      automation: 'triage',
      workspace: 'default',
      workflow: WORKFLOW,
      source: 'github',
    };
    return { ...of, writesBefore: 0, action: ACTIONS[step] };
  }

  #receipts(): Receipt[] {
    const facts = (step: Named) => ({
      schemaVersion: 1 as const,
      tenant: this.#tenant,
      key: this.#key(step),
      runId: this.#runId,
      stepId: step,
      stepIndex: INDEXES[step],
      tool: ACTIONS[step].tool,
      effect: 'natural' as const,
      target: ACTIONS[step].target,
      fields: Object.keys(ACTIONS[step].fields),
      requestHash: hashOf(ACTIONS[step].fields),
      attempt: 1,
      leaseVersion: 1,
      intentAt: this.#when(`${step} begun`),
      openSince: this.#when(`${step} begun`),
      grounds: {
        policyHash: POLICY_HASH,
        policies: ['writes'],
        ...(step === 'assign' && { approvalId: this.#approvalId() }),
      },
    });
    const written = (step: Named): SucceededReceipt => ({
      ...facts(step),
      outcome: 'succeeded',
      settledAt: this.#when(`${step} ended`),
      output: this.#output(step),
      before: { assignment_group: 'CANARY-before' },
      reversal: { tool: 'servicenow.incident.update', input: { to: 'CANARY-before' }, expects: { is: 'CANARY-value' } },
      response: { status: 200 },
    });
    const cost = { provider: 'bedrock', model: 'claude', inputTokens: 1_200, outputTokens: 80, usd: 0.0048 };
    return [
      { ...written('classify'), reversal: { irreversible: 'nothing was changed' }, cost },
      {
        ...written('assign'),
        outcome: 'reversed',
        reversedAt: this.#when('undo_assign ended'),
        reversedBy: this.#key('undo_assign'),
      },
      { ...facts('post'), outcome: 'failed', settledAt: this.#when('post ended'), error: ERROR },
      written('undo_assign'),
    ];
  }

  #approval(): Approval {
    const voted = (person: string) => ({
      person,
      via: 'slack' as const,
      decision: 'approve' as const,
      at: this.#when(`${person} voted`),
    });
    return {
      schemaVersion: 2,
      approvalId: this.#approvalId(),
      tenant: this.#tenant,
      runId: this.#runId,
      stepIndex: 1,
      stepId: 'assign',
      status: 'approved',
      revision: 4,
      requestedAt: this.#when('asked'),
      remindAt: later(STORY_BEGINS_AT, 300_000),
      slaAt: later(STORY_BEGINS_AT, 600_000),
      expiresAt: later(STORY_BEGINS_AT, 86_400_000),
      automation: 'triage',
      workflow: WORKFLOW,
      title: 'CANARY-title',
      asks: 'policy',
      action: ACTIONS.assign,
      message: 'CANARY-message',
      before: { assignment_group: 'CANARY-before' },
      after: { assignment_group: 'CANARY-value' },
      actionHash: this.#actionHash('assign'),
      grounds: { policyHash: POLICY_HASH, policies: ['writes'], reasons: ['needs_approval in prod'] },
      requirement: REQUIREMENT,
      makers: ['olga', 'dora'],
      votes: [{ ...voted('ben'), reason: 'CANARY-reason' }, voted('cleo')],
      edits: [
        {
          person: 'dora',
          via: 'slack',
          at: this.#when('edited'),
          changes: [{ field: 'assignment_group', from: 'CANARY-before', to: 'CANARY-value' }],
          previousHash: BEFORE_THE_EDIT,
        },
      ],
      channel: '#approvals',
      card: { channel: 'C1', ts: '1.2' },
      decidedAt: this.#when('cleo voted'),
    };
  }
}

const DECISION: PolicyDecision = {
  verdict: 'allow',
  policyHash: POLICY_HASH,
  policies: ['writes'],
  reasons: ['allow in prod'],
};
