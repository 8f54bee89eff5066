import * as z from 'zod';

/**
 * Where somebody's right to approve comes from. People without one were set up by the operator of the stage, who writes
 * to the table itself.
 */
export const Provenance = z.strictObject({
  changedBy: z.string(),
  confirmedBy: z.string().optional(),
  changedAt: z.iso.datetime(),
  /** The end of the cool-down of the stage: no vote given before counts. */
  countsFrom: z.iso.datetime(),
  /** Everybody without whom the right would not exist: for a write that one of them made, it does not count. */
  dependsOn: z.array(z.string()),
});
export type Provenance = z.infer<typeof Provenance>;

interface Known {
  id: string;
  rights?: Provenance;
}

export interface Vouching {
  changedBy: string;
  confirmedBy?: string;
  at: string;
  coolDownMs: number;
  /** Where the right came from before this change, which nobody but a confirmer vouches for anew. */
  before?: Provenance;
}

/** The provenance of a right that these people give now. */
export function provenanceOf(
  people: readonly Known[],
  { changedBy, confirmedBy, at, coolDownMs, before }: Vouching,
): Provenance {
  const changed = [...behind(people, changedBy), ...(before?.dependsOn ?? [])];
  return {
    changedBy,
    ...(confirmedBy !== undefined && { confirmedBy }),
    changedAt: at,
    countsFrom: new Date(Date.parse(at) + coolDownMs).toISOString(),
    dependsOn: inEach(confirmedBy === undefined ? [changed] : [changed, behind(people, confirmedBy)]),
  };
}

/** The same right once somebody else vouches for it too. The cool-down does not start again. */
export function confirmedToo(people: readonly Known[], rights: Provenance, confirmedBy: string): Provenance {
  return { ...rights, confirmedBy, dependsOn: inEach([rights.dependsOn, behind(people, confirmedBy)]) };
}

/** A voucher, and everybody whom the voucher's own right depends on. */
const behind = (people: readonly Known[], voucher: string): string[] => [
  voucher,
  ...(people.find(({ id }) => id === voucher)?.rights?.dependsOn ?? []),
];

const inEach = ([first = [], ...others]: string[][]): string[] =>
  [...new Set(first)].filter((person) => others.every((other) => other.includes(person))).sort();

/**
 * Why a right does not count for what these makers write, if so. A vote given before the right was changed was judged by
 * what its voter could do then: the cool-down does not void it.
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
