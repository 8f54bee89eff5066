import { TERMINAL_STATUSES } from '../../../run/run.ts';
import { ALLOWED_TRANSITIONS } from '../../../run/statuses/transitions.ts';
import { breachAt, lastBefore, number, text } from './event-fields.ts';
import type { Breach, Rule } from './rule.ts';
import type { Attempt, PlacedEvent, RunHistory } from './run-history.ts';

/** Rules about order: times, statuses, leases and outcomes. */
export const ORDER_RULES: readonly Rule[] = [
  {
    number: 17,
    name: 'leases-are-in-order',
    description:
      'Each claim of a step has a larger `leaseVersion` than the previous one, an `attempt` of at least 1 and at most one more than the previous one, and a lease that ends after its commit. A step is claimed again only after its write was settled or its lease has ended.',
    check: (history) => claims(history),
  },
  {
    number: 18,
    name: 'outcomes-follow-intents',
    description:
      'A write is settled after it was intended, and once, except that an unknown outcome may become known; a write that succeeded is not made again under its key unless it was reversed.',
    check: (history) => outcomes(history),
  },
  {
    number: 19,
    name: 'times-never-go-back',
    description: 'The `at` of a commit is not before that of the previous commit.',
    check: ({ document: { commits } }) =>
      commits.flatMap(({ seq, at }, index) => {
        const previous = commits[index - 1];
        if (!previous || previous.at <= at) return [];
        return [{ entry: `commit ${seq}`, problem: `is of ${at}, before commit ${previous.seq} of ${previous.at}` }];
      }),
  },
  {
    number: 20,
    name: 'statuses-follow-the-lifecycle',
    description:
      'A run begins as `queued`; each `run.status_changed` has the current status as `from` and an allowed one as `to`; only the last commit ends the run.',
    check: (history) => statuses(history),
  },
];

function claims({ attempts, ofWrite }: RunHistory): Breach[] {
  const settled = new Map(
    [...ofWrite].map(([key, events]) => [key, events.filter(({ event }) => event.type === 'write.settled')]),
  );
  const last = new Map<number, Attempt>();
  return attempts.flatMap((attempt) => {
    const { claimed, index } = attempt;
    if (!claimed) return [];
    const before = last.get(index);
    last.set(index, attempt);
    const problem = claimProblem(claimed, before?.claimed) ?? (before && stillOpen(settled, before, claimed));
    return problem === undefined ? [] : [breachAt(claimed, problem)];
  });
}

function claimProblem({ event, at }: PlacedEvent, before: PlacedEvent | undefined): string | undefined {
  const [leaseVersion, attempt] = [number(event.leaseVersion), number(event.attempt)];
  const [leaseBefore, attemptBefore] = [number(before?.event.leaseVersion ?? 0), number(before?.event.attempt ?? 0)];
  if (!(leaseVersion > leaseBefore)) return `has the lease version ${leaseVersion} after ${leaseBefore}`;
  if (!(attempt >= 1 && attempt <= attemptBefore + 1)) return `is attempt ${attempt} after ${attemptBefore}`;
  return text(event.leaseExpiresAt) > at ? undefined : 'has a lease that had ended before it began';
}

function stillOpen(
  settled: ReadonlyMap<string, readonly PlacedEvent[]>,
  { intended, claimed: held }: Attempt,
  claimed: PlacedEvent,
): string | undefined {
  const ofKey = settled.get(text(intended.event.receiptKey)) ?? [];
  const last = lastBefore(ofKey, claimed.place, ({ place }) => place);
  const isSettled = last !== undefined && last.place > intended.place;
  const expiresAt = text(held?.event.leaseExpiresAt);
  if (isSettled || expiresAt <= claimed.at) return undefined;
  return `claims the step while another lease was valid until ${expiresAt}`;
}

function outcomes({ events }: RunHistory): Breach[] {
  const now = new Map<unknown, string>();
  return events.flatMap((placed) => {
    const { type, receiptKey, outcome } = placed.event;
    const before = now.get(receiptKey);
    switch (type) {
      case 'write.intended':
        now.set(receiptKey, 'intent');
        return before === 'succeeded' ? [breachAt(placed, 'makes a write again that had succeeded')] : [];
      case 'write.settled':
        now.set(receiptKey, text(outcome));
        if (before === 'intent' || before === 'unknown') return [];
        return [breachAt(placed, `settles a write that is ${before ?? 'not intended'}`)];
      case 'write.reversed':
        now.set(receiptKey, 'reversed');
        return [];
      default:
        return [];
    }
  });
}

const isTerminal = (status: string): boolean => (TERMINAL_STATUSES as readonly string[]).includes(status);

/** The last commit of a bundle may begin no commit after the end; a run that rolls another one back may succeed. */
function statuses({ events, document: { run, head } }: RunHistory): Breach[] {
  let status = 'queued';
  return events.flatMap((placed) => {
    const { event, seq } = placed;
    if (event.type !== 'run.status_changed') return [];
    const [from, to, was] = [text(event.from), text(event.to), status];
    status = to;
    const allowed: readonly string[] = Object(ALLOWED_TRANSITIONS)[was] ?? [];
    const rollsOtherBack = run.rollbackOf !== undefined && was === 'rolling_back' && to === 'succeeded';
    if (from !== was) return [breachAt(placed, `changes the status from ${from}; the run is ${was}`)];
    if (!allowed.includes(to) && !rollsOtherBack) return [breachAt(placed, `changes the status from ${was} to ${to}`)];
    if (isTerminal(to) !== (seq === head.count && isTerminal(to)))
      return [breachAt(placed, `ends the run before its last commit`)];
    return [];
  });
}
