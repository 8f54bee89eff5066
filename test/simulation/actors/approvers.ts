import type { Deciding, Decision } from '../../../lambdas/approval/decide.ts';
import type { Approval, Channel } from '../../../lambdas/run/approval.ts';
import type { Functions } from '../environment/functions.ts';
import type { SeededRandom } from '../environment/seeded-random.ts';
import type { VirtualTime } from '../environment/virtual-time.ts';
import { PEOPLE, personById } from './simulated-people.ts';

const REPEATS_AFTER_MS = 20_000;
const REPEATS_TIMES_MAX = 30;
/** An approval is requested again after every edit: without a limit, a simulation would never end. */
const DECISIONS_MAX = 80;
const CHANNELS: readonly Channel[] = ['slack', 'slack', 'api', 'console'];
const SOON_MS = 40_000;

/** A decision on an approval: who decides what, and how long after the request. */
interface PlannedDecision {
  person: string;
  afterMs: number;
  decision: 'approve' | 'reject' | 'edit';
}

/** How the approvers of a simulation decide. */
const DECISIONS = {
  /** An absent person and their delegate count as one; the others may not decide at all. */
  not_enough: [
    { person: 'fay', afterMs: SOON_MS / 4, decision: 'approve' },
    { person: 'eli', afterMs: SOON_MS / 2, decision: 'approve' },
    { person: 'dee', afterMs: SOON_MS, decision: 'approve' },
    { person: 'pip', afterMs: SOON_MS + 300, decision: 'approve' },
    { person: 'quin', afterMs: SOON_MS + 600, decision: 'approve' },
    { person: 'wanda', afterMs: SOON_MS + 900, decision: 'approve' },
  ],
  two_approve: [
    { person: 'ana', afterMs: SOON_MS, decision: 'approve' },
    { person: 'bo', afterMs: SOON_MS + 900, decision: 'approve' },
  ],
  /** After the SLA of `overdue-together`, two digests and a repeat. */
  late: [
    { person: 'ana', afterMs: 20 * 60_000, decision: 'approve' },
    { person: 'bo', afterMs: 20 * 60_000 + 900, decision: 'approve' },
  ],
  one_rejects: [{ person: 'bo', afterMs: SOON_MS, decision: 'reject' }],
  edited_first: [
    { person: 'ivy', afterMs: SOON_MS / 4, decision: 'approve' },
    { person: 'bo', afterMs: SOON_MS / 2, decision: 'edit' },
    { person: 'bo', afterMs: SOON_MS - 900, decision: 'approve' },
    { person: 'ana', afterMs: SOON_MS, decision: 'approve' },
    { person: 'ana', afterMs: SOON_MS + 500, decision: 'approve' },
    { person: 'ivy', afterMs: SOON_MS + 900, decision: 'approve' },
  ],
} satisfies Record<string, readonly PlannedDecision[]>;
/** When an approval of the same payload is requested again: the editor still may not approve it. */
const DECISIONS_WHEN_ASKED_AGAIN: readonly PlannedDecision[] = ['bo', 'ana', 'ivy'].map((person, at) => ({
  person,
  afterMs: SOON_MS + at * 900,
  decision: 'approve',
}));
/** `random`: anybody decides anything at any time, twice, and in conflict with others. */
export type ApproverBehavior = keyof typeof DECISIONS | 'random';

/** With an API key of their own role. */
const byKeyOf = (person: string) => ({ via: 'api' as const, role: personById(person)?.role ?? 'member' });

/** The approvers. They decide on the version of a write that they have seen, which may be outdated. */
export class Approvers {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #functions: Functions;
  readonly #manners: ApproverBehavior;
  readonly #current: (approvalId: string) => Approval | undefined;
  readonly #requestedSteps = new Set<string>();
  #decisions = 0;

  constructor(
    time: VirtualTime,
    random: SeededRandom,
    functions: Functions,
    known: { approverBehavior: ApproverBehavior; current: (approvalId: string) => Approval | undefined },
  ) {
    this.#time = time;
    this.#random = random;
    this.#functions = functions;
    this.#manners = known.approverBehavior;
    this.#current = known.current;
  }

  /** An approval was requested, or its write was edited. */
  requested(approval: Approval): void {
    if (this.#manners === 'random') this.#decideAtRandom(approval);
    else if (approval.edits.length === 0) this.#decideAsPlanned(approval, this.#manners);
  }

  #decideAsPlanned(approval: Approval, approverBehavior: keyof typeof DECISIONS): void {
    const step = `${approval.runId} ${approval.stepIndex}`;
    const askedAgain = this.#requestedSteps.has(step) && approverBehavior === 'edited_first';
    this.#requestedSteps.add(step);
    for (const planned of askedAgain ? DECISIONS_WHEN_ASKED_AGAIN : DECISIONS[approverBehavior]) {
      this.#time.after(planned.afterMs, () => this.#decideUntilReturned(approval.approvalId, planned, 1));
    }
  }

  /** Repeats the decision until there is a response. */
  #decideUntilReturned(approvalId: string, planned: PlannedDecision, times: number): void {
    const approval = this.#current(approvalId);
    if (!approval) return;
    this.#functions.decide(this.#deciding(approval, planned), (ending) => {
      if (ending === 'returned' || times > REPEATS_TIMES_MAX) return;
      this.#time.after(REPEATS_AFTER_MS, () => this.#decideUntilReturned(approvalId, planned, times + 1));
    });
  }

  #decideAtRandom(approval: Approval): void {
    const random = this.#random;
    // Nobody decides on some approvals: they must expire.
    const count = random.chance(0.15) ? 0 : random.between(1, 7);
    const withinMs = random.pick([400, 20_000, 120_000, 600_000]);
    for (let each = 0; each < count && this.#decisions < DECISIONS_MAX; each += 1) {
      this.#decisions += 1;
      const decision = random.pick(['approve', 'approve', 'approve', 'approve', 'reject', 'edit'] as const);
      const planned = { person: random.pick(PEOPLE).id, afterMs: random.between(0, withinMs), decision };
      const deciding = this.#deciding(approval, planned);
      this.#send(deciding, planned.afterMs);
      // A double click or a retry of Slack; or the same person again with an API key.
      if (random.chance(0.2)) this.#send(deciding, planned.afterMs + random.between(0, 400));
      if (random.chance(0.1))
        this.#send({ ...deciding, ...byKeyOf(planned.person) }, planned.afterMs + random.between(0, 9_000));
    }
  }

  #send(deciding: Deciding, afterMs: number): void {
    this.#time.after(afterMs, () => this.#functions.decide(deciding, () => {}));
  }

  #deciding({ tenant, approvalId, actionHash, action }: Approval, { person, decision }: PlannedDecision): Deciding {
    const via = this.#random.pick(CHANNELS);
    const by = via === 'api' ? byKeyOf(person) : { via };
    return { tenant, approvalId, person, actionHash, decision: this.#decision(decision, action?.fields ?? {}), ...by };
  }

  #decision(kind: PlannedDecision['decision'], fields: Record<string, unknown>): Decision {
    if (kind === 'approve') return { kind };
    if (kind === 'reject') return { kind, reason: 'not now' };
    const [field = 'state', value = ''] = this.#random.pick(Object.entries(fields)) ?? [];
    return { kind, fields: { [field]: Array.isArray(value) ? [...value, 'edited'] : `${value}+` } };
  }
}
