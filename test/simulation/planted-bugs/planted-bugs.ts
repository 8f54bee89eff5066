import { NO_EARLIER_TOKEN } from '../invariants/approvals.ts';
import type { CrashPointFault } from '../jobs.ts';
import { RULES_FOLLOWED } from '../observer.ts';
import { PLANTED_CARD_BUGS } from './planted-card-bugs.ts';
import { PLANTED_SESSION_BUGS } from './planted-session-bugs.ts';

/** A plausible bug: small edits of the real code, each of a text that occurs exactly once. */
export interface PlantedBug {
  name: string;
  edits: { file: string; find: string; replace: string }[];
  /** The invariants that it may violate. */
  violates: string[];
  /** The evidence of the run shows it, too: the rule that the verifier names. */
  breaksRule?: number;
  /** The shapes whose crash points are tried first; they show most bugs. */
  shapes: string;
  /** With all faults, or with the one that shows it. */
  faults?: CrashPointFault;
  /** Then seeds are tried, with runs of all shapes, or of these, which show it sooner. */
  seedShapes?: string;
}

const PROCESS = 'lambdas/worker/process-run.ts';
const REPORT = 'lambdas/worker/6-report-outcome.ts';
const COMMIT = 'lambdas/run-changes/commit-run.ts';
const CONCLUDE = 'lambdas/run-changes/conclusion/conclude-run.ts';
const SLOTS = 'lambdas/run-changes/conclusion/settle-slots.ts';
const CLAIM = 'lambdas/worker/4-claim-step.ts';
const CONTROL = 'lambdas/run-changes/control/control-run.ts';
const SETTLE = 'lambdas/worker/7-settle-outcome.ts';
const EXECUTOR = 'lambdas/worker/in-process-executor.ts';
const CLAIM_DUE = 'lambdas/worker/1-claim-due-steps.ts';
const AUTHORIZE = 'lambdas/worker/3-authorize-call.ts';
const CHECK_DECISION = 'lambdas/approval/check-decision.ts';
const EXPIRE = 'lambdas/approval/expire-approval.ts';
const VOTES = 'lambdas/people/votes.ts';
const RESOLVE = 'lambdas/run-changes/control/resolve-run.ts';
const ROLL_BACK_ENDED = 'lambdas/run-changes/control/rollback-ended-run.ts';
const CHECK_PLAN = 'lambdas/proposal/check-plan.ts';
const DIGEST = 'lambdas/approval/digest/post-digest.ts';
const COLLECT = 'lambdas/approval/digest/collect-overdue.ts';
const ACT_ON_RUN = 'lambdas/api/bulk/act-on-run.ts';
const STORE = 'test/fakes/memory/memory-run-store.ts';
const OVERDUE = 'overdue-together';
const ACKNOWLEDGE = 'lambdas/worker/agent/acknowledge-assignment.ts';
const END_ASSIGNMENT = 'lambdas/worker/agent/end-assignment.ts';
const CHECK_COMMAND = 'lambdas/proposal/check-command.ts';
const POST_ONCE = 'lambdas/notify/post-once.ts';
const RECEIVE_MESSAGE = 'lambdas/slack/thread/receive-message.ts';
const THREAD = 'talks-in-a-thread';
const AGENTS = 'agent-command,agent-approved,agent-undone,agent-parallel,agent-pauses';

const TWICE = 'a marked write is made at most once';
const COMMAND_TWICE = 'no command runs twice under one approval';
const NOT_ACKNOWLEDGED = 'a command runs only after its acknowledgement';
const NOT_ITS_LEASE = 'a command runs only under the lease that its statement names';
/** The engine itself failed because of the bug. */
const ENGINE_FAILED = 'only injected faults cause errors';
const NOTHING_HAPPENED = 'a failed receipt means that no write happened';
const DECISION_SHOWN = 'responses show the stored decision';
const QUORUM = 'a quorum consists of different people who are not makers';
const NEW_ONCE = 'an approval is new in one digest';
const WRITES_OFF = 'no write starts while writes are off';
const NO_INTENT = 'every write has a committed intent';

export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: 'a claimed write is sent although writes were switched off since',
    edits: [{ file: EXECUTOR, find: 'if (held !== undefined) return heldBack(held);', replace: '' }],
    violates: [WRITES_OFF],
    shapes: 'none',
  },
  {
    name: 'a write is sent if it cannot be read whether writes are on',
    edits: [{ file: EXECUTOR, find: 'return WRITES_UNREADABLE;', replace: 'return undefined;' }],
    violates: [WRITES_OFF],
    shapes: 'none',
  },
  {
    name: 'a step that waited for writes waits for ever if people must approve that it is sent again',
    edits: [{ file: CLAIM_DUE, find: ' && !isOn(settings, now.flag)', replace: '' }],
    violates: ['the simulation ends'],
    shapes: 'none',
  },
  {
    name: 'a step that waited for writes is not tried again',
    edits: [
      {
        file: CLAIM_DUE,
        find: 'return step.retryAt <= now ? resume(worker, state, draft, step) : undefined;',
        replace: 'return !step.flag && step.retryAt <= now ? resume(worker, state, draft, step) : undefined;',
      },
    ],
    violates: ['every run ends', 'the simulation ends'],
    shapes: 'none',
  },
  {
    name: 'a command is acknowledged although writes are off',
    edits: [
      {
        file: ACKNOWLEDGE,
        find: "if (!isOn(state.settings, 'writes.enabled')) return holdBack(ports, caller, assignment);",
        replace: '',
      },
    ],
    violates: ['no command starts while writes are off'],
    shapes: 'none',
    seedShapes: AGENTS,
  },
  {
    name: 'a list of accepted runs begins after the hour of the previous one',
    edits: [
      {
        file: 'lambdas/evidence/accepted-runs/write-accepted-list.ts',
        find: 'const lateSince = before ? later(writing.from, -LATE_MS) : writing.from;',
        replace: 'const lateSince = later(writing.from, before ? LATE_MS : 0);',
      },
    ],
    violates: ['every accepted run is listed once'],
    shapes: 'ends-at-once',
    faults: 'crash_after',
  },
  {
    name: 'a run that rolls back another one is not listed as accepted',
    edits: [
      {
        file: 'test/fakes/memory/memory-accepted-runs.ts',
        find: 'const isShown = ofTenant === tenant && ',
        replace: 'const isShown = ofTenant === tenant && !this.#store.inside.run(tenant, runId)?.rollbackOf && ',
      },
    ],
    violates: ['every accepted run is listed once'],
    shapes: 'rolled-back-after-end',
    faults: 'crash_after',
  },
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
    shapes: 'ends-at-once',
    faults: 'crash_after',
  },
  {
    name: 'a late escalation stage replaces the token of the next one',
    edits: [{ file: STORE, find: 'now.waitNumber <= token.waitNumber', replace: 'now.waitNumber <= 1e9' }],
    violates: [NO_EARLIER_TOKEN],
    shapes: 'none',
    seedShapes: OVERDUE,
  },
  {
    name: 'a digest whose response was lost is not searched for',
    edits: [
      {
        file: DIGEST,
        find: 'const message = await digester.messages.find({ tenant, channel, number, since });',
        replace: 'const message = since === channel ? { channel, ts: String(number) + tenant } : undefined;',
      },
    ],
    violates: [NEW_ONCE],
    shapes: OVERDUE,
    faults: 'lost_reply',
  },
  {
    name: 'the claim of a digest is taken over before its lease has ended',
    edits: [
      {
        file: DIGEST,
        find: 'if (!hasExpired(claim.lease, isoNow(digester.clock))) return undefined;',
        replace: 'if (hasExpired(claim.lease, claim.claimedAt)) return undefined;',
      },
    ],
    violates: [NEW_ONCE],
    shapes: OVERDUE,
  },
  {
    name: 'an overdue approval leaves the outbox before a digest lists it',
    edits: [
      { file: COLLECT, find: '(isListed(approval) || !isOpen(approval))', replace: 'approval.votes.length === 0' },
    ],
    violates: ['an outbox entry is completed after a digest lists its approval', 'every overdue approval is listed'],
    shapes: OVERDUE,
  },
  {
    name: 'a digest forgets which approvals it lists',
    edits: [{ file: DIGEST, find: 'listed: approvals, posted', replace: 'listed: [], posted' }],
    violates: [NEW_ONCE, 'every outbox entry is completed'],
    shapes: OVERDUE,
    faults: 'crash_after',
  },
  {
    name: 'an overdue approval is not enqueued for a digest',
    edits: [
      {
        file: 'lambdas/approval/wait-for-decision.ts',
        find: "draft.enqueue(newOutboxEntry({ kind: 'list_overdue', tenant, runId, approvalId }, draft.at));",
        replace: 'newOutboxEntry;',
      },
    ],
    violates: ['every overdue approval is listed'],
    shapes: OVERDUE,
  },
  {
    name: 'the fencing condition is dropped',
    edits: [
      { file: REPORT, find: ' && now.leaseVersion === leaseVersion', replace: '' },
      { file: STORE, find: ' && current.leaseVersion === receipt.leaseVersion', replace: '' },
    ],
    violates: [
      'a lease version never decreases',
      'a succeeded receipt is not overwritten',
      'a finished step does not change',
    ],
    shapes: 'parallel-steps',
    seedShapes: 'marked-writes,parallel-steps',
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
    violates: ['seq grows by one', 'every commit follows the one before it', 'an ended run does not change'],
    shapes: 'none',
    seedShapes: 'parallel-steps',
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
    violates: [TWICE, 'an undo waits out its quarantine'],
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
    shapes: 'retried-by-operator',
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
    shapes: 'marked-writes',
    faults: 'crash_after',
  },
  {
    name: 'an opaque write is sent again after its worker was killed',
    edits: [{ file: CLAIM_DUE, find: "own.effect === 'opaque' || ", replace: '' }],
    violates: ['an opaque write is made at most once'],
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
    shapes: 'parallel-approvals',
  },
  {
    name: 'an orphaned run is failed instead of resumed',
    edits: [{ file: 'lambdas/run-changes/recover-run.ts', find: ' && resumes >= ORPHAN_RESUMES_MAX', replace: '' }],
    violates: ['an orphaned run is resumed before it is failed'],
    shapes: 'workers-unavailable',
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
        find: 'if (leftMs < (writes ? TIME_FOR_A_RESPONSE_MS : 1)) {',
        replace: 'if (leftMs === undefined) {',
      },
    ],
    violates: [TWICE, 'a stopped run makes no write', 'an opaque write is made at most once'],
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
    violates: ['a write with high blast radius is sent again only after an approval'],
    shapes: 'none',
    seedShapes: 'high-blast-radius',
  },
  {
    name: 'an unknown outcome is recorded as a failure',
    edits: [
      {
        file: SETTLE,
        find: "if (outcome.kind === 'unknown') {",
        replace: 'if (settled === undefined) {',
      },
    ],
    violates: [NOTHING_HAPPENED, TWICE],
    shapes: 'marked-writes',
    faults: 'lost_reply',
  },
  {
    name: 'a lease is taken over before it has expired',
    edits: [{ file: CLAIM_DUE, find: 'return hasExpired(step.lease, now) ? resume(', replace: 'return now ? resume(' }],
    breaksRule: 17,
    violates: [RULES_FOLLOWED, TWICE, 'a stopped run makes no write', 'an ended run has no open step'],
    shapes: 'none',
    seedShapes: 'marked-writes,parallel-steps',
  },
  {
    name: 'a step is performed although its commit lost',
    edits: [
      {
        file: COMMIT,
        find: "if (result.outcome !== 'committed') {\n      // `lost`",
        replace: "if (result.outcome === 'no_slot') {\n      // `lost`",
      },
    ],
    violates: [
      NO_INTENT,
      TWICE,
      DECISION_SHOWN,
      'a stopped run makes no write',
      'every commit follows the one before it',
      ENGINE_FAILED,
    ],
    shapes: 'none',
  },
  {
    name: 'a write is made although another run has its receipt key',
    edits: [
      {
        file: STORE,
        find: "return current.outcome !== 'succeeded' && ownEarlierAttempt;",
        replace: 'return ownEarlierAttempt || true;',
      },
    ],
    violates: [TWICE, 'a succeeded receipt is not overwritten', NOTHING_HAPPENED, NO_INTENT],
    shapes: 'none',
  },
  {
    name: 'running steps are not awaited when a commit fails',
    edits: [{ file: PROCESS, find: 'failures.push(error);', replace: 'throw error;' }],
    violates: ['an invocation awaits all calls that it started'],
    shapes: 'parallel-steps',
    faults: 'lost_reply',
  },
  {
    name: 'a run ends while a write is in flight',
    edits: [
      {
        file: 'lambdas/run-changes/conclusion/next-status.ts',
        find: "if (has('running')) return { to: 'running', by };",
        replace: '',
      },
    ],
    violates: [
      'only a running run has a write in flight',
      'an ended run has no open step',
      'a stopped run makes no write',
    ],
    shapes: 'one-parallel-step-fails',
  },
  {
    name: 'a request to stop is ignored',
    edits: [
      { file: 'lambdas/worker/2-start-ready-steps.ts', find: 'draft.run.stopRequest === undefined &&', replace: '' },
    ],
    breaksRule: 14,
    violates: ['a run with a stop request starts nothing'],
    shapes: 'once-per-run',
  },
  {
    name: 'an ended run accepts a command',
    edits: [
      {
        file: 'lambdas/run-changes/change-run.ts',
        find: 'if (!isTerminal(state.run)) return changing(state, draft, noFreeSlot);',
        replace: "if (state.run.status !== 'timed_out') return changing(state, draft, noFreeSlot);",
      },
      // The draft refuses it, too.
      {
        file: 'lambdas/run/statuses/ended-run.ts',
        find: 'if (!isTerminal(before)) return;',
        replace: 'if (before) return;',
      },
    ],
    violates: ['an ended run does not change'],
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
    violates: ['only a running run has a slot', 'counters equal the number of runs that have a slot'],
    shapes: 'waits-90-seconds',
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
    violates: ['counters equal the number of runs that have a slot'],
    shapes: 'waits-90-seconds',
  },
  {
    name: 'two runs take one concurrency key',
    edits: [
      {
        file: 'test/fakes/memory/memory-caps.ts',
        find: 'now === undefined || now.holder === runId;',
        replace: 'now === undefined || runId !== undefined;',
      },
    ],
    violates: ['one run at a time has a concurrency key', 'an open run has its concurrency key'],
    shapes: 'none',
    seedShapes: 'one-run-per-key',
  },
  {
    name: 'a workflow’s own slot is not taken',
    edits: [{ file: SLOTS, find: 'if (ofWorkflow !== undefined) {', replace: 'if (ofWorkflow === 0) {' }],
    violates: ['a running run has a slot', 'a workflow has at most as many running runs as its cap'],
    shapes: 'one-run-per-workflow',
  },
  {
    name: 'a workflow’s own slot is not returned',
    edits: [
      {
        file: SLOTS,
        find: "draft.note({ workflowSlot: undefined }).cap({ kind: 'return_slot', slot: before.workflowSlot });",
        replace: 'draft.note({ workflowSlot: undefined });',
      },
    ],
    violates: ['counters equal the number of runs that have a slot'],
    shapes: 'one-run-per-workflow',
  },
  {
    name: 'a run that ends at once does not release its concurrency key',
    edits: [{ file: SLOTS, find: "draft.waiveCap('take_key');", replace: 'draft.cap();' }],
    violates: ['an ended run has released its concurrency key'],
    shapes: 'ends-at-once',
  },
  {
    name: 'the dedupe condition is missing',
    edits: [
      {
        file: STORE,
        find: 'return record === undefined || record.expiresAt <= at;',
        replace: 'return record === undefined || at !== undefined;',
      },
    ],
    violates: ['a delivery starts its runs once', 'an event starts an automation once'],
    shapes: 'sequential-steps',
  },
  {
    name: 'a signed body is not recorded',
    edits: [
      {
        file: 'lambdas/intake/accept-delivery.ts',
        find: 'if (delivery.bodyIsKey)',
        replace: 'if (delivery.key === "")',
      },
    ],
    violates: ['a signed body starts its runs once'],
    shapes: 'none',
    seedShapes: 'sequential-steps',
  },
  {
    name: 'two events of a pull request within seconds count as one',
    edits: [
      { file: 'lambdas/intake/github-delivery.ts', find: 'hashOf(content)', replace: "hashOf(content.number ?? '')" },
    ],
    violates: ['the response to a delivery names runs of its event'],
    shapes: 'none',
    seedShapes: 'sequential-steps',
  },
  {
    name: 'an automation that a second hook starts is not recorded',
    edits: [
      {
        file: 'lambdas/intake/accept-delivery.ts',
        find: 'if (!isKnown(existing) && !mayOutlive) continue;',
        replace: 'if (existing === undefined || isKnown(existing)) continue;',
      },
    ],
    violates: ['an event starts an automation once', 'a burst starts its runs once'],
    shapes: 'none',
    seedShapes: 'sequential-steps',
  },
  {
    name: 'the chain is broken',
    edits: [{ file: 'lambdas/run/run-draft.ts', find: 'prevHash: run.headHash', replace: 'prevHash: run.runId' }],
    violates: ['every commit follows the one before it'],
    shapes: 'sequential-steps',
  },
  {
    name: 'a step starts before the steps that it needs',
    edits: [
      {
        file: 'lambdas/workflow/step-order.ts',
        find: "(need) => steps.get(need)?.status === 'succeeded'",
        replace: "(need) => steps.get(need)?.status !== 'failed_terminal'",
      },
    ],
    violates: ['a step starts only after the steps that it needs'],
    shapes: 'parallel-steps',
  },
  {
    name: 'an ended run is not due, so that a lost message loses its seal',
    edits: [{ file: CONCLUDE, find: '  draft.requireSeal(sealDueAt(draft));\n', replace: '' }],
    violates: ['an ended run is due until it is sealed', 'every ended run is sealed'],
    shapes: 'sequential-steps',
  },
  {
    name: 'a worker does not seal an ended run that is due',
    edits: [
      {
        file: 'lambdas/worker/process-run.ts',
        find: 'if (await worker.runs.clearSealDue(run, entry)) await',
        replace: 'if (await worker.runs.clearSealDue(run)) await',
      },
      { file: 'lambdas/worker/process-run.ts', find: 'worker.outbox.dispatch(entry);', replace: 'undefined;' },
    ],
    violates: ['every ended run is sealed'],
    shapes: 'sequential-steps',
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
      {
        file: 'lambdas/evidence/bundle/draft-bundle.ts',
        find: 'if (!isTerminal(run)) throw',
        replace: 'if (!run) throw',
      },
    ],
    // The sealer refuses a run that has not ended, because its verifier would.
    violates: ['evidence is never sealed early', ENGINE_FAILED],
    shapes: 'waits-90-seconds',
  },
  {
    name: 'a run refers to the bundle of another run of its batch',
    edits: [
      {
        file: 'lambdas/evidence/bundle/seal-run.ts',
        find: 'within: places[index] as Within',
        replace: 'within: places[0] as Within',
      },
    ],
    violates: ['the evidence record has the hash of its document'],
    shapes: 'none',
  },
  {
    name: 'the sweeper does not send the runs',
    edits: [
      {
        file: 'lambdas/sweep/sweep.ts',
        find: 'new Set(await sweeper.queue.sendTogether(runs))',
        replace: 'new Set(await sweeper.queue.sendTogether([]))',
      },
    ],
    violates: ['the simulation ends'],
    shapes: 'sequential-steps',
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
    shapes: 'none',
  },
  {
    name: 'a denied call is made',
    edits: [
      {
        file: AUTHORIZE,
        find: "if (decision.verdict === 'deny') {",
        replace: "if (decision.verdict === 'deny' && decision.retryable) {",
      },
    ],
    breaksRule: 2,
    violates: ['no denied write is made'],
    shapes: 'needs-approval',
  },
  {
    name: 'an approval that policy requires is not requested',
    edits: [
      {
        file: 'lambdas/policy/gates.ts',
        find: "if (decision.verdict === 'needs_approval') required",
        replace: "if (decision.policyHash === '') required",
      },
      {
        file: 'lambdas/policy/gates.ts',
        find: "{ asks: 'policy', requirement: decision.requirement }",
        replace: "{ asks: 'policy', requirement: ALWAYS_TWO }",
      },
    ],
    breaksRule: 4,
    violates: ['every write has the approval that it needs'],
    shapes: 'needs-approval',
  },
  {
    name: 'an approval needs one vote less than its quorum',
    edits: [
      {
        file: 'lambdas/approval/decide.ts',
        find: 'const missing = requirement.quorum - approvedBy.length;',
        replace: 'const missing = requirement.quorum - 1 - approvedBy.length;',
      },
      {
        file: VOTES,
        find: 'Math.max(0, approval.requirement.quorum - countedVotes(approval, people).length)',
        replace: 'Math.max(0, approval.requirement.quorum - 1 - countedVotes(approval, people).length)',
      },
    ],
    breaksRule: 9,
    violates: [QUORUM],
    shapes: 'two-approvers',
  },
  {
    name: 'an expired approval is decided and used',
    edits: [
      { file: CHECK_DECISION, find: 'if (expiresAt > at) return;', replace: "if (expiresAt > '' && at > '') return;" },
      { file: AUTHORIZE, find: "if (approval.expiresAt <= at) return 'expired';", replace: '' },
      { file: EXPIRE, find: 'if (step.expiresAt > draft.at) return;', replace: 'if (step) return;' },
      // So that people decide after it.
      {
        file: 'lambdas/approval/request-approval.ts',
        find: 'expiresAt: later(at, expiresMs),',
        replace: 'expiresAt: later(at, 1),',
      },
    ],
    breaksRule: 7,
    violates: ['an expired approval is not approved'],
    shapes: 'needs-approval',
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
    breaksRule: 6,
    violates: ['an approval covers only what was shown'],
    shapes: 'parallel-approvals',
  },
  {
    name: 'policy does not decide again after an approval',
    edits: [
      {
        file: AUTHORIZE,
        find: 'return await decideOnCall(worker, ',
        replace:
          'const decide = async (...asked: Parameters<Worker["policy"]["decide"]>) => step.governed?.decision ?? worker.policy.decide(...asked);\n  return await decideOnCall({ ...worker, policy: { decide } }, ',
      },
    ],
    violates: ['the policy engine decided, after an approval with the current policies'],
    shapes: 'needs-approval',
  },
  {
    name: 'policy that cannot decide allows the call',
    edits: [
      {
        file: 'lambdas/policy/fail-closed-policy.ts',
        find: "verdict: 'deny' as const,\n      code: 'POLICY_ERROR' as const,",
        replace: "verdict: 'allow',",
      },
    ],
    violates: ['the policy engine decided, after an approval with the current policies'],
    shapes: 'none',
    seedShapes: 'sequential-steps',
  },
  {
    name: 'votes of makers count',
    edits: [
      { file: CHECK_DECISION, find: 'if (makers.includes(id)) {', replace: "if (id === 'nobody') {" },
      {
        file: 'lambdas/people/eligibility.ts',
        find: 'if (makers.includes(id)) return undefined;',
        replace: '',
      },
      { file: VOTES, find: ' || makers.includes(voter.id)', replace: '' },
    ],
    breaksRule: 10,
    violates: [QUORUM],
    shapes: 'edited-first',
  },
  {
    name: 'two votes of one person count',
    edits: [
      {
        file: 'lambdas/approval/decide.ts',
        find: ': approval.votes.some(',
        replace: ': !isOpen(approval) && approval.votes.some(',
      },
      { file: VOTES, find: ' || places.has(place)', replace: '' },
    ],
    breaksRule: 9,
    violates: [QUORUM, 'a person votes once'],
    shapes: 'edited-first',
  },
  {
    name: 'the vote of a person counts whose rights a maker granted',
    edits: [
      {
        file: 'lambdas/people/provenance.ts',
        find: 'rights.dependsOn.find((each) => makers.includes(each))',
        replace: 'rights.dependsOn.find((each) => each === id)',
      },
    ],
    violates: [QUORUM],
    shapes: 'quorum-not-reached',
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
    shapes: 'quorum-not-reached',
  },
  {
    name: 'the votes of an absent person and of their delegate both count',
    edits: [{ file: VOTES, find: '(eligible.onBehalfOf ?? voter.id)', replace: 'voter.id' }],
    breaksRule: 9,
    violates: [QUORUM],
    shapes: 'quorum-not-reached',
  },
  {
    name: 'the vote of an editor counts when an approval is requested again',
    edits: [
      {
        file: 'lambdas/proposal/propose-call.ts',
        find: '(each) => each?.request.action.makers ?? []',
        replace: '() => []',
      },
    ],
    breaksRule: 11,
    violates: [QUORUM],
    shapes: 'edited-first',
  },
  {
    name: 'an approval of a phase covers a write that it did not show',
    edits: [
      {
        file: 'lambdas/approval/find-covering-approval.ts',
        find: ' || approvedHashOf(approval, step.index) !== actionHash',
        replace: '',
      },
    ],
    breaksRule: 6,
    violates: ['every write has the approval that it needs'],
    shapes: 'one-approval-per-phase',
  },
  {
    name: 'a write whose target a model chose needs no approval',
    edits: [{ file: 'lambdas/policy/gates.ts', find: 'if (action.derived && !action.undo)', replace: 'if (false)' }],
    breaksRule: 4,
    violates: ['every write has the approval that it needs'],
    shapes: 'model-chooses-target',
  },
  {
    name: 'the vote of the sender of a signal counts',
    edits: [{ file: CONTROL, find: 'draft.addMaker(actor);\n  succeed', replace: 'succeed' }],
    breaksRule: 11,
    violates: [QUORUM],
    shapes: 'signal-then-approval',
  },
  {
    name: 'the vote of the person who requested a rollback counts',
    edits: [{ file: CONTROL, find: "if (kind === 'rollback') draft.addMaker(actor);", replace: '' }],
    breaksRule: 11,
    violates: [QUORUM],
    shapes: 'rollback-needs-approval',
  },
  {
    name: 'votes remain after an edit',
    edits: [{ file: 'lambdas/approval/edit-write.ts', find: 'votes: [],', replace: 'votes: approval.votes,' }],
    violates: ['a vote before an edit does not count after it'],
    shapes: 'edited-first',
  },
  {
    name: 'an expiry is recorded as a rejection',
    edits: [{ file: 'lambdas/approval/expire-approval.ts', find: "status: 'expired'", replace: "status: 'rejected'" }],
    violates: ['every rejection has a person and a reason', 'an expiry is not recorded as a rejection'],
    shapes: 'quorum-not-reached',
  },
  {
    name: 'a decision is not published',
    edits: [
      {
        file: 'lambdas/run/run-draft.ts',
        find: "this.enqueue(newOutboxEntry({ kind: 'follow_approval', tenant, runId, approvalId, revision }, this.at));",
        replace: '',
      },
    ],
    violates: ['a decision ends the wait for it'],
    shapes: 'two-approvers',
  },
  {
    name: 'an undo does not check for drift',
    edits: [
      {
        file: 'lambdas/worker/in-process-executor.ts',
        find: 'if (expects && !(before && isAs(expects, before))) throw drifted(claimed);',
        replace: '',
      },
    ],
    violates: ['a value that somebody else changed is not undone'],
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
    shapes: 'none',
    seedShapes: 'reused-label',
  },
  {
    name: 'an undo with unknown outcome is recorded as not made',
    edits: [
      {
        file: 'lambdas/run-changes/conclusion/compensation.ts',
        find: 'const written = step.undoes === undefined ? step : draft.steps.get(step.undoes);',
        replace: 'const written = step.undoes === undefined ? step : undefined;',
      },
    ],
    violates: ['the compensation log matches the receipts'],
    shapes: 'none',
    seedShapes: 'reused-label,changed-by-others',
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
    violates: ['a loop or call runs for every item'],
    shapes: 'for-each',
  },
  {
    name: 'a loop runs for its items in reverse order',
    edits: [
      {
        file: 'lambdas/workflow/step-scope.ts',
        find: 'list[item.position] : list,',
        replace: 'list[list.length - 1 - item.position] : list,',
      },
    ],
    violates: ['the last write to a field remains'],
    shapes: 'none',
    seedShapes: 'for-each',
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
    shapes: 'calls-workflow',
  },
  {
    name: 'the oldest write is undone first',
    edits: [
      {
        file: 'lambdas/run-changes/conclusion/compensation.ts',
        find: 'a.completedAt > b.completedAt ||',
        replace: 'a.completedAt < b.completedAt ||',
      },
    ],
    breaksRule: 16,
    violates: ['the newest write is undone first'],
    shapes: 'third-write-fails',
  },
  {
    name: 'an ended run is rolled back again',
    edits: [
      {
        file: ROLL_BACK_ENDED,
        find: 'if (ended.rolledBackBy !== undefined && fromStep === undefined) return undefined;',
        replace: '',
      },
      {
        file: ROLL_BACK_ENDED,
        find: 'if (ended.rolledBackBy !== undefined) {',
        replace: "if (ended.rolledBackBy === '') {",
      },
    ],
    violates: ['an ended run is rolled back at most once'],
    shapes: 'rolled-back-after-end',
  },
  {
    name: 'a write that a person found is resolved as not made',
    edits: [{ file: RESOLVE, find: "if (finding === 'did_not') {", replace: "if (finding === 'happened') {" }],
    violates: ['a resolved receipt says what happened', NOTHING_HAPPENED, 'a succeeded receipt has a write'],
    shapes: 'rolled-back-after-end',
    faults: 'crash_after',
  },
  {
    name: 'a rollback run leaves the receipts of the ended run as they are',
    edits: [
      { file: SETTLE, find: 'receipt?.runId !== writerOf(draft.run)', replace: 'receipt?.runId !== draft.run.runId' },
    ],
    violates: ['the compensation log matches the receipts'],
    shapes: 'rolled-back-after-end',
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
    violates: ['evidence is complete', 'a commit after the end has an outbox entry for its evidence'],
    shapes: 'rolled-back-after-end',
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
    shapes: 'repeated-after-end',
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
    shapes: 'repeated-after-end',
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
    shapes: 'repeated-after-end',
    faults: 'crash_after',
  },
  {
    name: 'a run that applies a plan ignores what changed at its targets',
    edits: [{ file: CHECK_PLAN, find: 'return before ? { expects: before } : {};', replace: 'return {};' }],
    violates: ['a run that applies a plan refuses drift'],
    shapes: 'repeated-after-end',
    faults: 'crash_after',
  },
  {
    name: 'a bulk action does not find its own earlier commit',
    edits: [
      {
        file: ACT_ON_RUN,
        find: 'if (commits.some(({ events }) => events.some(isOwn))) return { isDone: true, lastSeq };',
        replace: '',
      },
    ],
    violates: ['a bulk job acts on a run at most once'],
    shapes: 'changed-in-bulk',
    faults: 'crash_before',
  },
  {
    name: 'a bulk action changes a run that was changed since it was read',
    edits: [
      {
        file: CONTROL,
        find: 'if (expectedSeq !== undefined && state.run.seq !== expectedSeq) throw new RunChanged();',
        replace: '',
      },
    ],
    violates: ['a bulk job acts on a run at most once'],
    shapes: 'changed-in-bulk',
    faults: 'crash_before',
  },
  {
    name: 'the result of a bulk action ignores its own commit',
    edits: [
      {
        file: ACT_ON_RUN,
        find: '(await ownCommit(actor.runs, job, run)).isDone',
        replace: '(await ownCommit(actor.runs, job, run)).lastSeq < 0',
      },
    ],
    violates: ['the results of a bulk job say what happened'],
    shapes: 'changed-in-bulk',
  },
  {
    name: 'a second resolution with another outcome counts as the same',
    edits: [
      {
        file: RESOLVE,
        find: 'if (canonicalJson(before) === canonicalJson({ ...resolving })) return;',
        replace: 'if (canonicalJson(before.reason) === canonicalJson(resolving.reason)) return;',
      },
    ],
    violates: ['the results of a bulk job say what happened'],
    shapes: 'none',
  },
  {
    name: 'the results of a bulk job are stored without a condition',
    edits: [
      {
        file: 'test/fakes/memory/memory-bulk-jobs.ts',
        find: 'if (this.#jobs.get(key)?.revision !== read.revision) return false;',
        replace: '',
      },
    ],
    violates: ['a bulk job continues where it stopped'],
    shapes: 'changed-in-bulk',
    faults: 'pause',
  },
  {
    name: 'a bulk job that continues begins with its first run',
    edits: [
      {
        file: 'lambdas/api/bulk/bulk.ts',
        find: 'job.runs.slice(job.results.length, job.results.length + ports.batchRuns)',
        replace: 'job.runs.slice(0, ports.batchRuns)',
      },
    ],
    violates: ['a bulk job continues where it stopped'],
    shapes: 'changed-in-bulk',
    faults: 'crash_before',
  },
  {
    name: 'the token of a preview is valid for other runs',
    edits: [
      {
        file: 'lambdas/api/bulk/bulk.ts',
        find: 'if (contentOf(job) !== content) throw badToken();',
        replace: 'if (content === undefined) throw badToken();',
      },
    ],
    violates: ['a bulk job acts only on the runs of its preview'],
    shapes: 'changed-in-bulk',
    faults: 'crash_before',
  },
  {
    name: 'an acknowledgement is confirmed although its commit was not made',
    edits: [
      {
        file: ACKNOWLEDGE,
        find: "if (drafted.outcome !== 'committed') return undefined;",
        replace: '',
      },
    ],
    violates: [NOT_ACKNOWLEDGED, NOT_ITS_LEASE],
    shapes: 'none',
    seedShapes: AGENTS,
  },
  {
    name: 'a withdrawn assignment can be acknowledged under the next lease',
    edits: [
      {
        file: ACKNOWLEDGE,
        find: "!isTerminal(run) && step?.status === 'running' && step.leaseVersion === leaseVersion",
        replace: "!isTerminal(run) && step?.status === 'running' && leaseVersion > 0",
      },
    ],
    violates: ['an assignment is acknowledged once, under its lease', NOT_ITS_LEASE],
    shapes: 'none',
    seedShapes: AGENTS,
  },
  {
    name: 'a command whose agent is lost is assigned again without a person',
    edits: [
      {
        file: END_ASSIGNMENT,
        find: 'const outcome = assigned\n    ? lostOutcome',
        replace: 'const outcome = assigned && !assignment\n    ? lostOutcome',
      },
    ],
    violates: [COMMAND_TWICE, 'a lost command is assigned again only by a person'],
    shapes: 'agent-command',
    faults: 'pause',
  },
  {
    name: 'a command that was running when its agent was restarted is assigned again',
    edits: [
      {
        file: 'lambdas/worker/agent/complete-assignment.ts',
        find: "if (request.status === 'unknown') return reportLost(ports, caller, assignment);",
        replace: "if (request.status === 'unknown') request.status = 'never_started';",
      },
    ],
    violates: [COMMAND_TWICE, 'the outcome of a command whose agent is lost stays unknown'],
    shapes: 'agent-undone',
    faults: 'crash_before',
  },
  {
    name: 'a result is accepted under an old lease',
    edits: [
      { file: REPORT, find: ' && now.leaseVersion === leaseVersion', replace: '' },
      {
        file: 'lambdas/worker/agent/complete-assignment.ts',
        find: "if (assignment.status === 'acknowledged') {",
        replace: 'if (assignment.acknowledgedAt !== undefined) {',
      },
    ],
    violates: ['a result settles only its own lease', COMMAND_TWICE],
    shapes: 'agent-pauses',
    faults: 'pause',
  },
  {
    name: 'the slot of an acknowledged command does not expire',
    edits: [
      {
        file: ACKNOWLEDGE,
        find: "state: 'acknowledged', until: expiresAt }",
        replace: "state: 'acknowledged', until: '9999' }",
      },
    ],
    violates: ['slots of agents never leak'],
    shapes: 'agent-command',
    faults: 'pause',
  },
  {
    name: 'the lists of a profile are not checked',
    edits: [{ file: CHECK_COMMAND, find: 'if (!forbidden && !rollbackForbidden) return;', replace: 'return;' }],
    violates: ['a profile allows every command that runs'],
    shapes: 'agent-forbidden',
    faults: 'lost_reply',
  },
  {
    name: 'a worker that lost the response to its offer settles a step that an agent has acknowledged',
    edits: [
      { file: REPORT, find: ' && !isTaken(now, outcome)', replace: '' },
      {
        file: 'test/fakes/memory/memory-agents.ts',
        find: ' || this.assignments.peek(...assignmentRow(assignment))?.statementHash === assignment.statementHash',
        replace: '',
      },
    ],
    violates: [COMMAND_TWICE],
    shapes: 'none',
    seedShapes: AGENTS,
  },
  {
    name: 'a notice is posted while another invocation posts it',
    edits: [
      {
        file: POST_ONCE,
        find: 'if (!hasExpired(read.claim.lease, now)) return false;',
        replace: '',
      },
    ],
    violates: ['each destination gets each notice once'],
    shapes: 'none',
    seedShapes: THREAD,
  },
  {
    name: 'a notice whose outcome is unknown is posted again without a search',
    edits: [
      {
        file: POST_ONCE,
        find: 'if (error instanceof OutcomeUnknown) return undefined;',
        replace: 'if (error instanceof OutcomeUnknown) return REFUSED_PAUSE_MS;',
      },
    ],
    violates: ['each destination gets each notice once'],
    shapes: THREAD,
    faults: 'lost_reply',
    seedShapes: THREAD,
  },
  {
    name: 'a message about the end of a run is posted before it has ended',
    edits: [
      {
        file: CONCLUDE,
        find: '  showProgress(draft);',
        replace:
          "  if (draft.run.notify) draft.enqueue(newOutboxEntry({ ...draft.run, kind: 'notify_run_end' }, draft.at));",
      },
      { file: 'lambdas/notify/notify-run-end.ts', find: 'if (!run || !isTerminal(run)) {', replace: 'if (!run) {' },
    ],
    violates: ['a notice follows the event that it is about'],
    shapes: THREAD,
  },
  {
    name: 'the outbox entry is completed although a destination was not notified',
    edits: [
      {
        file: 'lambdas/notify/notify-run-end.ts',
        find: 'if (done) await notifier',
        replace: 'if (done || results.length > 0) await notifier',
      },
    ],
    violates: ['every destination is notified of the end'],
    shapes: THREAD,
    faults: 'lost_reply',
    seedShapes: THREAD,
  },
  {
    name: 'a message that Slack repeats wakes the next step',
    edits: [{ file: RECEIVE_MESSAGE, find: '{ expectedSeq: seq }', replace: '{}' }],
    violates: ['a message in a thread has one effect', ENGINE_FAILED],
    shapes: 'none',
    seedShapes: THREAD,
  },
  {
    name: 'only the last run of a thread is searched for a message that Slack repeats',
    edits: [{ file: RECEIVE_MESSAGE, find: 'of runs.toReversed()) {', replace: 'of runs.slice(-1)) {' }],
    violates: ['a message in a thread has one effect'],
    shapes: 'none',
    seedShapes: THREAD,
  },
  {
    name: 'two messages at once start two runs of a thread',
    edits: [
      {
        file: 'lambdas/slack/thread/thread-runs.ts',
        find: ', record(runKey(message, last), THREAD_RETAINED_MS)];',
        replace: ', ...[record(runKey(message, last), THREAD_RETAINED_MS)].filter(() => last !== undefined)];',
      },
    ],
    violates: ['a thread has one open run'],
    shapes: 'none',
    seedShapes: THREAD,
  },
  ...PLANTED_CARD_BUGS,
  ...PLANTED_SESSION_BUGS,
];
