import * as z from 'zod';
import { ACTION_REFUSALS, SESSION_OUTCOMES } from '../session.ts';
import { Count, eventKind, Hash, Id, ofStep, Sentence, Time } from './event-kind.ts';
import { stepOf } from './replay-state.ts';

/** Why a session counts as lost. */
const SESSION_LOSSES = ['missing', 'ended', 'dead', 'silent'] as const;
export type SessionLoss = (typeof SESSION_LOSSES)[number];

const LOSS_TEXT: Record<SessionLoss, string> = {
  missing: 'its provider does not know it',
  ended: 'it ended without a completion',
  dead: 'it failed at its provider',
  silent: 'it was silent',
};

export const SESSION_EVENTS = {
  'session.started': eventKind({
    summary: 'The session was started and prompted, once. The step waits for its completion.',
    fields: z.strictObject({ ...ofStep, configuration: Id, sessionHash: Hash, completionId: Id, until: Time }),
    text: ({ step, configuration, until }, time) =>
      `${step}: session started with configuration ${configuration}; it must complete before ${time(until)}`,
    replay: (replay, event) => {
      stepOf(replay, event).hasSession = true;
    },
    proves: { step: 'the claim has started a session' },
  }),
  'session.seen': eventKind({
    summary: 'The session was active. Recorded at most every few minutes.',
    fields: z.strictObject({ ...ofStep, by: z.enum(['heartbeat', 'provider']) }),
    text: ({ step }) => `${step}: the session is active`,
  }),
  'session.action_proposed': eventKind({
    summary: 'The session proposed a call. Another run makes it, under the same policies and approvals as a step.',
    fields: z.strictObject({ ...ofStep, actionRunId: Id, tool: Id, inputHash: Hash, actor: Id }),
    text: ({ step, tool, actionRunId }) => `${step}: the session proposed ${tool}, see ${actionRunId}`,
  }),
  'session.action_refused': eventKind({
    summary: 'The session proposed a call that its step does not allow. Nothing was started.',
    fields: z.strictObject({ ...ofStep, because: z.enum(ACTION_REFUSALS), toolHash: Hash, refused: Count }),
    text: ({ step, because }) => `${step}: a call of the session was refused: ${because.replaceAll('_', ' ')}`,
    tone: () => 'bad',
    siem: () => ({ severity: 'medium', failed: true }),
  }),
  'session.completed': eventKind({
    summary: 'The session reported its outcome.',
    fields: z.strictObject({
      ...ofStep,
      completionId: Id,
      completionHash: Hash,
      outcome: z.enum(SESSION_OUTCOMES),
      actor: Id,
      actions: Count,
    }),
    text: ({ step, outcome, actions }) => `${step}: the session completed as ${outcome}, after ${actions} actions`,
  }),
  'session.canceled': eventKind({
    summary: 'A person ended the session. Its step fails.',
    fields: z.strictObject({ ...ofStep, actor: Id, reason: Sentence.optional() }),
    text: ({ step, actor, reason }) => `${step}: ${actor} canceled the session${reason ? `: ${reason}` : ''}`,
    tone: () => 'bad',
    siem: () => ({ severity: 'medium' }),
  }),
  'session.lost': eventKind({
    summary: 'The worker found that the session will not complete.',
    fields: z.strictObject({ ...ofStep, because: z.enum(SESSION_LOSSES), seenAt: Time }),
    text: ({ step, because, seenAt }, time) =>
      `${step}: the session is lost: ${LOSS_TEXT[because]}; last seen ${time(seenAt)}`,
    tone: () => 'bad',
    siem: () => ({ severity: 'medium', failed: true }),
  }),
};
