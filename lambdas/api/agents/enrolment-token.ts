import type { CommandEnvironment } from '../../agents/agent.ts';
import { equalInConstantTime } from '../../entry/constant-time.ts';
import { sha256Hex } from '../../run/canonical-json.ts';

/**
 * Lets one agent enrol, once. The owner who creates it decides the name, environments and network segment of the agent.
 * Only its hash is stored.
 */
export interface EnrolmentToken {
  tenant: string;
  tokenId: string;
  /** The name of the agent that it enrols. */
  name: string;
  environments: CommandEnvironment[];
  networkSegment: string | null;
  sha256: string;
  createdBy: string;
  createdAt: string;
  expiresAt: string;
  used?: { at: string; agentId: string };
  revoked?: { at: string; by: string };
  /** It was used again after its first use, by somebody else: perhaps it was stolen. */
  reused?: { at: string; keyThumbprint: string; count: number };
  revision: number;
}

/** The row stays for so long after the token has expired, so that people see who used it. */
export const TOKEN_STORED_MS = 90 * 24 * 60 * 60 * 1000;
/** Further uses of a token are refused like the first ones, without an entry in the history. */
export const REUSES_RECORDED_MAX = 5;

export type TokenState = 'open' | 'used' | 'revoked' | 'expired';

export function stateOfToken({ used, revoked, expiresAt }: EnrolmentToken, at: string): TokenState {
  if (used) return 'used';
  if (revoked) return 'revoked';
  return expiresAt <= at ? 'expired' : 'open';
}

/** The prefix lets secret scanners find tokens that were published by accident. Tenant and id find the row. */
export const formatToken = (tenant: string, tokenId: string, secret: string): string =>
  `cse_${tenant}.${tokenId}.${secret}`;

export function parseToken(token: string): { tenant: string; tokenId: string } | undefined {
  const [, tenant, tokenId] = /^cse_([a-z0-9-]{1,40})\.([\w-]{1,60})\.[\w-]{20,80}$/.exec(token) ?? [];
  return tenant === undefined || tokenId === undefined ? undefined : { tenant, tokenId };
}

export const tokenHash = (token: string): string => sha256Hex(token);

export const isToken = (stored: EnrolmentToken, token: string): boolean =>
  equalInConstantTime(stored.sha256, tokenHash(token));

/** The id of an agent names its tenant, so that the row of an agent is found by the id alone. */
export const agentIdOf = (ids: { next(prefix: string): string }, tenant: string, name: string): string =>
  ids.next(`${tenant}.${name}`);

export const tenantOfAgentId = (agentId: string): string | undefined => /^([a-z0-9-]{1,40})\./.exec(agentId)?.[1];
