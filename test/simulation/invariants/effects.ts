import { markOf } from '../../../lambdas/connectors/connector.ts';
import type { Clock } from '../../../lambdas/entry/ports.ts';
import type { ProposedAction } from '../../../lambdas/policy/policy.ts';
import type { Approval } from '../../../lambdas/run/approval.ts';
import type { Receipt } from '../../../lambdas/run/receipt.ts';
import { receiptKeyOf } from '../../../lambdas/run/step.ts';
import { HOOKS_HOST } from '../../fakes/http-through-fetch.ts';
import type { MemoryRunStore } from '../../fakes/memory-run-store.ts';
import type { OutsideRequest } from '../simulated-targets.ts';
import { TERMINAL } from './lifecycle-table.ts';
import type { Report } from './report.ts';
import { carriesOut } from './request-content.ts';

const MARK = /countersign:[0-9a-f]{20}/;

/** What reaches the systems outside: only what was intended before, nothing after the end, nothing twice. */
export class EffectsJudge {
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  /** With clocks that differ by more than the design allows, the end of a lease is not certain. */
  readonly #clocksAreSane: boolean;
  readonly #known: {
    nobodyHurries: boolean;
    time: Clock;
    skewMs: number;
    approval: (id: string) => Approval | undefined;
  };
  /**
   * Until when a request must not be repeated, by its content. The invocation that was refused knows it; others that begin
   * after it has committed must know it too. If its commit is lost, nobody else can know.
   */
  readonly #waits = new Map<string, { untilMs: number; refused: OutsideRequest['by']; knownAtMs: number }>();
  readonly #landed = new Map<string, number>();
  /** When a marked write of a run was sent last. */
  readonly #sentAtMs = new Map<string, number>();
  readonly #settled = new Map<string, Receipt>();
  /** The receipt key of each request, and the keys whose write has reached its target. */
  readonly #keys = new WeakMap<OutsideRequest, string>();
  readonly #effective = new Set<string>();

  constructor(
    report: Report,
    store: MemoryRunStore,
    known: {
      clocksAreSane: boolean;
      nobodyHurries: boolean;
      time: Clock;
      skewMs: number;
      approval: (id: string) => Approval | undefined;
    },
  ) {
    this.#report = report;
    this.#store = store;
    this.#clocksAreSane = known.clocksAreSane;
    this.#known = known;
  }

  /** How often a marked write has landed. */
  times(tenant: string, receiptKey: string): number {
    return this.#landed.get(markOf(tenant, receiptKey)) ?? 0;
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
      open.map(({ stepId, key }) => [stepId, this.#effective.has(`${tenant} ${key}`) ? 'happened' : 'did_not']),
    );
  }

  /** A person has said whether writes were made: they were right, and their receipts say the same. */
  resolved(receipts: readonly Receipt[]): void {
    for (const { tenant, key, outcome } of receipts) {
      const happened = this.#effective.has(`${tenant} ${key}`);
      if ((outcome === 'succeeded' && !happened) || (outcome === 'failed' && happened)) {
        this.#report('a resolved receipt says what happened', `${key} is ${outcome}`);
      }
    }
  }

  sent(request: OutsideRequest): void {
    const { by, method, url } = request;
    const what = `${by.id} ${method} ${url.pathname}`;
    if (by.isOver) this.#report('an invocation that has answered sends nothing', what);
    const run = this.#store.inside.run(by.tenant, by.runId ?? '');
    const stopped = !run || TERMINAL.has(run.status) || run.status === 'paused';
    // What is there may be read for people to see until the commit that asks them is made, or lost.
    if (stopped && method !== 'GET' && this.#clocksAreSane) {
      this.#report('a stopped run makes no call', `${what} of ${run?.runId}, ${run?.status}`);
    }
    const wait = this.#waits.get(contentOf(request));
    const tooSoonMs = (wait?.untilMs ?? 0) - 2 * this.#known.skewMs - this.#known.time.now();
    const unaware = method === 'GET' && wait !== undefined && wait.refused !== by && by.beganAtMs < wait.knownAtMs;
    if (tooSoonMs > 0 && !unaware && this.#known.nobodyHurries)
      this.#report('Retry-After is honoured', `${what}, ${tooSoonMs} ms early`);
    if (method !== 'GET' && !this.#intending(request)) this.#report('no write without a committed intent', what);
    if (method !== 'GET') this.#judgeRetry(request, what);
    const key = method === 'GET' ? undefined : this.#intending(request)?.key;
    if (key !== undefined) this.#keys.set(request, key);
  }

  /** Source 001, 7.2: a write with high blast radius is sent again only after people have agreed to the retry. */
  #judgeRetry(request: OutsideRequest, what: string): void {
    const mark = markIn(request);
    if (mark === undefined) return;
    const nowMs = this.#known.time.now();
    const write = `${request.by.runId} ${mark}`;
    const sentAtMs = this.#sentAtMs.get(write);
    this.#sentAtMs.set(write, nowMs);
    const { action, approvalId } = this.#intending(request) ?? {};
    if (sentAtMs === undefined || !action || action.blastRadius === 'low' || !this.#clocksAreSane) return;
    const asked = approvalId === undefined ? undefined : this.#known.approval(approvalId);
    const askedAtMs = Date.parse(asked?.requestedAt ?? '') + this.#known.skewMs;
    if (asked?.status === 'approved' && askedAtMs >= sentAtMs) return;
    this.#report('a write with high blast radius is sent again only if people agree', `${what} with ${approvalId}`);
  }

  askedToWait(request: OutsideRequest, untilMs: number): void {
    this.#waits.set(contentOf(request), { untilMs, refused: request.by, knownAtMs: Number.POSITIVE_INFINITY });
  }

  /** An invocation has changed its run: its wait is stored. */
  changed(by: OutsideRequest['by']): void {
    const now = this.#known.time.now();
    for (const wait of this.#waits.values()) if (wait.refused === by) wait.knownAtMs = Math.min(wait.knownAtMs, now);
  }

  landed(request: OutsideRequest): void {
    const { by, method } = request;
    if (method === 'GET') return;
    const key = this.#keys.get(request);
    if (key !== undefined) this.#effective.add(`${by.tenant} ${key}`);
    const opaque = isOpaque(request);
    const mark = opaque ? contentOf(request) : markIn(request);
    if (mark === undefined) return;
    const times = (this.#landed.get(mark) ?? 0) + 1;
    this.#landed.set(mark, times);
    if (times > 1 && this.#clocksAreSane) {
      const invariant = `${opaque ? 'an opaque' : 'a marked'} write lands at most once`;
      this.#report(invariant, `${mark} landed ${times} times, now by ${by.id}`);
    }
  }

  /** A receipt as a commit left it. */
  committed(receipt: Receipt): void {
    const id = `${receipt.tenant} ${receipt.key}`;
    const before = this.#settled.get(id);
    if (before?.outcome === 'succeeded' && before.leaseVersion !== receipt.leaseVersion) {
      this.#report('a receipt of success stands', receipt.key);
    }
    this.#settled.set(id, receipt);
    if (receipt.outcome === 'reversed') this.#effective.delete(id);
    // Undone: the same may be written again, with the same mark.
    if (receipt.outcome === 'reversed') {
      this.#landed.delete(markOf(receipt.tenant, receipt.key));
      this.#sentAtMs.delete(`${receipt.runId} ${markOf(receipt.tenant, receipt.key)}`);
    }
    if (receipt.effect !== 'probe') return;
    const times = this.times(receipt.tenant, receipt.key);
    if (receipt.outcome === 'succeeded' && times === 0) {
      this.#report('a successful receipt has an effect', receipt.key);
    }
    if (receipt.outcome === 'failed' && times > 0 && this.#clocksAreSane) {
      this.#report('a receipt of failure means that nothing happened', receipt.key);
    }
  }

  /** The grounds of an intent of this run for this content, if one is committed and not known to have failed. */
  #intending(request: OutsideRequest): { action: ProposedAction; approvalId?: string; key: string } | undefined {
    const { tenant, runId = '' } = request.by;
    const mark = markIn(request);
    const step = this.#store.inside.steps(tenant, runId).find((step) => {
      const receipt = this.#store.inside.receipt(tenant, receiptKeyOf(step) ?? '');
      if (receipt?.runId !== runId || receipt.outcome === 'failed' || receipt.outcome === 'reversed') return false;
      if (receipt.stepIndex !== step.index || !step.governed) return false;
      const isMarked = mark === undefined || mark === markOf(tenant, receipt.key);
      return isMarked && carriesOut(request, step.governed.request.action);
    });
    if (!step?.governed) return undefined;
    const { request: asked, approvalId } = step.governed;
    const key = receiptKeyOf(step) ?? '';
    return { action: asked.action, key, ...(approvalId !== undefined && { approvalId }) };
  }
}

const isOpaque = ({ url }: OutsideRequest) => url.host === HOOKS_HOST;

const markIn = ({ body }: OutsideRequest) => MARK.exec(JSON.stringify(body ?? null))?.[0];

const contentOf = ({ by, method, url, body }: OutsideRequest) =>
  `${by.tenant} ${by.runId} ${method} ${url.href} ${JSON.stringify(body)}`;
