import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import * as z from 'zod';
import { ASSIGNMENT_PAYLOAD_TYPE, type ProfileName } from '../lambdas/agents/agent-terms.ts';
import { listViolation, PROFILES } from '../lambdas/agents/profiles.ts';
import {
  AssignmentStatement,
  KEY_INTRODUCTION_PAYLOAD_TYPE,
  KeyIntroduction,
  type SigningKey,
} from '../lambdas/agents/protocol.ts';
import { tryParseJsonBytes } from '../lambdas/entry/parse-json.ts';
import { preAuthEncoding } from '../lambdas/evidence/signing/dsse.ts';
import type { Identity } from './agent-folder.ts';
import { type AgentConfig, profileConfig } from './config.ts';

/** Why the agent does not run an assignment, in the words of the protocol. */
export interface Refusal {
  refusal: 'violation' | 'unable' | 'bad_signature' | 'expired';
  reason: string;
  /** The rule of a profile or list that forbids the command. */
  rule?: string;
  leaseVersion: number;
}

export type Verified = { statement: AssignmentStatement } | Refusal;

export interface VerifyContext {
  identity: Identity;
  config: AgentConfig;
  /** The profiles that are available on this host. */
  profiles: readonly ProfileName[];
  /** The time of the runtime. */
  now: number;
  /** When the newest verified statement was issued. The current time is not before it, even if the API says so. */
  notBefore: number;
}

const Envelope = z.object({
  payload: z.base64(),
  payloadType: z.string(),
  signatures: z
    .array(z.object({ keyid: z.string(), sig: z.base64() }))
    .min(1)
    .max(5),
});

/** The statement of an assignment that this agent may run now, or why not. Nothing else is ever run. */
export function verifyAssignment(assignmentId: string, envelope: unknown, context: VerifyContext): Verified {
  const opened = openEnvelope(envelope, ASSIGNMENT_PAYLOAD_TYPE, context.identity.signing_keys);
  if (opened.problem !== undefined) return refuse('bad_signature', opened.problem, leaseIn(opened.payload));
  const { data: statement } = AssignmentStatement.safeParse(tryParseJsonBytes(opened.payload));
  if (!statement) {
    return refuse(
      'unable',
      'the statement has fields that this version does not know; update the agent',
      leaseIn(opened.payload),
    );
  }
  const problem =
    wrongAddress(assignmentId, statement, context) ?? tooLate(statement, context) ?? forbidden(statement, context);
  return problem ? { ...problem, leaseVersion: statement.lease_version } : { statement };
}

type Problem = Omit<Refusal, 'leaseVersion'>;
const refuse = (refusal: Refusal['refusal'], reason: string, leaseVersion: number): Refusal => ({
  refusal,
  reason,
  leaseVersion,
});

function wrongAddress(
  assignmentId: string,
  statement: AssignmentStatement,
  { identity }: VerifyContext,
): Problem | undefined {
  const { tenant, agent_id, assignment_id, environment, network_segment } = statement;
  const wrong = [
    tenant !== identity.tenant && `it is for tenant ${tenant}, and this agent belongs to ${identity.tenant}`,
    agent_id !== identity.agent_id && `it is for agent ${agent_id}, and this is ${identity.agent_id}`,
    assignment_id !== assignmentId && `it was sent as ${assignmentId}, but signed as ${assignment_id}`,
    !identity.environments.includes(environment) && `this agent was not enrolled for ${environment}`,
    network_segment !== null &&
      network_segment !== identity.network_segment &&
      `it is for network segment ${network_segment}, and this is ${identity.network_segment ?? 'none'}`,
  ].find((problem) => problem !== false);
  return wrong === undefined ? undefined : { refusal: 'bad_signature', reason: wrong };
}

/** Clocks of the signer and the API may differ by a little. */
const ISSUED_AHEAD_MAX_MS = 60_000;

function tooLate(
  { issued_at, start_before }: AssignmentStatement,
  { now, notBefore }: VerifyContext,
): Problem | undefined {
  const at = Math.max(now, notBefore);
  if (Date.parse(start_before) <= at) {
    return {
      refusal: 'expired',
      reason: `it had to start before ${start_before}, and it is ${new Date(at).toISOString()}`,
    };
  }
  if (Date.parse(issued_at) > now + ISSUED_AHEAD_MAX_MS) {
    return {
      refusal: 'expired',
      reason: `it was issued at ${issued_at}, and it is only ${new Date(now).toISOString()}`,
    };
  }
  return undefined;
}

function forbidden(statement: AssignmentStatement, { config, profiles }: VerifyContext): Problem | undefined {
  const { sandbox_profile: profile, environment, command, capabilities, credentials } = statement;
  if (PROFILES[profile].environment !== environment) {
    return violation(
      'environment',
      `profile ${profile} is for ${PROFILES[profile].environment}, not for ${environment}`,
    );
  }
  if (config.environments && !config.environments.includes(environment)) {
    return violation('environment', `agent.yaml does not list the environment ${environment}`);
  }
  if (!profiles.includes(profile)) {
    return {
      refusal: 'unable',
      reason: `profile ${profile} is not available on this host; run: countersign agent doctor`,
    };
  }
  const { allow, deny } = profileConfig(config, profile);
  const listed = listViolation({ deny, ...(allow && { allow }) }, command);
  if (listed) return violation(listed.rule, `agent.yaml, profile ${profile}: ${listed.message}`);
  const missing = capabilities.filter((capability) => !config.capabilities.includes(capability));
  if (missing.length > 0)
    return { refusal: 'unable', reason: `agent.yaml does not list the capability ${missing.join(', ')}` };
  const unknown = credentials.filter((id) => !(id in config.credentials));
  if (unknown.length > 0) return { refusal: 'unable', reason: `agent.yaml has no credential ${unknown.join(', ')}` };
  return undefined;
}

const violation = (rule: string, reason: string): Problem => ({ refusal: 'violation', reason, rule });

/**
 * The pinned keys after an introduction: the new key takes the place of the one that signed it. Undefined if no pinned key
 * has signed it, or it replaces another key than its signer. A key that was replaced is no longer pinned, so what it signs
 * later, or has signed before, counts no more.
 */
export function pinnedAfter(envelope: unknown, pinned: readonly SigningKey[]): SigningKey[] | undefined {
  const signer = pinned.find(
    (key) => openEnvelope(envelope, KEY_INTRODUCTION_PAYLOAD_TYPE, [key]).problem === undefined,
  );
  if (!signer) return undefined;
  const { payload } = openEnvelope(envelope, KEY_INTRODUCTION_PAYLOAD_TYPE, [signer]);
  const { data } = KeyIntroduction.safeParse(tryParseJsonBytes(payload));
  const fingerprint = data && fingerprintOf(data.key);
  if (!data || fingerprint === undefined || data.replaces !== fingerprintOf(signer)) return undefined;
  const others = pinned.filter((key) => key !== signer && fingerprintOf(key) !== fingerprint);
  return [...others, data.key];
}

/** Checks type and signature. The payload is returned in any case, to answer about it. */
function openEnvelope(
  envelope: unknown,
  type: string,
  keys: readonly SigningKey[],
): { payload: Buffer; problem?: string } {
  const { data } = Envelope.safeParse(envelope);
  if (!data) return { payload: Buffer.alloc(0), problem: 'the assignment is not a DSSE envelope' };
  const payload = Buffer.from(data.payload, 'base64');
  if (data.payloadType !== type) return { payload, problem: `it is signed as ${data.payloadType}, not as ${type}` };
  const signed = preAuthEncoding(type, payload);
  // The key determines the algorithm. Its id only says which key to try: DSSE does not sign it.
  const isValid = data.signatures.some(({ sig }) =>
    keys.some((key) => hasSigned(key, signed, Buffer.from(sig, 'base64'))),
  );
  return isValid
    ? { payload }
    : { payload, problem: 'none of the keys that the agent pinned at enrolment has signed it' };
}

function hasSigned(signingKey: SigningKey, signed: Buffer, signature: Buffer): boolean {
  const key = keyObject(signingKey);
  return key !== undefined && verify(signingKey.algorithm === 'ed25519' ? null : 'sha256', signed, key, signature);
}

/** The key itself, if it has the algorithm that it is said to have. */
function keyObject({ public_key, algorithm }: SigningKey): KeyObject | undefined {
  try {
    const key = public_key.startsWith('-----BEGIN')
      ? createPublicKey(public_key)
      : createPublicKey({ key: Buffer.from(public_key, 'base64'), format: 'der', type: 'spki' });
    return key.asymmetricKeyType === (algorithm === 'ed25519' ? 'ed25519' : 'ec') ? key : undefined;
  } catch {
    return undefined;
  }
}

/** SHA-256 of the key (SPKI), as the outputs of the stack and `/.well-known/countersign-keys.json` show it. */
export function fingerprintOf(signingKey: SigningKey): string | undefined {
  const key = keyObject(signingKey);
  return (
    key &&
    createHash('sha256')
      .update(key.export({ type: 'spki', format: 'der' }))
      .digest('hex')
  );
}

/** The lease that a refused statement names, so that the runtime knows which offer is meant. */
function leaseIn(payload: Buffer): number {
  const { data } = z.object({ lease_version: z.int().min(0) }).safeParse(tryParseJsonBytes(payload));
  return data?.lease_version ?? 0;
}
