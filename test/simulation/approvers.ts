import type { Deciding, Decision } from '../../lambdas/approval/decide.ts';
import type { Approval, Channel } from '../../lambdas/run/approval.ts';
import type { Functions } from './functions.ts';
import { PEOPLE, personOf } from './people.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { VirtualTime } from './virtual-time.ts';

const INSISTS_AFTER_MS = 20_000;
const INSISTS_TIMES = 30;
/** People are asked again after every edit: without a limit, a simulation would never end. */
const WORDS_MAX = 80;
const CHANNELS: readonly Channel[] = ['slack', 'slack', 'api', 'console'];
const SOON_MS = 40_000;

/** Somebody's word on an approval: who, what, and how long after they were asked. */
interface Word {
  person: string;
  afterMs: number;
  decision: 'approve' | 'reject' | 'edit';
}

/** How the people of a world answer what they are asked. */
const MANNERS = {
  /** An absent person and their delegate count as one; the others may not decide at all. */
  not_enough: [
    { person: 'fay', afterMs: SOON_MS / 4, decision: 'approve' },
    { person: 'eli', afterMs: SOON_MS / 2, decision: 'approve' },
    { person: 'dee', afterMs: SOON_MS, decision: 'approve' },
    { person: 'pip', afterMs: SOON_MS + 300, decision: 'approve' },
    { person: 'quin', afterMs: SOON_MS + 600, decision: 'approve' },
    { person: 'wanda', afterMs: SOON_MS + 900, decision: 'approve' },
  ],
  two_agree: [
    { person: 'ana', afterMs: SOON_MS, decision: 'approve' },
    { person: 'bo', afterMs: SOON_MS + 900, decision: 'approve' },
  ],
  one_refuses: [{ person: 'bo', afterMs: SOON_MS, decision: 'reject' }],
  edited_first: [
    { person: 'ivy', afterMs: SOON_MS / 4, decision: 'approve' },
    { person: 'bo', afterMs: SOON_MS / 2, decision: 'edit' },
    { person: 'bo', afterMs: SOON_MS - 900, decision: 'approve' },
    { person: 'ana', afterMs: SOON_MS, decision: 'approve' },
    { person: 'ana', afterMs: SOON_MS + 500, decision: 'approve' },
    { person: 'ivy', afterMs: SOON_MS + 900, decision: 'approve' },
  ],
} satisfies Record<string, readonly Word[]>;
/** Asked about the same payload again, its editor is still none of those who may agree to it. */
const ASKED_AGAIN: readonly Word[] = ['bo', 'ana', 'ivy'].map((person, at) => ({
  person,
  afterMs: SOON_MS + at * 900,
  decision: 'approve',
}));
/** `anyone`: anybody says anything at any time, twice and against each other. */
export type Manners = keyof typeof MANNERS | 'anyone';

/** With a key for what they are themselves. */
const byKeyOf = (person: string) => ({ via: 'api' as const, role: personOf(person)?.role ?? 'member' });

/** The people who are asked. They decide on what they have seen, sometimes on what has long been changed. */
export class Approvers {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #functions: Functions;
  readonly #manners: Manners;
  /** As each approval is now. */
  readonly #seen: (approvalId: string) => Approval | undefined;
  readonly #asked = new Set<string>();
  #words = 0;

  constructor(
    time: VirtualTime,
    random: SeededRandom,
    functions: Functions,
    known: { manners: Manners; seen: (approvalId: string) => Approval | undefined },
  ) {
    this.#time = time;
    this.#random = random;
    this.#functions = functions;
    this.#manners = known.manners;
    this.#seen = known.seen;
  }

  /** An approval was opened, or edited, after which everyone is asked again. */
  asked(approval: Approval): void {
    if (this.#manners === 'anyone') this.#anybody(approval);
    else if (approval.edits.length === 0) this.#asArranged(approval, this.#manners);
  }

  #asArranged(approval: Approval, manners: keyof typeof MANNERS): void {
    const step = `${approval.runId} ${approval.stepIndex}`;
    const askedAgain = this.#asked.has(step) && manners === 'edited_first';
    this.#asked.add(step);
    for (const word of askedAgain ? ASKED_AGAIN : MANNERS[manners]) {
      this.#time.after(word.afterMs, () => this.#insist(approval.approvalId, word, 1));
    }
  }

  /** Repeats the decision until there is a response. */
  #insist(approvalId: string, word: Word, times: number): void {
    const approval = this.#seen(approvalId);
    if (!approval) return;
    this.#functions.decide(this.#deciding(approval, word), (ending) => {
      if (ending === 'returned' || times > INSISTS_TIMES) return;
      this.#time.after(INSISTS_AFTER_MS, () => this.#insist(approvalId, word, times + 1));
    });
  }

  #anybody(approval: Approval): void {
    const random = this.#random;
    // Some are never answered at all; silence must not approve anything.
    const words = random.chance(0.15) ? 0 : random.between(1, 7);
    const withinMs = random.pick([400, 20_000, 120_000, 600_000]);
    for (let word = 0; word < words && this.#words < WORDS_MAX; word += 1) {
      this.#words += 1;
      const decision = random.pick(['approve', 'approve', 'approve', 'approve', 'reject', 'edit'] as const);
      const said = { person: random.pick(PEOPLE).id, afterMs: random.between(0, withinMs), decision };
      const deciding = this.#deciding(approval, said);
      this.#say(deciding, said.afterMs);
      // A double click, and Slack repeating itself; or the same person once more, elsewhere.
      if (random.chance(0.2)) this.#say(deciding, said.afterMs + random.between(0, 400));
      if (random.chance(0.1))
        this.#say({ ...deciding, ...byKeyOf(said.person) }, said.afterMs + random.between(0, 9_000));
    }
  }

  #say(deciding: Deciding, afterMs: number): void {
    this.#time.after(afterMs, () => this.#functions.decide(deciding, () => {}));
  }

  #deciding({ tenant, approvalId, actionHash, action }: Approval, { person, decision }: Word): Deciding {
    const via = this.#random.pick(CHANNELS);
    const by = via === 'api' ? byKeyOf(person) : { via };
    return { tenant, approvalId, person, actionHash, decision: this.#decision(decision, action?.fields ?? {}), ...by };
  }

  #decision(kind: Word['decision'], fields: Record<string, unknown>): Decision {
    if (kind === 'approve') return { kind };
    if (kind === 'reject') return { kind, reason: 'not now' };
    const [field = 'state', value = ''] = this.#random.pick(Object.entries(fields)) ?? [];
    return { kind, fields: { [field]: Array.isArray(value) ? [...value, 'edited'] : `${value}+` } };
  }
}
