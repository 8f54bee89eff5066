import * as z from 'zod';
import { AGENT_ENVIRONMENTS, AGENT_STATES, PROFILE_NAMES, ProfileName } from '../../agents/agent-terms.ts';
import { CommandPattern, ProfileDefinition } from '../../agents/profiles.ts';
import {
  AckRequest,
  AckResponse,
  CompleteRequest,
  CompleteResponse,
  DrainRequest,
  DrainResponse,
  EnrolRequest,
  EnrolResponse,
  HeartbeatRequest,
  HeartbeatResponse,
  OutputRequest,
  OutputResponse,
  RegisterRequest,
  RegisterResponse,
} from '../../agents/protocol.ts';
import { route } from './route.ts';
import { PageQuery, page, Timestamp } from './schemas.ts';

const ofAgent = z.object({ id: z.string().meta({ description: 'ID of the agent that signs the request' }) });
/** 512 KB of output, in which JSON writes each control character with six bytes. */
const OUTPUT_BODY_MAX_BYTES = 4 * 1024 * 1024;

/** What agents send. The function checks the signature before it reads anything else. */
export const agentEnrolRoutes = {
  enrolAgent: route({
    method: 'POST',
    path: '/api/v1/agent/enrol',
    right: 'signed',
    summary: 'Enrols an agent with a token that is valid once. The request is signed with the new key',
    body: EnrolRequest,
    responses: { 201: EnrolResponse },
  }),
  registerAgent: route({
    method: 'POST',
    path: '/api/v1/agent/register',
    right: 'signed',
    summary: 'Registers a process of an agent, which replaces an earlier one',
    body: RegisterRequest,
    responses: { 200: RegisterResponse },
  }),
  drainSelf: route({
    method: 'POST',
    path: '/api/v1/agent/{id}/drain',
    right: 'signed',
    summary: 'Drains the agent: it finishes its commands and accepts no new ones',
    params: ofAgent,
    body: DrainRequest,
    responses: { 200: DrainResponse },
  }),
  unregisterAgent: route({
    method: 'POST',
    path: '/api/v1/agent/{id}/unregister',
    right: 'signed',
    summary: 'Unregisters the process of an agent that runs nothing. The agent stays enrolled',
    params: ofAgent,
    body: z.strictObject({}),
    responses: { 200: DrainResponse },
  }),
};

/** What agents do with commands. */
export const agentWorkRoutes = {
  syncAgent: route({
    method: 'POST',
    path: '/api/v1/agent/heartbeat',
    right: 'signed',
    summary: 'Renews the leases of running commands; returns assignments, cancellations and drain',
    body: HeartbeatRequest,
    responses: { 200: HeartbeatResponse },
  }),
  acknowledgeAssignment: route({
    method: 'POST',
    path: '/api/v1/agent/{id}/ack',
    right: 'signed',
    summary: 'Accepts or refuses an assignment. The command may run only after `confirmed: true`',
    params: ofAgent,
    body: AckRequest,
    responses: { 200: AckResponse },
  }),
  appendOutput: route({
    method: 'POST',
    path: '/api/v1/agent/{id}/output',
    right: 'signed',
    summary: 'Appends output of a running command. Chunks that are stored already are skipped',
    params: ofAgent,
    body: OutputRequest,
    bodyMaxBytes: OUTPUT_BODY_MAX_BYTES,
    responses: { 200: OutputResponse },
  }),
  completeStep: route({
    method: 'POST',
    path: '/api/v1/agent/{id}/complete-step',
    right: 'signed',
    summary: 'Reports the result of a command. The same result again changes nothing',
    params: ofAgent,
    body: CompleteRequest,
    responses: { 200: CompleteResponse },
  }),
};

const Environments = z.array(z.enum(AGENT_ENVIRONMENTS));

const AgentView = z.object({
  agentId: z.string().meta({ example: 'acme.payments-1_5f0c9a' }),
  name: z.string(),
  state: z.enum(AGENT_STATES),
  environments: Environments.meta({ description: 'What it was enrolled for' }),
  networkSegment: z.string().nullable(),
  enrolledAt: Timestamp,
  enrolledBy: z.string(),
  keyThumbprint: z.string().meta({ description: 'SHA-256 of its public key' }),
  lastSyncAt: Timestamp.nullable().meta({ description: 'Of the process that has registered' }),
  stoppedAt: Timestamp.nullable().meta({
    description: 'When its last process ended as it should, if none has registered since',
  }),
  process: z
    .object({
      version: z.string(),
      registeredAt: Timestamp,
      environments: Environments,
      capabilities: z.array(z.string()),
      profiles: z.array(ProfileName).meta({ description: 'Whose isolation its host provides' }),
      slots: z.int(),
      freeSlots: z.int(),
      host: z.object({ platform: z.string(), arch: z.string(), node: z.string() }),
    })
    .nullable()
    .meta({ description: 'The process that has registered; null before the first and after the last' }),
  commands: z
    .array(
      z.object({
        assignmentId: z.string(),
        runId: z.string(),
        stepIndex: z.int(),
        state: z.enum(['offered', 'acknowledged']),
        until: Timestamp.meta({ description: 'When it is lost unless the agent syncs' }),
      }),
    )
    .meta({ description: 'What it runs or was offered now' }),
  draining: z.object({ at: Timestamp, by: z.string(), reason: z.string().optional() }).nullable(),
  errored: z.object({ at: Timestamp, reason: z.string() }).nullable(),
});
AgentView.register(z.globalRegistry, { id: 'Agent' });
export type AgentView = z.infer<typeof AgentView>;

const agentParams = z.object({ id: z.string().meta({ description: 'ID or name of the agent' }) });

const AgentName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, 'use up to 63 lower-case letters, digits, dots, dashes and underscores')
  .meta({ example: 'payments-1' });
const MINUTES_MAX = 24 * 60;

const TokenView = z.object({
  tokenId: z.string(),
  name: z.string(),
  environments: Environments,
  networkSegment: z.string().nullable(),
  state: z.enum(['open', 'used', 'revoked', 'expired']),
  createdBy: z.string(),
  createdAt: Timestamp,
  expiresAt: Timestamp,
  agentId: z.string().nullable().meta({ description: 'The agent that was enrolled with it' }),
  reused: z
    .object({ at: Timestamp, keyThumbprint: z.string(), count: z.int() })
    .nullable()
    .meta({ description: 'The last attempt to use it again. Perhaps it was stolen' }),
});

/** What people do with agents. */
export const agentRoutes = {
  listAgents: route({
    method: 'GET',
    path: '/api/v1/agents',
    right: 'agents:read',
    summary: 'Lists agents, by ID',
    query: PageQuery,
    responses: { 200: page('agents', AgentView) },
  }),
  getAgent: route({
    method: 'GET',
    path: '/api/v1/agents/{id}',
    right: 'agents:read',
    summary: 'Returns an agent',
    params: agentParams,
    responses: { 200: AgentView },
  }),
  drainAgent: route({
    method: 'POST',
    path: '/api/v1/agents/{id}/drain',
    right: 'agents:control',
    summary: 'Drains an agent: it finishes its commands and accepts no new ones',
    params: agentParams,
    body: z.strictObject({ reason: z.string().max(500).optional() }),
    responses: { 200: AgentView },
  }),
  resumeAgent: route({
    method: 'POST',
    path: '/api/v1/agents/{id}/resume',
    right: 'agents:control',
    summary: 'Lets a drained agent get assignments again',
    params: agentParams,
    body: z.strictObject({}),
    responses: { 200: AgentView },
  }),
  removeAgent: route({
    method: 'DELETE',
    path: '/api/v1/agents/{id}',
    right: 'agents:write',
    summary: 'Removes an agent at once: its key is refused from now on, and what it runs is lost when the lease ends',
    params: agentParams,
    responses: { 200: z.object({ removed: z.string(), running: z.int() }) },
  }),
};

export const enrolmentTokenRoutes = {
  listEnrolmentTokens: route({
    method: 'GET',
    path: '/api/v1/enrolment-tokens',
    right: 'agents:write',
    summary: 'Lists enrolment tokens of the last 90 days, by ID',
    query: PageQuery,
    responses: { 200: page('enrolmentTokens', TokenView) },
  }),
  createEnrolmentToken: route({
    method: 'POST',
    path: '/api/v1/enrolment-tokens',
    right: 'agents:write',
    peopleOnly: true,
    summary: 'Creates a token with which one agent enrols, once. It is shown only here',
    body: z.strictObject({
      name: AgentName,
      environments: Environments.min(1).meta({ description: 'What the agent may register for' }),
      networkSegment: AgentName.nullable().default(null).meta({ example: 'vpc-a' }),
      minutes: z.int().min(1).max(MINUTES_MAX).default(15).meta({ description: 'Until it expires' }),
    }),
    example: { name: 'payments-1', environments: ['prod'], networkSegment: 'vpc-a' },
    responses: { 201: TokenView.extend({ token: z.string().meta({ description: 'The token itself' }) }) },
  }),
  revokeEnrolmentToken: route({
    method: 'DELETE',
    path: '/api/v1/enrolment-tokens/{id}',
    right: 'agents:write',
    summary: 'Revokes an enrolment token that was not used',
    params: z.object({ id: z.string() }),
    responses: { 200: TokenView },
  }),
};

const ProfileView = z.object({
  name: z.enum(PROFILE_NAMES),
  environment: z.enum(AGENT_ENVIRONMENTS),
  allow: z.array(CommandPattern).nullable().meta({ description: 'What may run; null: everything that is not denied' }),
  deny: z.array(CommandPattern),
  rollbackRequired: z.boolean(),
  builtIn: z.boolean().meta({ description: 'The tenant has not defined its lists' }),
});

const profileParams = z.object({ name: ProfileName });

export const profileRoutes = {
  listProfiles: route({
    method: 'GET',
    path: '/api/v1/profiles',
    right: 'profiles:read',
    summary: 'Lists the profiles of commands, with the commands that they allow and deny',
    responses: { 200: z.object({ profiles: z.array(ProfileView) }) },
  }),
  getProfile: route({
    method: 'GET',
    path: '/api/v1/profiles/{name}',
    right: 'profiles:read',
    summary: 'Returns a profile',
    params: profileParams,
    responses: { 200: ProfileView },
  }),
  saveProfile: route({
    method: 'PUT',
    path: '/api/v1/profiles/{name}',
    right: 'profiles:write',
    summary: 'Replaces the lists of a profile',
    params: profileParams,
    // The path names the profile. A name in the body must be the same.
    body: ProfileDefinition.extend({ name: ProfileName.optional() }),
    example: { allow: [{ executable: '/usr/bin/systemctl', args: ['restart', 'payments-*'] }] },
    responses: { 200: ProfileView.extend({ effectiveWithinSeconds: z.number() }) },
  }),
};
