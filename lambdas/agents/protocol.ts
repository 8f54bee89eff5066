import * as z from 'zod';
import {
  AGENT_PROTOCOL_VERSION,
  AGENT_STATES,
  AgentEnvironment,
  Capabilities,
  OUTPUT_CHUNK_MAX_BYTES,
  OUTPUT_CHUNKS_PER_REQUEST_MAX,
  ProfileName,
} from './agent-terms.ts';

/**
 * What agents and the runtime say to each other over HTTPS. The routes of the agent API and the agent program (`agent/`)
 * share these schemas. Names follow source 001, section 3, so fields are in snake case.
 *
 * An agent acts only on responses to its own signed requests. It runs a command only if the signed statement of the
 * assignment names this agent, this lease and a time that has not passed.
 */
const Timestamp = z.iso.datetime();
/** An Ed25519 public key as SPKI, in base64. */
const PublicKey = z.string().min(40).max(200);

/** A public key that signs assignments. The agent pins these at enrolment. */
export const SigningKey = z.object({
  key_id: z.string(),
  algorithm: z.enum(['ed25519', 'p256']),
  public_key: z.string(),
});
export type SigningKey = z.infer<typeof SigningKey>;

// POST /api/v1/agent/enrol: once, with an enrolment token. The request is signed with the new key.
export const EnrolRequest = z.strictObject({
  token: z.string().min(20).max(200),
  public_key: PublicKey,
  agent_version: z.string().max(50),
});
export const EnrolResponse = z.object({
  agent_id: z.string(),
  tenant: z.string(),
  name: z.string(),
  /** What the owner granted with the token. An agent cannot register for anything else. */
  environments: z.array(AgentEnvironment),
  network_segment: z.string().nullable(),
  signing_keys: z.array(SigningKey),
});

// POST /api/v1/agent/register: after each start, with what is available on this host.
export const RegisterRequest = z.strictObject({
  protocol: z.literal(AGENT_PROTOCOL_VERSION),
  agent_version: z.string().max(50),
  /** A new random value for each process: shows when two processes use one identity. */
  boot_id: z.string().min(8).max(64),
  capabilities: Capabilities,
  environments: z.array(AgentEnvironment).min(1),
  /** The profiles whose isolation the agent has tested on this host. */
  profiles: z.array(ProfileName),
  /** How many commands it runs at once. */
  slots: z.int().min(1).max(16),
  host: z.object({ platform: z.string().max(40), arch: z.string().max(20), node: z.string().max(20) }),
});
export const Intervals = z.object({
  sync_ms: z.int(),
  sync_while_running_ms: z.int(),
  sync_without_socket_ms: z.int(),
});
export const RegisterResponse = z.object({
  state: z.enum(AGENT_STATES),
  intervals: Intervals,
  /** Each key that replaced another one, oldest first (see `KeyIntroduction`). */
  new_signing_keys: z.array(z.object({ envelope: z.unknown() })),
  /** Where "sync now" comes from; absent if the stage has no socket. The agent signs a GET of `AGENT_SOCKET_PATH`. */
  socket: z.object({ url: z.string() }).optional(),
});

/** A command that the agent has acknowledged and not yet completed. */
const Running = z.strictObject({ assignment_id: z.string(), lease_version: z.int() });

// POST /api/v1/agent/heartbeat: the sync. Renews leases; brings assignments, cancels and drain.
export const HeartbeatRequest = z.strictObject({
  boot_id: z.string(),
  running: z.array(Running).max(16),
  /** Whether the agent holds an open socket, which decides its next interval. */
  socket: z.boolean(),
  errored: z.string().max(500).optional(),
  /** Commands that the agent refused because of its profile, since the last sync. */
  violations: z.array(z.strictObject({ assignment_id: z.string(), rule: z.string().max(100) })).max(20),
});
export const HeartbeatResponse = z.object({
  server_time: Timestamp,
  state: z.enum(AGENT_STATES),
  /**
   * Assignments that wait for an acknowledgement. `envelope`: DSSE over an `AssignmentStatement`. `traceparent`: the span of
   * the attempt (W3C Trace Context); the command gets it as the variable TRACEPARENT.
   */
  assignments: z.array(
    z.object({
      assignment_id: z.string(),
      envelope: z.unknown(),
      traceparent: z
        .string()
        .regex(/^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/)
        .optional(),
    }),
  ),
  /** The new end of each renewed lease; null: the lease is lost, the command must be stopped and its result is ignored. */
  leases: z.array(z.object({ assignment_id: z.string(), expires_at: Timestamp.nullable() })),
  /** Commands to stop: the run was canceled. */
  cancels: z.array(z.object({ assignment_id: z.string(), reason: z.string() })),
  drain: z.boolean(),
  intervals: Intervals,
});

// POST /api/v1/agent/{id}/ack: before the command runs. Only `confirmed: true` lets it run.
export const AckRequest = z.discriminatedUnion('accepted', [
  z.strictObject({ assignment_id: z.string(), lease_version: z.int(), accepted: z.literal(true) }),
  z.strictObject({
    assignment_id: z.string(),
    lease_version: z.int(),
    accepted: z.literal(false),
    /** `violation`: a profile or local list forbids it. `unable`: sandbox, credential or slot is missing. */
    refusal: z.enum(['violation', 'unable', 'bad_signature', 'expired']),
    reason: z.string().max(500),
  }),
]);
export const AckResponse = z.object({
  confirmed: z.boolean(),
  expires_at: Timestamp.nullable(),
  reason: z.string().optional(),
  /** What the command reads on its standard input. The statement has its hash. */
  stdin: z.string().optional(),
});

// POST /api/v1/agent/{id}/output: chunks in order; a chunk that is already stored is skipped.
export const OutputChunk = z.strictObject({
  stream_seq: z.int().min(0),
  chunk_type: z.enum(['stdout', 'stderr', 'status']),
  at: Timestamp,
  data: z
    .string()
    .refine(
      (text) => Buffer.byteLength(text) <= OUTPUT_CHUNK_MAX_BYTES,
      `send at most ${OUTPUT_CHUNK_MAX_BYTES} bytes in UTF-8`,
    ),
});
export type OutputChunk = z.infer<typeof OutputChunk>;
export const OutputRequest = z.strictObject({
  assignment_id: z.string(),
  lease_version: z.int(),
  chunks: z.array(OutputChunk).min(1).max(OUTPUT_CHUNKS_PER_REQUEST_MAX),
});
export const OutputResponse = z.object({
  /** The next number that the runtime expects. The agent repeats from here. */
  next_seq: z.int(),
  /** The agent waits this long before it sends more. */
  wait_ms: z.int(),
  /** The limit is reached: the agent sends no more output of this command, and counts it. */
  full: z.boolean(),
});
export type OutputResponse = z.infer<typeof OutputResponse>;

// POST /api/v1/agent/{id}/complete-step: `session.result` of source 001.
export const CompleteRequest = z.strictObject({
  assignment_id: z.string(),
  lease_version: z.int(),
  /** The key of the assignment. A result with another key is refused, the same result again changes nothing. */
  idempotency_key: z.string(),
  /**
   * `never_started`: the command certainly did not run. `unknown`: it started, and the agent was restarted before it knew the
   * result; the runtime treats it as a lost lease.
   */
  status: z.enum(['succeeded', 'failed', 'timed_out', 'canceled', 'never_started', 'unknown']),
  exit_code: z.int().nullable(),
  signal: z.string().max(20).nullable(),
  execution_ms: z.int().min(0),
  sandbox_profile: ProfileName,
  /** SHA-256 over the redacted output: all `data` in the order of `stream_seq`, and how much there was. */
  output: z.strictObject({
    sha256: z.string(),
    bytes: z.int().min(0),
    chunks: z.int().min(0),
    dropped_bytes: z.int().min(0),
  }),
  /** The ids of the credentials that the command received, with the request id of the vault's audit log. */
  credentials_used: z
    .array(
      z.strictObject({
        id: z.string().max(200),
        source: z.enum(['vault', 'secrets_manager']),
        audit_id: z.string().max(200).nullable(),
        ttl_seconds: z.int().min(0),
        revoked: z.boolean(),
        fetch_ms: z.int().min(0),
      }),
    )
    .max(20),
  /** What the profile forbade while the command ran, by rule. */
  violations: z.array(z.string().max(100)).max(20),
  /** Why, for `never_started` and `failed` before the start. No output, no secret. */
  reason: z.string().max(500).optional(),
});
export const CompleteResponse = z.object({ result: z.enum(['accepted', 'duplicate', 'lease_lost']) });

// POST /api/v1/agent/{id}/drain: finish its commands, accept no new ones. POST /api/v1/agent/{id}/unregister: afterwards.
export const DrainRequest = z.strictObject({ reason: z.string().max(500).optional() });
export const DrainResponse = z.object({ state: z.enum(AGENT_STATES), running: z.int() });

/** The payload type of the DSSE envelope, so that no other signature of the evidence key can pass for an assignment. */
export const KEY_INTRODUCTION_PAYLOAD_TYPE = 'application/vnd.countersign.key-introduction+json';

export const Command = z.strictObject({
  /** An absolute path. No shell interprets it. */
  executable: z
    .string()
    .regex(/^\/[^\0]*$/)
    .max(500),
  args: z.array(z.string().max(4_000)).max(100),
});
export type Command = z.infer<typeof Command>;

/** `session.assign` and `session.command` of source 001 in one statement, signed with the evidence key. */
export const AssignmentStatement = z.strictObject({
  version: z.literal(AGENT_PROTOCOL_VERSION),
  tenant: z.string(),
  agent_id: z.string(),
  assignment_id: z.string(),
  session_id: z.string(),
  step_number: z.int(),
  step_id: z.string(),
  lease_version: z.int(),
  idempotency_key: z.string(),
  /** What policy and people allowed: sha256 of the action, policy set and workflow version. */
  action_hash: z.string(),
  /** The approval that allows it, if one was required: `approval_token` of source 001. */
  approval_id: z.string().nullable(),
  environment: AgentEnvironment,
  sandbox_profile: ProfileName,
  network_segment: z.string().nullable(),
  capabilities: Capabilities,
  command: Command,
  /** True for the rollback command of an earlier step. */
  rollback: z.boolean(),
  timeout_seconds: z.int().min(1).max(3_600),
  /** The SHA-256 of what the command reads on its standard input, if it is a session. It comes with the confirmation. */
  stdin_sha256: z.string().optional(),
  /** Ids that the agent's own configuration maps to a vault path or a secret. Never values. */
  credentials: z.array(z.string().max(200)).max(10),
  issued_at: Timestamp,
  /** The agent does not start the command after this time. */
  start_before: Timestamp,
});
export type AssignmentStatement = z.infer<typeof AssignmentStatement>;

/** A new evidence key, signed by the key that it replaces. An agent that has pinned that key pins the new one instead. */
export const KeyIntroduction = z.strictObject({
  version: z.literal(AGENT_PROTOCOL_VERSION),
  key: SigningKey,
  /** SHA-256 of the replaced key (SPKI). */
  replaces: z.string(),
  issued_at: Timestamp,
});
