/** The situations that faults must cause. A test that never met one has proved nothing about it. */
export const SITUATIONS = [
  'a lease is taken over',
  "a zombie's commit is refused",
  'a renewal of a lost lease is refused',
  'a lease is renewed',
  'an own commit is recognised after a lost reply',
  'an orphaned run is resumed',
  'a race for a run is lost',
  'a write is recovered by a probe',
  'an outcome is unknown',
  "another run's receipt is reused",
  'a run waits for the identical write of another',
  'there is no free slot',
  'a run leaves the queue after waiting for a slot',
  'a delivery comes again',
  'a delivery comes again with another body',
  'the same event comes under another id',
  'an event comes through another hook',
  'a signed body comes again under another id',
  'a message comes after the end of its run',
  'an invocation is killed when its time is up',
  'a stop waits for a write in flight',
  'an old run ends after a new version was published',
  'an index gives a stale answer',
  'evidence is sealed a second time',
  'the sweeper sends an outbox entry again',
  'a run is swept again and again',
  'a slot of a schedule is fired again',
  'another sweep has advanced a schedule',
  'policy denies a write',
  'an approval is approved',
  'people agree that a write is sent again',
  'an approval is rejected',
  'an approval expires',
  'an approval is closed with its run',
  'an approval is stale when it is to be used',
  'two people agree',
  'somebody decides in the place of another',
  'a write is edited before it is approved',
  'a person says the same again',
  'a race for an approval is lost',
  'a decision comes too late',
  'a decision is about what has been changed since',
  'a maker tries to decide',
  'somebody tries who may not decide',
  'a decision wakes its execution',
  'a token is answered that nobody waits with',
  'an ended run is resolved',
  'an ended run is rolled back',
  'an ended run is rerun',
  'an ended run is replayed',
  'a plan is applied',
  'a request for a run comes again',
  'an undo ends as reversed',
  'an undo ends as drifted',
  'an undo ends as irreversible',
  'an undo ends as refused',
  'an undo ends as unknown',
  'an undo ends as kept',
] as const;
/** Come about too seldom by chance to be insisted on; faults.test.ts brings them about. */
export const SELDOM: readonly Situation[] = [
  'a lease is renewed',
  'a renewal of a lost lease is refused',
  'an orphaned run is resumed',
  'people agree that a write is sent again',
];
export type Situation = (typeof SITUATIONS)[number];

export class Situations {
  readonly met = new Map<Situation, number>();

  meet(situation: Situation): void {
    this.met.set(situation, (this.met.get(situation) ?? 0) + 1);
  }
}
