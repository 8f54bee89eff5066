/** What the faults are there to bring about. A test that never met one of these has proved nothing about it. */
export const SITUATIONS = [
  'a lease is taken over',
  "a zombie's commit is refused",
  'a renewal of a lost lease is refused',
  'a lease is renewed',
  'an own commit is recognised after a lost reply',
  'a race for a run is lost',
  'a write is recovered by a probe',
  'an outcome is unknown',
  "another run's receipt is reused",
  'a run waits for the identical write of another',
  'there is no room under a cap',
  'a run leaves the queue after waiting for room',
  'a delivery comes again',
  'a delivery comes again with another body',
  'a second delivery of a burst starts nothing',
  'a message comes after the end of its run',
  'an invocation is killed when its time is up',
  'a stop waits for a write in flight',
  'an old run ends after a new version was published',
  'an index gives a stale answer',
  'evidence is sealed a second time',
  'a promise is sent again by the sweeper',
] as const;
export type Situation = (typeof SITUATIONS)[number];

export class Situations {
  readonly met = new Map<Situation, number>();

  meet(situation: Situation): void {
    this.met.set(situation, (this.met.get(situation) ?? 0) + 1);
  }
}
