/** The situations that faults must cause. If one never occurred, the simulation has proved nothing about it. */
export const SITUATIONS = [
  'a lease is taken over',
  "a stale worker's commit is refused",
  'a renewal of a lost lease is refused',
  'a lease is renewed',
  'a worker recognizes its own commit after a lost reply',
  'an orphaned run is resumed',
  'another invocation has changed the run first',
  'a write is recovered by a probe',
  'an outcome is unknown',
  "another run's receipt is reused",
  'a run waits for the identical write of another',
  'no slot is free',
  'a run leaves the queue after waiting for a slot',
  'a delivery is repeated',
  'a delivery is repeated with another body',
  'an event is repeated under another id',
  'an event is repeated through another hook',
  'a signed body is repeated under another id',
  'a message arrives after the end of its run',
  'an invocation is killed when its time is up',
  'a stop waits for a write in flight',
  'an old run ends after a new version was published',
  'an index read is stale',
  'evidence is sealed a second time',
  'the sweeper sends an outbox entry again',
  'the sweeper sends a run again',
  'a slot of a schedule is fired again',
  'another sweep has advanced a schedule',
  'policy denies a write',
  'an approval is approved',
  'people approve that a write is sent again',
  'an approval is rejected',
  'an approval expires',
  'an approval is canceled with its run',
  'an approval is stale before its write',
  'two people approve',
  'a delegate decides',
  'a write is edited before it is approved',
  'a person repeats a decision',
  'another invocation has changed the approval first',
  'a decision arrives too late',
  'a decision is about an outdated write',
  'a maker tries to decide',
  'a person without the right tries to decide',
  'a decision ends its Step Functions wait',
  'a task token is used that no execution waits for',
  'an ended run is resolved',
  'an ended run is rolled back',
  'an ended run is rerun',
  'an ended run is replayed',
  'a plan is applied',
  'a request for a run is repeated',
  'an undo ends as reversed',
  'an undo ends as drifted',
  'an undo ends as irreversible',
  'an undo ends as refused',
  'an undo ends as unknown',
  'an undo ends as kept',
] as const;
/** Too rare to be required of random simulations; faults.test.ts causes them. */
export const RARE: readonly Situation[] = [
  'a lease is renewed',
  'a renewal of a lost lease is refused',
  'an orphaned run is resumed',
  'people approve that a write is sent again',
];
export type Situation = (typeof SITUATIONS)[number];

export class Situations {
  readonly counts = new Map<Situation, number>();

  record(situation: Situation): void {
    this.counts.set(situation, (this.counts.get(situation) ?? 0) + 1);
  }
}
