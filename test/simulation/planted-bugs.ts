import type { CrashPointFault, Job } from './trials.ts';

/** A bug as somebody might write it: small edits of the real code, each of a text that stands there exactly once. */
export interface PlantedBug {
  name: string;
  edits: { file: string; find: string; replace: string }[];
  /** What the simulation may say when it meets the bug. */
  violates: string[];
  /** The job that found it last, tried first to save time. If it finds nothing any more, the whole search follows. */
  foundBy?: Job;
  /** The shapes whose crash points are tried first; most bugs show there already. */
  shapes: string;
  /** Under all faults, or under the one that brings it out. */
  faults?: CrashPointFault;
  /** Then worlds are tried, of any shapes or of these, where it shows sooner. */
  worlds?: string;
}

const PROCESS = 'lambdas/worker/process-run.ts';
const REPORT = 'lambdas/worker/6-report-outcome.ts';
const COMMIT = 'lambdas/run-changes/commit-run.ts';
const CONCLUDE = 'lambdas/run-changes/conclude-run.ts';
const SLOTS = 'lambdas/run-changes/settle-slots.ts';
const CLAIM = 'lambdas/worker/4-claim-step.ts';
const CONTROL = 'lambdas/run-changes/control-run.ts';
const SETTLE = 'lambdas/worker/7-settle-outcome.ts';
const CLAIM_DUE = 'lambdas/worker/1-claim-due-steps.ts';
const AUTHORIZE = 'lambdas/worker/3-authorize-call.ts';
const CHECK_DECISION = 'lambdas/approval/check-decision.ts';
const VOTES = 'lambdas/approval/votes.ts';
const RESOLVE = 'lambdas/run-changes/resolve-run.ts';
const ROLL_BACK_ENDED = 'lambdas/run-changes/rollback-ended-run.ts';
const CHECK_PLAN = 'lambdas/proposal/check-plan.ts';
const STORE = 'test/fakes/memory-run-store.ts';

const TWICE = 'a marked write lands at most once';
/** The engine itself failed because of the bug. */
const OTHERWISE = 'nothing fails but by the faults we make';
const NOTHING_HAPPENED = 'a receipt of failure means that nothing happened';
const DECISION_SHOWN = 'people see what was decided';
const QUORUM = 'a quorum is of different people who had no hand in it';
const NO_INTENT = 'no write without a committed intent';

export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: 'the key of a run does not name the slot of its schedule',
    edits: [
      {
        file: 'lambdas/schedules/fire-schedule.ts',
        find: 'key: () => deliveryKey.schedule({ name, slot }),',
        replace: 'key: (runId) => deliveryKey.schedule({ name, slot: slot + runId }),',
      },
    ],
    violates: ['a slot starts one run'],
    shapes: 'over-at-once',
    faults: 'crash_after',
  },
  {
    name: 'the fencing condition is dropped',
    edits: [
      { file: REPORT, find: ' && now.leaseVersion === leaseVersion', replace: '' },
      { file: STORE, find: ' && current.leaseVersion === receipt.leaseVersion', replace: '' },
    ],
    violates: ['a fencing number never shrinks', 'a receipt of success stands', 'what is done stays done'],
    foundBy: { points: { shape: 'side-by-side', fault: 'pause', call: 31 } },
    shapes: 'side-by-side',
    worlds: 'marked-writes,side-by-side',
  },
  {
    name: 'the sequence condition is dropped',
    edits: [
      { file: STORE, find: '(current) => current?.seq === expectedSeq', replace: '() => true' },
      {
        file: STORE,
        find: '[key, padded(commit.seq)], commit, isNew),\n      ...steps',
        replace: '[key, padded(commit.seq)], commit),\n      ...steps',
      },
    ],
    violates: ['seq grows by one', 'every commit follows the one before it', 'a terminal run never changes'],
    foundBy: { seeds: { from: 3, to: 4, only: ['side-by-side'] } },
    shapes: 'none',
    worlds: 'side-by-side',
  },
  {
    name: 'the intent is skipped',
    edits: [{ file: CLAIM, find: ".putReceipt(receipt, 'free')", replace: '' }],
    violates: [NO_INTENT],
    shapes: 'marked-writes',
  },
  {
    name: 'the quarantine is skipped',
    edits: [
      {
        file: SETTLE,
        find: 'notBefore: later(receipt.intentAt, quarantineMs)',
        replace: 'notBefore: later(draft.at, quarantineMs / 1e6)',
      },
    ],
    violates: [TWICE],
    foundBy: { points: { shape: 'marked-writes', fault: 'lost_reply', call: 12 } },
    shapes: 'marked-writes',
    faults: 'lost_reply',
  },
  {
    name: "an operator's retry skips the quarantine",
    edits: [
      {
        file: CONTROL,
        find: 'return quarantineEnds > draft.at ? quarantineEnds : draft.at;',
        replace: 'return quarantineEnds < draft.at ? quarantineEnds : draft.at;',
      },
    ],
    violates: [TWICE],
    foundBy: { points: { shape: 'retried-by-hand', fault: 'lost_reply', call: 24 } },
    shapes: 'retried-by-hand',
    faults: 'lost_reply',
  },
  {
    name: 'the probe is skipped',
    edits: [
      {
        file: 'lambdas/worker/in-process-executor.ts',
        find: 'const found = await operation.probe?.(input, performance);',
        replace: 'const found = undefined as WriteResult | undefined;',
      },
    ],
    violates: [TWICE],
    foundBy: { points: { shape: 'marked-writes', fault: 'crash_after', call: 12 } },
    shapes: 'marked-writes',
    faults: 'crash_after',
  },
  {
    name: 'an opaque write is sent again after its worker died',
    edits: [{ file: CLAIM_DUE, find: "own.effect === 'opaque' || ", replace: '' }],
    violates: ['an opaque write lands at most once'],
    foundBy: { points: { shape: 'opaque-writes', fault: 'crash_after', call: 19 } },
    shapes: 'opaque-writes',
    faults: 'crash_after',
  },
  {
    name: 'a step that is resumed looks up its names again',
    edits: [
      {
        file: CLAIM_DUE,
        find: 'if (step.input === undefined) return startStep(',
        replace: 'if (step) return startStep(',
      },
    ],
    violates: ['the input of a step is fixed when it is first proposed'],
    foundBy: { points: { shape: 'asks-side-by-side', fault: 'crash_before', call: 170 } },
    shapes: 'asks-side-by-side',
  },
  {
    name: 'a silent run is ended instead of resumed',
    edits: [{ file: 'lambdas/run-changes/recover-run.ts', find: ' && resumes >= ORPHAN_RESUMES_MAX', replace: '' }],
    violates: ['a silent run is resumed before it is given up'],
    shapes: 'workers-away',
  },
  {
    name: 'a worker that paused sends without checking its lease',
    edits: [
      {
        file: 'lambdas/proposal/attempt-time.ts',
        find: 'if (this.#lease && !mayStillSend(',
        replace: 'if (this.#lease && this.#writesSent < 0 && !mayStillSend(',
      },
      {
        file: 'lambdas/proposal/attempt-time.ts',
        find: 'if (leftMs < (writes ? TIME_FOR_AN_ANSWER_MS : 1)) {',
        replace: 'if (leftMs === undefined) {',
      },
    ],
    violates: [TWICE, 'a stopped run makes no call', 'an opaque write lands at most once'],
    foundBy: { points: { shape: 'marked-writes', fault: 'pause', call: 10 } },
    shapes: 'marked-writes',
    faults: 'pause',
  },
  {
    name: 'a write with high blast radius is sent again without approval',
    edits: [
      {
        file: 'lambdas/worker/4-claim-step.ts',
        find: '(step.sent === true || wasSent(earlier)) && !unsettled',
        replace: 'wasSent(earlier) && unsettled',
      },
    ],
    violates: ['a write with high blast radius is sent again only if people agree'],
    foundBy: { seeds: { from: 39, to: 40, only: ['high-blast-radius'] } },
    shapes: 'none',
    worlds: 'high-blast-radius',
  },
  {
    name: 'an unknown outcome is taken for a failure',
    edits: [
      {
        file: SETTLE,
        find: "if (outcome.kind === 'unknown') {",
        replace: 'if (settled === undefined) {',
      },
    ],
    violates: [NOTHING_HAPPENED, TWICE],
    foundBy: { points: { shape: 'marked-writes', fault: 'lost_reply', call: 12 } },
    shapes: 'marked-writes',
    faults: 'lost_reply',
  },
  {
    name: 'a lease is taken over before it has run out',
    edits: [{ file: CLAIM_DUE, find: 'return hasExpired(step.lease, now) ? resume(', replace: 'return now ? resume(' }],
    violates: [TWICE, 'a stopped run makes no call', 'an ended run has no open step'],
    foundBy: { seeds: { from: 75, to: 76, only: ['marked-writes', 'side-by-side'] } },
    shapes: 'none',
    worlds: 'marked-writes,side-by-side',
  },
  {
    name: 'a step is performed although its commit was lost',
    edits: [
      { file: COMMIT, find: "if (result.outcome !== 'committed') {", replace: "if (result.outcome === 'no_slot') {" },
    ],
    violates: [
      NO_INTENT,
      TWICE,
      DECISION_SHOWN,
      'a stopped run makes no call',
      'every commit follows the one before it',
      OTHERWISE,
    ],
    foundBy: { seeds: { from: 13, to: 14 } },
    shapes: 'none',
  },
  {
    name: 'a write is made although another run holds its key',
    edits: [
      {
        file: STORE,
        find: "return current.outcome !== 'succeeded' && ownEarlierAttempt;",
        replace: 'return ownEarlierAttempt || true;',
      },
    ],
    violates: [TWICE, 'a receipt of success stands', NOTHING_HAPPENED, NO_INTENT],
    foundBy: { seeds: { from: 2, to: 3 } },
    shapes: 'none',
  },
  {
    name: 'steps at work are left behind when a commit fails',
    edits: [{ file: PROCESS, find: 'failures.push(error);', replace: 'throw error;' }],
    violates: ['an invocation waits for all it has begun'],
    foundBy: { points: { shape: 'side-by-side', fault: 'lost_reply', call: 31 } },
    shapes: 'side-by-side',
    faults: 'lost_reply',
  },
  {
    name: 'a run ends while a write is in flight',
    edits: [
      {
        file: 'lambdas/run-changes/next-status.ts',
        find: "if (has('running')) return { to: 'running', by };",
        replace: '',
      },
    ],
    violates: [
      'only a running run has a write in flight',
      'an ended run has no open step',
      'a stopped run makes no call',
    ],
    shapes: 'one-side-fails',
  },
  {
    name: 'a request to stop is ignored',
    edits: [
      { file: 'lambdas/worker/2-start-ready-steps.ts', find: 'draft.run.stopRequest === undefined &&', replace: '' },
    ],
    violates: ['a run that was asked to stop begins nothing'],
    shapes: 'once-per-run',
  },
  {
    name: 'a terminal run takes a command',
    edits: [
      {
        file: 'lambdas/run-changes/change-run.ts',
        find: 'if (!isTerminal(state.run)) return changing(state, draft, parked);',
        replace: "if (state.run.status !== 'timed_out') return changing(state, draft, parked);",
      },
      // The draft refuses it, too.
      { file: 'lambdas/run/ended-run.ts', find: 'if (!isTerminal(before)) return;', replace: 'if (before) return;' },
    ],
    violates: ['a terminal run never changes'],
    foundBy: { seeds: { from: 7, to: 8 } },
    shapes: 'none',
  },
  {
    name: 'a slot is returned twice',
    edits: [
      {
        file: SLOTS,
        find: "draft.note({ slot: undefined }).cap({ kind: 'return_slot'",
        replace: "draft.cap({ kind: 'return_slot'",
      },
    ],
    violates: ['only a running run holds a place', 'counters equal the runs that hold a place'],
    shapes: 'waits-a-while',
  },
  {
    name: 'a slot is never returned',
    edits: [
      {
        file: SLOTS,
        find: "draft.note({ slot: undefined }).cap({ kind: 'return_slot', slot: before.slot });",
        replace: 'draft.note({ slot: undefined });',
      },
    ],
    violates: ['counters equal the runs that hold a place'],
    shapes: 'waits-a-while',
  },
  {
    name: 'a concurrency key is taken by two',
    edits: [
      {
        file: 'test/fakes/memory-caps.ts',
        find: 'now === undefined || now.holder === runId;',
        replace: 'now === undefined || runId !== undefined;',
      },
    ],
    violates: ['a key is held by one run at a time', 'a run under way holds its key'],
    foundBy: { seeds: { from: 1, to: 2, only: ['one-at-a-time'] } },
    shapes: 'none',
    worlds: 'one-at-a-time',
  },
  {
    name: 'a workflow’s own slot is not taken',
    edits: [{ file: SLOTS, find: 'if (ofWorkflow !== undefined) {', replace: 'if (ofWorkflow === 0) {' }],
    violates: ['a running run holds a place', 'never more runs of a workflow than its cap'],
    shapes: 'one-of-its-kind',
  },
  {
    name: 'a workflow’s own slot is not given back',
    edits: [
      {
        file: SLOTS,
        find: "draft.note({ workflowSlot: undefined }).cap({ kind: 'return_slot', slot: before.workflowSlot });",
        replace: 'draft.note({ workflowSlot: undefined });',
      },
    ],
    violates: ['counters equal the runs that hold a place'],
    shapes: 'one-of-its-kind',
  },
  {
    name: 'a run that is over at once keeps its concurrency key',
    edits: [{ file: SLOTS, find: "draft.waiveCap('take_key');", replace: 'draft.cap();' }],
    violates: ['an ended run lets go of its key'],
    shapes: 'over-at-once',
  },
  {
    name: 'the dedupe condition is forgotten',
    edits: [
      {
        file: STORE,
        find: 'return record === undefined || record.expiresAt <= at;',
        replace: 'return record === undefined || at !== undefined;',
      },
    ],
    violates: ['a delivery starts its runs once', 'an event starts an automation once'],
    foundBy: { points: { shape: 'in-order', fault: 'crash_before', call: 3 } },
    shapes: 'in-order',
  },
  {
    name: 'a signed body is not remembered',
    edits: [
      {
        file: 'lambdas/intake/accept-delivery.ts',
        find: 'if (delivery.bodyIsKey)',
        replace: 'if (delivery.key === "")',
      },
    ],
    violates: ['a signed body starts its runs once'],
    foundBy: { seeds: { from: 11, to: 12, only: ['in-order'] } },
    shapes: 'none',
    worlds: 'in-order',
  },
  {
    name: 'two events of a pull request within seconds are taken for one',
    edits: [
      { file: 'lambdas/intake/github-delivery.ts', find: 'hashOf(content)', replace: "hashOf(content.number ?? '')" },
    ],
    violates: ['a delivery is answered with runs of its own event'],
    foundBy: { seeds: { from: 11, to: 12, only: ['in-order'] } },
    shapes: 'none',
    worlds: 'in-order',
  },
  {
    name: 'an automation that a second hook starts is not remembered',
    edits: [
      {
        file: 'lambdas/intake/accept-delivery.ts',
        find: 'if (!isKnown(existing) && !mayOutlive) continue;',
        replace: 'if (existing === undefined || isKnown(existing)) continue;',
      },
    ],
    violates: ['an event starts an automation once', 'a burst starts its runs once'],
    foundBy: { seeds: { from: 161, to: 162, only: ['in-order'] } },
    shapes: 'none',
    worlds: 'in-order',
  },
  {
    name: 'the chain is broken',
    edits: [{ file: 'lambdas/run/run-draft.ts', find: 'prevHash: run.headHash', replace: 'prevHash: run.runId' }],
    violates: ['every commit follows the one before it'],
    shapes: 'in-order',
  },
  {
    name: 'a step begins before what it needs',
    edits: [
      {
        file: 'lambdas/workflow/step-order.ts',
        find: "(need) => steps.get(need)?.status === 'succeeded'",
        replace: "(need) => steps.get(need)?.status !== 'failed_terminal'",
      },
    ],
    violates: ['a step begins only when what it needs has succeeded'],
    shapes: 'side-by-side',
  },
  {
    name: 'evidence is sealed early',
    edits: [
      {
        file: CONCLUDE,
        find: '  const dueAt = nextDueAt(draft, workLeft);',
        replace:
          "  draft.enqueue(newOutboxEntry({ kind: 'seal_evidence', tenant: draft.run.tenant, runId: draft.run.runId }, draft.at));\n  const dueAt = nextDueAt(draft, workLeft);",
      },
      { file: 'lambdas/evidence/bundle/seal-run.ts', find: 'if (!isTerminal(run)) throw', replace: 'if (!run) throw' },
    ],
    // The sealer refuses by itself what its verifier would: a run that has not ended.
    violates: ['evidence is never sealed early', OTHERWISE],
    shapes: 'waits-a-while',
  },
  {
    name: 'the sweeper forgets the runs',
    edits: [
      {
        file: 'lambdas/sweep/sweep.ts',
        find: 'new Set(await sweeper.queue.sendTogether(runs))',
        replace: 'new Set(await sweeper.queue.sendTogether([]))',
      },
    ],
    violates: ['a world comes to rest'],
    foundBy: { points: { shape: 'in-order', fault: 'crash_before', call: 3 } },
    shapes: 'in-order',
  },
  {
    name: 'the sweeper stops at the first page',
    edits: [
      {
        file: 'lambdas/sweep/due-by-tenant.ts',
        find: 'while (after !== undefined && hasTimeToRead())',
        replace: 'while (after === undefined && !hasTimeToRead())',
      },
    ],
    violates: ['a sweep sends everything that is due'],
    foundBy: { seeds: { from: 13, to: 14 } },
    shapes: 'none',
  },
  {
    name: 'the sweeper does not postpone what it sent',
    edits: [
      {
        file: 'lambdas/sweep/sweep.ts',
        find: 'sweeper.runs.postponeRun(run, later(now, runResendDelayMs(run.sweeps)))',
        replace: 'sweeper.runs.postponeRun({ ...run, sweeps: -1 }, now)',
      },
    ],
    violates: ['a sweep sends everything that is due'],
    foundBy: { seeds: { from: 2, to: 3 } },
    shapes: 'none',
  },
  {
    name: 'a stale approval is accepted',
    edits: [
      {
        file: AUTHORIZE,
        find: "if (approvedHashOf(approval, step.index) !== actionHash) return 'changed';",
        replace: '',
      },
    ],
    violates: ['an approval holds for what was approved'],
    shapes: 'asks-side-by-side',
  },
  {
    name: 'policy is not asked again after an approval',
    edits: [
      {
        file: AUTHORIZE,
        find: 'return await judgeCall(worker, ',
        replace:
          'const decide = async (...asked: Parameters<Worker["policy"]["decide"]>) => step.governed?.decision ?? worker.policy.decide(...asked);\n  return await judgeCall({ ...worker, policy: { decide } }, ',
      },
    ],
    violates: ['policy itself has decided, on the policies of the moment after an approval'],
    shapes: 'policy-asks',
  },
  {
    name: 'policy that cannot decide says yes',
    edits: [
      {
        file: 'lambdas/policy/fail-closed-policy.ts',
        find: "verdict: 'deny' as const,\n      code: 'POLICY_ERROR' as const,",
        replace: "verdict: 'allow',",
      },
    ],
    violates: ['policy itself has decided, on the policies of the moment after an approval'],
    foundBy: { seeds: { from: 5, to: 6, only: ['in-order'] } },
    shapes: 'none',
    worlds: 'in-order',
  },
  {
    name: 'makers count',
    edits: [
      { file: CHECK_DECISION, find: 'if (makers.includes(id)) {', replace: "if (id === 'nobody') {" },
      {
        file: 'lambdas/people/eligibility.ts',
        find: 'if (makers.includes(id)) return undefined;',
        replace: '',
      },
      { file: VOTES, find: ' || makers.includes(voter.id)', replace: '' },
    ],
    violates: [QUORUM],
    shapes: 'edited-first',
  },
  {
    name: 'one person counts twice',
    edits: [
      {
        file: 'lambdas/approval/decide.ts',
        find: ': approval.votes.some(',
        replace: ': !isOpen(approval) && approval.votes.some(',
      },
      { file: VOTES, find: ' || places.has(place)', replace: '' },
    ],
    violates: [QUORUM, 'a person decides once'],
    shapes: 'edited-first',
  },
  {
    name: 'somebody whom a maker gave the right to approve counts',
    edits: [
      {
        file: 'lambdas/people/provenance.ts',
        find: 'rights.dependsOn.find((each) => makers.includes(each))',
        replace: 'rights.dependsOn.find((each) => each === id)',
      },
    ],
    violates: [QUORUM],
    shapes: 'not-enough-people',
  },
  {
    name: 'a delegate needs no permission of an owner',
    edits: [
      {
        file: 'lambdas/people/eligibility.ts',
        find: 'if (!permission) {',
        replace: 'if (!permission) return undefined;\n  if (!permission) {',
      },
    ],
    violates: [QUORUM],
    shapes: 'not-enough-people',
  },
  {
    name: 'someone away and their delegate both count',
    edits: [{ file: VOTES, find: '(eligible.onBehalfOf ?? voter.id)', replace: 'voter.id' }],
    violates: [QUORUM],
    shapes: 'not-enough-people',
  },
  {
    name: 'an editor counts when people are asked again',
    edits: [
      {
        file: 'lambdas/proposal/propose-call.ts',
        find: '(each) => each?.request.action.makers ?? []',
        replace: '() => []',
      },
    ],
    violates: [QUORUM],
    shapes: 'edited-first',
  },
  {
    name: 'an approval of a phase lets through what it did not show',
    edits: [
      {
        file: 'lambdas/approval/find-covering-approval.ts',
        find: ' || approvedHashOf(approval, step.index) !== actionHash',
        replace: '',
      },
    ],
    violates: ['no write without the people it needs'],
    shapes: 'one-approval-per-phase',
  },
  {
    name: 'a model chooses where a write goes, and nobody is asked',
    edits: [{ file: 'lambdas/policy/gates.ts', find: 'if (action.derived && !action.undo)', replace: 'if (false)' }],
    violates: ['no write without the people it needs'],
    shapes: 'model-chooses',
  },
  {
    name: 'the sender of a signal counts',
    edits: [{ file: CONTROL, find: 'draft.addMaker(actor);\n  succeed', replace: 'succeed' }],
    violates: [QUORUM],
    shapes: 'signaled-then-asked',
  },
  {
    name: 'the person who asked for a rollback counts',
    edits: [{ file: CONTROL, find: "if (kind === 'rollback') draft.addMaker(actor);", replace: '' }],
    violates: [QUORUM],
    shapes: 'undone-if-people-agree',
  },
  {
    name: 'votes survive an edit',
    edits: [{ file: 'lambdas/approval/edit-write.ts', find: 'votes: [],', replace: 'votes: approval.votes,' }],
    violates: ['a vote before an edit does not count after it'],
    shapes: 'edited-first',
  },
  {
    name: 'an expiry is recorded as a rejection',
    edits: [{ file: 'lambdas/approval/expire-approval.ts', find: "status: 'expired'", replace: "status: 'rejected'" }],
    violates: ['only a person rejects, and says why', 'expired is not rejected'],
    shapes: 'not-enough-people',
  },
  {
    name: 'a decision is never followed',
    edits: [
      {
        file: 'lambdas/run/run-draft.ts',
        find: "this.enqueue(newOutboxEntry({ kind: 'follow_approval', tenant, runId, approvalId, revision }, this.at));",
        replace: '',
      },
    ],
    violates: ['a decision ends the wait'],
    shapes: 'two-must-agree',
  },
  {
    name: 'an undo does not look for drift',
    edits: [
      {
        file: 'lambdas/worker/in-process-executor.ts',
        find: 'if (expects && !(before && isAs(expects, before))) throw drifted(claimed);',
        replace: '',
      },
    ],
    violates: ['what someone else changed since is left alone'],
    shapes: 'changed-by-others',
  },
  {
    name: 'a reused write is not marked as reused',
    edits: [
      {
        file: 'lambdas/worker/reuse-identical-write.ts',
        find: 'held.reusedBy === undefined',
        replace: 'held.reusedBy !== undefined',
      },
    ],
    violates: ['a write that another run reuses is not undone'],
    foundBy: { seeds: { from: 2, to: 3, only: ['shares-its-write'] } },
    shapes: 'none',
    worlds: 'shares-its-write',
  },
  {
    name: 'an undo that may have worked is taken for one that did not',
    edits: [
      {
        file: 'lambdas/run-changes/compensation.ts',
        find: 'const written = step.undoes === undefined ? step : draft.steps.get(step.undoes);',
        replace: 'const written = step.undoes === undefined ? step : undefined;',
      },
    ],
    violates: ['the compensation log is true'],
    foundBy: { seeds: { from: 76, to: 77, only: ['shares-its-write', 'changed-by-others'] } },
    shapes: 'none',
    worlds: 'shares-its-write,changed-by-others',
  },
  {
    name: 'a loop leaves its last item out',
    edits: [
      {
        file: 'lambdas/workflow/step-scope.ts',
        find: 'scope.item.position < list.length ?',
        replace: 'scope.item.position + 1 < list.length ?',
      },
    ],
    violates: ['a loop or call leaves no item out'],
    shapes: 'for-each-item',
  },
  {
    name: 'a call that is skipped runs its steps',
    edits: [
      {
        file: 'lambdas/workflow/step-scope.ts',
        find: "if (leader !== 'runs' || !scope.item) return leader;",
        replace: "if (leader === undefined || !scope.item) return 'runs';",
      },
    ],
    violates: ['a step of a loop or call runs only for an item'],
    shapes: 'calls-another',
  },
  {
    name: 'the oldest write is undone first',
    edits: [
      {
        file: 'lambdas/run-changes/compensation.ts',
        find: 'a.completedAt > b.completedAt ||',
        replace: 'a.completedAt < b.completedAt ||',
      },
    ],
    violates: ['the newest write is undone first'],
    shapes: 'third-write-fails',
  },
  {
    name: 'an ended run is rolled back again',
    edits: [{ file: ROLL_BACK_ENDED, find: 'if (ended.rolledBackBy !== undefined) return undefined;', replace: '' }],
    violates: ['an ended run is rolled back at most once'],
    foundBy: { points: { shape: 'undone-after-its-end', fault: 'crash_after', call: 1 } },
    shapes: 'undone-after-its-end',
  },
  {
    name: 'a write that a person found is resolved as not made',
    edits: [{ file: RESOLVE, find: "if (finding === 'did_not') {", replace: "if (finding === 'happened') {" }],
    violates: ['a resolved receipt says what happened', NOTHING_HAPPENED, 'a successful receipt has an effect'],
    foundBy: { points: { shape: 'undone-after-its-end', fault: 'crash_after', call: 31 } },
    shapes: 'undone-after-its-end',
    faults: 'crash_after',
  },
  {
    name: 'a rollback run leaves the receipts of the ended run as they are',
    edits: [
      { file: SETTLE, find: 'receipt.runId !== writerOf(draft.run)', replace: 'receipt.runId !== draft.run.runId' },
    ],
    violates: ['the compensation log is true'],
    foundBy: { points: { shape: 'undone-after-its-end', fault: 'crash_after', call: 1 } },
    shapes: 'undone-after-its-end',
  },
  {
    name: 'a change after the end is not sealed',
    edits: [
      {
        file: 'lambdas/run-changes/change-run.ts',
        find: 'if (next && isTerminal(state.run)) {',
        replace: 'if (next && !isTerminal(state.run)) {',
      },
    ],
    violates: ['evidence is complete', 'an ended run has an outbox entry for its evidence'],
    foundBy: { points: { shape: 'undone-after-its-end', fault: 'crash_after', call: 1 } },
    shapes: 'undone-after-its-end',
  },
  {
    name: 'a replay makes a write of its original again',
    edits: [
      {
        file: CLAIM,
        find: 'const original = earlier ? undefined : await originalWrite(worker, state, step, wanted);',
        replace: 'const original = undefined as Receipt | undefined;',
      },
    ],
    violates: ['a replay makes no write of its original again'],
    foundBy: { points: { shape: 'repeated-after-its-end', fault: 'crash_after', call: 1 } },
    shapes: 'repeated-after-its-end',
    faults: 'crash_after',
  },
  {
    name: 'the key of a request is ignored',
    edits: [
      {
        file: 'lambdas/api/start/start-once.ts',
        find: 'keyOf(client, requestId ?? runId)',
        replace: 'keyOf(client, runId)',
      },
    ],
    violates: ['a repeated request starts one run'],
    foundBy: { points: { shape: 'repeated-after-its-end', fault: 'crash_after', call: 1 } },
    shapes: 'repeated-after-its-end',
    faults: 'crash_after',
  },
  {
    name: 'the writes of a run are not compared with its plan',
    edits: [
      {
        file: CHECK_PLAN,
        find: 'if (!plan || !appliesPlan(step, call)) return undefined;',
        replace: 'if (step) return undefined;',
      },
    ],
    violates: ['a run that applies a plan writes only what it showed'],
    foundBy: { points: { shape: 'repeated-after-its-end', fault: 'crash_after', call: 1 } },
    shapes: 'repeated-after-its-end',
    faults: 'crash_after',
  },
  {
    name: 'a run that applies a plan ignores what changed at its targets',
    edits: [{ file: CHECK_PLAN, find: 'return before ? { expects: before } : {};', replace: 'return {};' }],
    violates: ['a run that applies a plan refuses drift'],
    foundBy: { points: { shape: 'repeated-after-its-end', fault: 'crash_after', call: 1 } },
    shapes: 'repeated-after-its-end',
    faults: 'crash_after',
  },
];
