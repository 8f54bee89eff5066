import * as z from 'zod';
import { later } from '../run/lease.ts';

/**
 * Who gave a person the right to approve. People without a provenance were defined by the operator of the stage, who can
 * write to the table.
 */
export const Provenance = z.strictObject({
  changedBy: z.string(),
  confirmedBy: z.string().optional(),
  changedAt: z.iso.datetime(),
  /** The end of the stage's cool-down. Votes before it do not count. */
  countsFrom: z.iso.datetime(),
  /** Everyone on whom the right depends. It does not count for a write of which one of them is a maker. */
  dependsOn: z.array(z.string()),
});
export type Provenance = z.infer<typeof Provenance>;

interface Known {
  id: string;
  rights?: Provenance;
}

export interface RightsChange {
  changedBy: string;
  confirmedBy?: string;
  at: string;
  coolDownMs: number;
  /** The provenance before this change; only a confirmation makes the right independent of it. */
  before?: Provenance;
}

/** The provenance of a right that these people give now. */
export function provenanceOf(
  people: readonly Known[],
  { changedBy, confirmedBy, at, coolDownMs, before }: RightsChange,
): Provenance {
  const changed = [...dependencies(people, changedBy), ...(before?.dependsOn ?? [])];
  return {
    changedBy,
    ...(confirmedBy !== undefined && { confirmedBy }),
    changedAt: at,
    countsFrom: later(at, coolDownMs),
    dependsOn: inEach(confirmedBy === undefined ? [changed] : [changed, dependencies(people, confirmedBy)]),
  };
}

/** The same right after another person has confirmed it. The cool-down does not start again. */
export function withConfirmation(people: readonly Known[], rights: Provenance, confirmedBy: string): Provenance {
  return { ...rights, confirmedBy, dependsOn: inEach([rights.dependsOn, dependencies(people, confirmedBy)]) };
}

/** A person, and everyone on whom that person's own right depends. */
const dependencies = (people: readonly Known[], person: string): string[] => [
  person,
  ...(people.find(({ id }) => id === person)?.rights?.dependsOn ?? []),
];

const inEach = ([first = [], ...others]: string[][]): string[] =>
  [...new Set(first)].filter((person) => others.every((other) => other.includes(person))).sort();

/**
 * Why a right does not count for the writes of these makers. A vote from before the right was changed was checked against
 * the rights of that time: the cool-down does not apply to it.
 */
export function whyNotCounted({ id, rights }: Known, makers: readonly string[], votedAt: string): string | undefined {
  if (!rights) return undefined;
  const maker = rights.dependsOn.find((each) => makers.includes(each));
  if (maker !== undefined) {
    return `${maker} had a hand in this write and also gave ${id} the right to approve; it counts once an owner or admin who is independent of ${maker} confirms it: countersign people confirm ${id}`;
  }
  if (rights.changedAt <= votedAt && votedAt < rights.countsFrom) {
    return `${rights.changedBy} changed what ${id} may approve at ${rights.changedAt}; it counts from ${rights.countsFrom} on, until then somebody else must decide`;
  }
  return undefined;
}
