import type { Clock } from '../../../lambdas/entry/ports.ts';
import type { RunChange } from '../../../lambdas/run/commit.ts';
import type { TenantSettings } from '../../../lambdas/run/settings/caps.ts';
import { isOn } from '../../../lambdas/run/settings/flags.ts';
import type { Invocation } from '../environment/invocation.ts';
import type { Situations } from '../situations.ts';
import type { Report } from './report.ts';
import type { Snapshot } from './run-history.ts';

/**
 * A write starts only if its invocation has read, after the commit of its intent, that writes are on. The read decides: the
 * switch may be turned between it and the request.
 */
export class KillSwitchInvariants {
  readonly #report: Report;
  readonly #known: { time: Clock; situations: Situations };
  /** What an invocation read last. */
  readonly #reads = new WeakMap<Invocation, { isOn: boolean; atMs: number }>();
  /** When an invocation committed the intent of a write, by key. Another one may take the step over while the first pauses. */
  readonly #intendedAtMs = new WeakMap<Invocation, Map<string, number>>();

  constructor(report: Report, known: { time: Clock; situations: Situations }) {
    this.#report = report;
    this.#known = known;
  }

  read(by: Invocation, settings: TenantSettings): void {
    this.#reads.set(by, { isOn: isOn(settings, 'writes.enabled'), atMs: this.#known.time.now() });
  }

  committed(by: Invocation, { receipts, commit }: RunChange, before: Snapshot): void {
    const intended = receipts.filter(({ receipt }) => receipt.outcome === 'intent');
    const times = this.#intendedAtMs.get(by) ?? new Map<string, number>();
    for (const { receipt } of intended) times.set(receipt.key, this.#known.time.now());
    this.#intendedAtMs.set(by, times);
    for (const event of commit.events) {
      if (event.type === 'step.assigned' && !this.#reads.get(by)?.isOn) {
        this.#report('no command starts while writes are off', `${event.step}, acknowledged by ${by.id}`);
      }
      if (event.type !== 'step.retry_scheduled' || event.flag !== 'writes.enabled') continue;
      const was = before.steps.find(({ index }) => index === event.index);
      const isHeld = was?.status === 'running';
      this.#known.situations.record(
        isHeld ? 'a claimed write is held right before its request' : 'a step waits because writes are off',
      );
    }
  }

  /** `key`: of the receipt of the write. */
  sent(by: Invocation, key: string | undefined, what: string): void {
    const read = this.#reads.get(by);
    const intendedAtMs = this.#intendedAtMs.get(by)?.get(key ?? '') ?? 0;
    if (!read?.isOn || read.atMs < intendedAtMs) this.#report('no write starts while writes are off', what);
  }
}
