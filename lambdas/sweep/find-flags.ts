import type { Log } from '../entry/ports.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { later } from '../run/lease.ts';
import type { RunStore, SweepRecord } from '../run/run-store.ts';
import { FLAG_NAMES, FLAGS, isOn } from '../run/settings/flags.ts';

/**
 * Runs are sent for this long after a flag was last seen off. Functions cache settings for a minute, so the first message
 * may come too early; the one of the next sweep does not.
 */
const WAKES_FOR_MS = 3 * 60_000;

export interface FlagReader {
  tenants: readonly string[];
  runs: Pick<RunStore, 'lastSweep'>;
  definitions: Pick<Definitions, 'settings'>;
  log: Log;
}

export interface FoundFlags {
  /** When each flag that changes what runs do was last seen off; until runs need no more messages because of it. */
  flagsOff: NonNullable<SweepRecord['flagsOff']>;
  /** A flag is on again: the runs that waited for it continue. */
  wakes: boolean;
}

/** Compares the flags of each tenant with those that the last sweep saw. Without tenants whose flags cannot be read now. */
export async function findFlags(reader: FlagReader, now: string): Promise<Map<string, FoundFlags>> {
  const { tenants, log } = reader;
  const flags = new Map<string, FoundFlags>();
  const reads = await Promise.allSettled(tenants.map((tenant) => flagsOf(reader, tenant, now)));
  for (const [at, read] of reads.entries()) {
    const tenant = tenants[at] as string;
    if (read.status === 'fulfilled') flags.set(tenant, read.value);
    else
      log.warn('the flags of a tenant could not be read; the next sweep tries again', { tenant, error: read.reason });
  }
  return flags;
}

async function flagsOf({ runs, definitions }: FlagReader, tenant: string, now: string): Promise<FoundFlags> {
  const [settings, last] = await Promise.all([definitions.settings(tenant), runs.lastSweep(tenant)]);
  const flagsOff: FoundFlags['flagsOff'] = {};
  let wakes = false;
  for (const name of FLAG_NAMES.filter((each) => FLAGS[each].affectsRuns)) {
    const seenOffAt = last?.flagsOff?.[name];
    if (!isOn(settings, name)) flagsOff[name] = now;
    else if (seenOffAt !== undefined && seenOffAt > later(now, -WAKES_FOR_MS)) {
      flagsOff[name] = seenOffAt;
      wakes = true;
    }
  }
  return { flagsOff, wakes };
}
