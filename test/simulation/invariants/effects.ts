import { markOf } from '../../../lambdas/connectors/connector.ts';
import type { Clock } from '../../../lambdas/entry/ports.ts';
import type { Receipt } from '../../../lambdas/run/receipt.ts';
import { receiptKeyOf } from '../../../lambdas/run/step.ts';
import type { MemoryRunStore } from '../../fakes/memory-run-store.ts';
import type { OutsideRequest } from '../simulated-outside.ts';
import { TERMINAL } from './lifecycle-table.ts';
import type { Report } from './report.ts';
import { carriesOut } from './request-content.ts';

const MARK = /countersign:[0-9a-f]{20}/;

/** What reaches the systems outside: only what was intended before, nothing after the end, nothing twice. */
export class EffectsJudge {
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  /** Clocks that differ by more than the design allows for cannot promise when a lease is over. */
  readonly #clocksAreSane: boolean;
  readonly #known: { nobodyHurries: boolean; time: Clock; skewMs: number };
  /** Until when a request must not be repeated, by its content, and since when that is known. */
  readonly #waits = new Map<string, { untilMs: number; toldAtMs: number }>();
  readonly #landed = new Map<string, number>();
  readonly #settled = new Map<string, Receipt>();

  constructor(
    report: Report,
    store: MemoryRunStore,
    known: { clocksAreSane: boolean; nobodyHurries: boolean; time: Clock; skewMs: number },
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
    // Two may look for people at the same moment: whoever was at work already has not heard of it.
    const unaware = method === 'GET' && wait !== undefined && by.beganAtMs < wait.toldAtMs;
    if (tooSoonMs > 0 && !unaware && this.#known.nobodyHurries)
      this.#report('Retry-After is honoured', `${what}, ${tooSoonMs} ms early`);
    if (method !== 'GET' && !this.#isIntended(request)) this.#report('no write without a committed intent', what);
  }

  askedToWait(request: OutsideRequest, untilMs: number): void {
    this.#waits.set(contentOf(request), { untilMs, toldAtMs: this.#known.time.now() });
  }

  landed(request: OutsideRequest): void {
    const { by, method } = request;
    const mark = method === 'GET' ? undefined : markIn(request);
    if (mark === undefined) return;
    const times = (this.#landed.get(mark) ?? 0) + 1;
    this.#landed.set(mark, times);
    if (times > 1 && this.#clocksAreSane) {
      this.#report('a marked write lands at most once', `${mark} landed ${times} times, now by ${by.id}`);
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
    // Taken back: the same may be written again, under the same mark.
    if (receipt.outcome === 'reversed') this.#landed.delete(markOf(receipt.tenant, receipt.key));
    if (receipt.effect !== 'probe') return;
    const times = this.times(receipt.tenant, receipt.key);
    if (receipt.outcome === 'succeeded' && times === 0) {
      this.#report('a receipt of success rests on an effect', receipt.key);
    }
    if (receipt.outcome === 'failed' && times > 0 && this.#clocksAreSane) {
      this.#report('a receipt of failure means that nothing happened', receipt.key);
    }
  }

  /** An intent of this very run for this very content is committed and not known to have failed. */
  #isIntended(request: OutsideRequest): boolean {
    const { tenant, runId = '' } = request.by;
    const mark = markIn(request);
    return this.#store.inside.steps(tenant, runId).some((step) => {
      const receipt = this.#store.inside.receipt(tenant, receiptKeyOf(step) ?? '');
      if (receipt?.runId !== runId || receipt.outcome === 'failed' || receipt.outcome === 'reversed') return false;
      if (receipt.stepIndex !== step.index || !step.governed) return false;
      const isMarked = mark === undefined || mark === markOf(tenant, receipt.key);
      return isMarked && carriesOut(request, step.governed.request.action);
    });
  }
}

const markIn = ({ body }: OutsideRequest) => MARK.exec(JSON.stringify(body ?? null))?.[0];

const contentOf = ({ by, method, url, body }: OutsideRequest) =>
  `${by.tenant} ${by.runId} ${method} ${url.href} ${JSON.stringify(body)}`;
