import * as z from 'zod';
import { Count, eventKind, Hash, Id, Ids, ofStep, Sentence } from './event-kind.ts';
import { stepOf } from './replay-state.ts';

const CommandStatus = z.enum(['succeeded', 'failed', 'timed_out', 'canceled', 'never_started']);
const UNASSIGNED_BECAUSE = ['no_agent', 'not_acknowledged', 'refused', 'never_started'] as const;
export type UnassignedBecause = (typeof UNASSIGNED_BECAUSE)[number];

/** People know an agent by its name, which its id contains: `acme.payments-1_` and 32 digits. */
const nameOf = (agentId: string): string => /^[^.]+\.(.+)_[0-9a-f]{32}$/.exec(agentId)?.[1] ?? agentId;

const ofAssignment = { agent: Id, assignment: Id, leaseVersion: Count };

/** Commands that agents run. */
export const AGENT_EVENTS = {
  'step.assigned': eventKind({
    summary: 'An agent acknowledged the assignment of the step: from now on it may run the command.',
    fields: z.strictObject({
      ...ofStep,
      ...ofAssignment,
      profile: Id,
      environment: Id,
      /** The SHA-256 of the signed statement: command, arguments, agent, lease and time. */
      statementHash: Hash,
    }),
    text: ({ step, agent, profile }) => `${step}: assigned to agent ${nameOf(agent)}, profile ${profile}`,
    replay: (replay, event) => {
      const step = stepOf(replay, event);
      const { agent, assignment, profile, statementHash } = event;
      if (step.claim) step.claim = { ...step.claim, assigned: { agent, assignment, profile, statementHash } };
    },
    proves: { step: 'of its claim: `assigned` (`agent`, `assignment`, `profile`, `statementHash`)' },
  }),
  'step.unassigned': eventKind({
    summary:
      'No agent runs the command under this lease: nobody was available, acknowledged in time, or could start it.',
    fields: z.strictObject({
      ...ofStep,
      leaseVersion: Count,
      because: z.enum(UNASSIGNED_BECAUSE),
      agent: Id.optional(),
      assignment: Id.optional(),
      reason: Sentence,
    }),
    text: ({ step, agent, reason }) => `${step}: not assigned${agent ? ` to agent ${nameOf(agent)}` : ''}: ${reason}`,
    tone: () => 'waiting',
  }),
  'step.command_ended': eventKind({
    summary: 'The agent reported the end of the command, under its lease.',
    fields: z.strictObject({
      ...ofStep,
      ...ofAssignment,
      receiptKey: Id,
      status: CommandStatus,
      exitCode: z.int().nullable(),
      durationMs: Count,
      outputSha256: Hash,
      outputBytes: Count,
      /** The ids of the credentials that the command received. */
      credentials: Ids,
      /** The rules of its profile that the command violated. */
      violations: Ids,
    }),
    text: ({ step, agent, status, exitCode, durationMs, violations }) => {
      const how = exitCode === null ? status : `${status}, exit code ${exitCode}`;
      const against = violations.length > 0 ? `; it violated ${violations.join(', ')}` : '';
      return `${step}: agent ${nameOf(agent)}: ${how} after ${durationMs} ms${against}`;
    },
    tone: ({ status }) => (status === 'succeeded' ? undefined : 'bad'),
    siem: ({ status, violations }) => ({
      severity: violations.length > 0 ? 'high' : 'informational',
      failed: status !== 'succeeded',
    }),
    replay: ({ writes }, event) => {
      const write = writes.get(event.receiptKey);
      if (!write) return;
      const { agent, assignment, status, exitCode, durationMs, outputSha256, outputBytes, violations } = event;
      const output = { sha256: outputSha256, bytes: outputBytes };
      write.fields.command = {
        ...{ agentId: agent, assignmentId: assignment, status, exitCode, durationMs, output, violations },
        credentialsUsed: (event.credentials as string[]).map((id) => ({ id })),
      };
    },
    proves: {
      receipt:
        '`command`: `agentId`, `assignmentId`, `status`, `exitCode`, `durationMs`, `output` (`sha256`, `bytes`), the ids of `credentialsUsed`, `violations`',
    },
  }),
  'step.late_result': eventKind({
    summary: 'An agent reported a result under a lease that had ended. It changes nothing.',
    fields: z.strictObject({
      ...ofStep,
      ...ofAssignment,
      status: CommandStatus,
      exitCode: z.int().nullable(),
      outputSha256: Hash,
    }),
    text: ({ step, agent, status }) =>
      `${step}: agent ${nameOf(agent)} reported "${status}" too late; it changes nothing`,
    tone: () => 'bad',
    siem: () => ({ severity: 'medium' }),
  }),
};
