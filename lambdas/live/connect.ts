import type { Agent } from '../agents/agent.ts';
import { type Clock, isoNow } from '../entry/ports.ts';
import type { LiveStore } from './live-store.ts';
import { agentConnectionEndsAt, ticketHash } from './tickets.ts';

export interface Connecting {
  live: Pick<LiveStore, 'takeTicket' | 'open'>;
  clock: Clock;
  isPerson(tenant: string, person: string): Promise<boolean>;
}

/** Opens the connection of a person. False if the ticket was used, has expired, or its person was removed. */
export async function connectWithTicket(
  { live, isPerson, clock }: Connecting,
  connectionId: string,
  ticket: string,
): Promise<boolean> {
  const held = await live.takeTicket(ticketHash(ticket));
  if (!held) return false;
  const { tenant, person, machine, connectionEndsAt: endsAt } = held;
  if (!machine && !(await isPerson(tenant, person))) return false;
  const subscribed = { since: isoNow(clock), count: 0 };
  await live.open({ connectionId, tenant, person, machine, endsAt, subscriptions: [], subscribed, revision: 1 });
  return true;
}

/** Opens the connection of an agent whose signature was checked. */
export async function connectAgent(
  { live, clock }: Pick<Connecting, 'live' | 'clock'>,
  connectionId: string,
  { tenant, agentId }: Agent,
): Promise<void> {
  await live.open({ connectionId, tenant, agentId, endsAt: agentConnectionEndsAt(clock), revision: 1 });
}
