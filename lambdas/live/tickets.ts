import { createHash } from 'node:crypto';
import { SOCKET_MAX_MS } from '../agents/agent-terms.ts';
import { type Clock, isoNow } from '../entry/ports.ts';
import type { LiveStore, Ticket } from './live-store.ts';

const TICKET_VALID_MS = 60_000;
/**
 * Nobody asks the authorizer again while a connection is open. So one that was opened with an API key ends soon: then the
 * key of the next ticket must still be valid.
 */
const CONNECTION_WITH_KEY_MAX_MS = 15 * 60_000;

/** The part of an API caller that a ticket is made from. */
interface TicketHolder {
  tenant: string;
  person: string;
  machine?: boolean | undefined;
  credential?: { kind: 'api_key' | 'oidc'; expiresAt?: string | undefined } | undefined;
}

export interface TicketOffice {
  live: Pick<LiveStore, 'saveTicket'>;
  clock: Clock;
  /** A new random ticket. */
  newTicket(): string;
}

/** Only its hash is stored: a reader of the table cannot connect with it. */
export const ticketHash = (ticket: string): string => createHash('sha256').update(ticket).digest('hex');

export async function issueTicket({ live, clock, newTicket }: TicketOffice, holder: TicketHolder) {
  const { tenant, person, machine = false, credential } = holder;
  const now = clock.now();
  const longestMs = credential?.kind === 'oidc' ? SOCKET_MAX_MS : CONNECTION_WITH_KEY_MAX_MS;
  const endsAtMs = Math.min(now + longestMs, credential?.expiresAt ? Date.parse(credential.expiresAt) : Infinity);
  const issued: Ticket = {
    tenant,
    person,
    machine,
    expiresAt: new Date(now + TICKET_VALID_MS).toISOString(),
    connectionEndsAt: new Date(endsAtMs).toISOString(),
  };
  const ticket = newTicket();
  await live.saveTicket(ticketHash(ticket), issued);
  return {
    ticket,
    expiresAt: issued.expiresAt,
    connectionEndsAt: issued.connectionEndsAt,
    connectionSeconds: Math.max(0, Math.floor((endsAtMs - now) / 1000)),
  };
}

/** An agent signs its requests, and each sync checks that it still exists. */
export const agentConnectionEndsAt = (clock: Clock): string => isoNow({ now: () => clock.now() + SOCKET_MAX_MS });
