import { createHmac } from 'node:crypto';
import * as z from 'zod';
import { equalInConstantTime } from '../../entry/constant-time.ts';
import type { SessionTarget } from './open-session.ts';

const PREFIX = 'cst_';
/** API Gateway accepts at most 10 KB of headers. */
const TOKEN_MAX_CHARACTERS = 2_048;

const Claims = z.strictObject({ t: z.string(), r: z.string(), s: z.int().nonnegative(), e: z.string() });

export interface SessionToken extends SessionTarget {
  /** The time at which the step of the session ends at the latest. */
  expiresAt: string;
}

/**
 * The credential of one session: it may propose actions, send heartbeats and complete, in its own run only. It is signed
 * and not stored: a prompt that must be repeated after a crash carries the same token, and nobody who reads the table
 * can use it. What it may do ends with the step, because every request that it signs reads the step anyway.
 */
export function sealSessionToken({ tenant, runId, stepIndex, expiresAt }: SessionToken, secret: string): string {
  const claims = Buffer.from(JSON.stringify({ t: tenant, r: runId, s: stepIndex, e: expiresAt })).toString('base64url');
  return `${PREFIX}${claims}.${mac(claims, secret)}`;
}

/** Whether a credential claims to be the token of a session. */
export const isSessionToken = (credential: string): boolean => credential.startsWith(PREFIX);

/** The session that a token was made for; undefined if it is forged or has expired. */
export function openSessionToken(token: string, secret: string, now: string): SessionToken | undefined {
  if (!isSessionToken(token) || token.length > TOKEN_MAX_CHARACTERS) return undefined;
  const [claims = '', given = '', ...rest] = token.slice(PREFIX.length).split('.');
  if (rest.length > 0 || !equalInConstantTime(mac(claims, secret), given)) return undefined;
  const {
    t: tenant,
    r: runId,
    s: stepIndex,
    e: expiresAt,
  } = Claims.parse(JSON.parse(Buffer.from(claims, 'base64url').toString()));
  return expiresAt > now ? { tenant, runId, stepIndex, expiresAt } : undefined;
}

/** The purpose is part of what is signed, so that no other signature of the same secret is a token. */
const mac = (claims: string, secret: string): string =>
  createHmac('sha256', secret).update(`session-token\n${claims}`).digest('base64url');
