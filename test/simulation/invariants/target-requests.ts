import { markOf } from '../../../lambdas/connectors/connector.ts';
import type { Clock } from '../../../lambdas/entry/ports.ts';
import type { ProposedAction } from '../../../lambdas/policy/policy.ts';
import type { Approval } from '../../../lambdas/run/approval.ts';
import type { Receipt } from '../../../lambdas/run/receipt.ts';
import { receiptKeyOf } from '../../../lambdas/run/step.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import { HOOKS_HOST } from '../../fakes/targets/http-through-fetch.ts';
import type { TargetRequest } from '../environment/simulated-targets.ts';
import type { KillSwitchInvariants } from './kill-switch.ts';
import { TERMINAL } from './lifecycle-table.ts';
import { matchesAction } from './matches-action.ts';
import type { Report } from './report.ts';

const MARK = /countersign:[0-9a-f]{20}/;

/** Requests to targets: only with a committed intent, none after the end of the run, none twice. */
export class TargetRequestInvariants {
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  /** False if clocks differ by more than the design allows: then the end of a lease is not certain. */
  readonly #clocksAreClose: boolean;
  readonly #known: {
    noCommands: boolean;
    time: Clock;
    skewMs: number;
    killSwitch: KillSwitchInvariants;
    approval: (id: string) => Approval | undefined;
  };
  /**
   * Until when a request must not be repeated, by its content. The invocation that was refused knows it. Invocations that
   * start after its commit must know it too. If its commit is lost, no other invocation can know it.
   */
  readonly #waits = new Map<string, { untilMs: number; refused: TargetRequest['by']; knownAtMs: number }>();
  readonly #timesMade = new Map<string, number>();
  /** When a marked write of a run was last sent. */
  readonly #sentAtMs = new Map<string, number>();
  readonly #receipts = new Map<string, Receipt>();
  /** The receipt key of each request, and the keys whose write has reached its target. */
  readonly #keys = new WeakMap<TargetRequest, string>();
  readonly #made = new Set<string>();
  /** Starts of sessions that their agent has lost: nobody can find out that they were made. */
  readonly #gone = new Set<string>();

  constructor(
    report: Report,
    store: MemoryRunStore,
    known: {
      clocksAreClose: boolean;
      noCommands: boolean;
      time: Clock;
      skewMs: number;
      killSwitch: KillSwitchInvariants;
      approval: (id: string) => Approval | undefined;
    },
  ) {
    this.#report = report;
    this.#store = store;
    this.#clocksAreClose = known.clocksAreClose;
    this.#known = known;
  }

  /** How often a marked write was made. */
  times(tenant: string, receiptKey: string): number {
    return this.#timesMade.get(markOf(tenant, receiptKey)) ?? 0;
  }

  /** What a person finds at the target about each write of a run whose outcome is unknown. */
  findings({ tenant, runId }: { tenant: string; runId: string }): Record<string, 'happened' | 'did_not'> {
    const { inside } = this.#store;
    const open = inside.steps(tenant, runId).flatMap((step) => {
      const receipt = inside.receipt(tenant, receiptKeyOf(step) ?? '');
      const isOpen = receipt?.outcome === 'unknown' || receipt?.outcome === 'intent';
      return isOpen && receipt.runId === runId && receipt.effect !== 'read' ? [receipt] : [];
    });
    return Object.fromEntries(
      open.map(({ stepId, key }) => [stepId, this.#made.has(`${tenant} ${key}`) ? 'happened' : 'did_not']),
    );
  }

  /** A person has resolved writes: the receipts agree with what the target did. */
  resolved(receipts: readonly Receipt[]): void {
    for (const { tenant, key, outcome } of receipts) {
      const happened = this.#made.has(`${tenant} ${key}`);
      if ((outcome === 'succeeded' && !happened) || (outcome === 'failed' && happened)) {
        this.#report('a resolved receipt says what happened', `${key} is ${outcome}`);
      }
    }
  }

  /** An agent has started the command with this receipt key. */
  commandStarted(key: string): void {
    this.#made.add(key);
  }

  /** A session was started. It is a marked write, although no request carries its mark. */
  sessionStarted(tenant: string, key: string): void {
    const mark = markOf(tenant, key);
    this.#timesMade.set(mark, (this.#timesMade.get(mark) ?? 0) + 1);
    this.#made.add(`${tenant} ${key}`);
  }

  sessionGone(tenant: string, key: string): void {
    this.#gone.add(key);
    this.#made.delete(`${tenant} ${key}`);
  }

  sent(request: TargetRequest): void {
    const { by, method, url } = request;
    const what = `${by.id} ${method} ${url.pathname}`;
    if (by.hasReturned) this.#report('an invocation sends nothing after it returned', what);
    const run = this.#store.inside.run(by.tenant, by.runId ?? '');
    const stopped = !run || TERMINAL.has(run.status) || run.status === 'paused';
    // The values that approvers will see may still be read: their commit is then lost.
    if (stopped && method !== 'GET' && this.#clocksAreClose) {
      this.#report('a stopped run makes no write', `${what} of ${run?.runId}, ${run?.status}`);
    }
    const wait = this.#waits.get(contentOf(request));
    const tooSoonMs = (wait?.untilMs ?? 0) - 2 * this.#known.skewMs - this.#known.time.now();
    const cannotKnow = method === 'GET' && wait !== undefined && wait.refused !== by && by.beganAtMs < wait.knownAtMs;
    if (tooSoonMs > 0 && !cannotKnow && this.#known.noCommands)
      this.#report('Retry-After is respected', `${what}, ${tooSoonMs} ms early`);
    if (method !== 'GET' && !this.#intending(request)) this.#report('every write has a committed intent', what);
    if (method !== 'GET') this.#checkRetry(request, what);
    const key = method === 'GET' ? undefined : this.#intending(request)?.key;
    if (key !== undefined) this.#keys.set(request, key);
    if (method !== 'GET') this.#known.killSwitch.sent(by, key, what);
  }

  /** Source 001, 7.2: a write with high blast radius is sent again only after an approval of the retry. */
  #checkRetry(request: TargetRequest, what: string): void {
    const mark = markIn(request);
    if (mark === undefined) return;
    const nowMs = this.#known.time.now();
    const write = `${request.by.runId} ${mark}`;
    const sentAtMs = this.#sentAtMs.get(write);
    this.#sentAtMs.set(write, nowMs);
    const { action, approvalId } = this.#intending(request) ?? {};
    if (sentAtMs === undefined || !action || action.blastRadius === 'low' || !this.#clocksAreClose) return;
    const asked = approvalId === undefined ? undefined : this.#known.approval(approvalId);
    const askedAtMs = Date.parse(asked?.requestedAt ?? '') + this.#known.skewMs;
    if (asked?.status === 'approved' && askedAtMs >= sentAtMs) return;
    this.#report('a write with high blast radius is sent again only after an approval', `${what} with ${approvalId}`);
  }

  retryAfter(request: TargetRequest, untilMs: number): void {
    this.#waits.set(contentOf(request), { untilMs, refused: request.by, knownAtMs: Number.POSITIVE_INFINITY });
  }

  /** An invocation has changed its run: its wait is stored. */
  changed(by: TargetRequest['by']): void {
    const now = this.#known.time.now();
    for (const wait of this.#waits.values()) if (wait.refused === by) wait.knownAtMs = Math.min(wait.knownAtMs, now);
  }

  handled(request: TargetRequest): void {
    const { by, method } = request;
    if (method === 'GET') return;
    const key = this.#keys.get(request);
    if (key !== undefined) this.#made.add(`${by.tenant} ${key}`);
    const opaque = isOpaque(request);
    const mark = opaque ? contentOf(request) : markIn(request);
    if (mark === undefined) return;
    const times = (this.#timesMade.get(mark) ?? 0) + 1;
    this.#timesMade.set(mark, times);
    if (times > 1 && this.#clocksAreClose) {
      const invariant = `${opaque ? 'an opaque' : 'a marked'} write is made at most once`;
      this.#report(invariant, `${mark} was made ${times} times, now by ${by.id}`);
    }
  }

  /** A commit has stored this receipt. */
  committed(receipt: Receipt): void {
    const id = `${receipt.tenant} ${receipt.key}`;
    const before = this.#receipts.get(id);
    if (before?.outcome === 'succeeded' && before.leaseVersion !== receipt.leaseVersion) {
      this.#report('a succeeded receipt is not overwritten', receipt.key);
    }
    this.#receipts.set(id, receipt);
    if (receipt.outcome === 'reversed') this.#made.delete(id);
    // Undone: the same may be written again, with the same mark.
    if (receipt.outcome === 'reversed') {
      this.#timesMade.delete(markOf(receipt.tenant, receipt.key));
      this.#sentAtMs.delete(`${receipt.runId} ${markOf(receipt.tenant, receipt.key)}`);
    }
    if (receipt.effect !== 'probe') return;
    const times = this.times(receipt.tenant, receipt.key);
    if (receipt.outcome === 'succeeded' && times === 0) {
      this.#report('a succeeded receipt has a write', receipt.key);
    }
    if (receipt.outcome === 'failed' && times > 0 && this.#clocksAreClose && !this.#gone.has(receipt.key)) {
      this.#report('a failed receipt means that no write happened', receipt.key);
    }
  }

  /** The decision and approval of the committed intent for this request, unless it is known to have failed. */
  #intending(request: TargetRequest): { action: ProposedAction; approvalId?: string; key: string } | undefined {
    const { tenant, runId = '' } = request.by;
    const mark = markIn(request);
    const step = this.#store.inside.steps(tenant, runId).find((step) => {
      const receipt = this.#store.inside.receipt(tenant, receiptKeyOf(step) ?? '');
      if (receipt?.runId !== runId || receipt.outcome === 'failed' || receipt.outcome === 'reversed') return false;
      if (receipt.stepIndex !== step.index || !step.governed) return false;
      const isMarked = mark === undefined || mark === markOf(tenant, receipt.key);
      return isMarked && matchesAction(request, step.governed.request.action);
    });
    if (!step?.governed) return undefined;
    const { request: asked, approvalId } = step.governed;
    const key = receiptKeyOf(step) ?? '';
    return { action: asked.action, key, ...(approvalId !== undefined && { approvalId }) };
  }
}

const isOpaque = ({ url }: TargetRequest) => url.host === HOOKS_HOST;

const markIn = ({ body }: TargetRequest) => MARK.exec(JSON.stringify(body ?? null))?.[0];

const contentOf = ({ by, method, url, body }: TargetRequest) =>
  `${by.tenant} ${by.runId} ${method} ${url.href} ${JSON.stringify(body)}`;
