import * as z from 'zod';
import { systemConnections } from '../connectors/secrets-connections.ts';
import { readEnvironment } from '../entry/environment.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { systemPause } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { OutboxEntry, type StartApproval } from '../outbox/outbox.ts';
import { wireRunChanger } from '../run-changes/run-changer.wiring.ts';
import { SlackCards } from '../slack/card/slack-cards.ts';
import { announceApproval } from './announce-approval.ts';
import { ESCALATION_STAGES, WaitForDecisionEnvironment } from './environment.ts';
import { waitForDecision } from './wait-for-decision.ts';

/** Executions that an earlier version started name the stage `rung`. */
const WaitInput = z.preprocess(
  (event) => ({ escalationStage: Object(event).rung, ...Object(event) }),
  z.object({
    entryId: z.string(),
    tenant: z.string(),
    runId: z.string(),
    approvalId: z.string(),
    escalationStage: z.enum(ESCALATION_STAGES),
    taskToken: z.string(),
    retryCount: z.int(),
    /** The first attempt at the stage, in a task of its own, has failed. */
    after: z.literal('failure').optional(),
  }),
);

/** Sent right after the commit that requested the approval. */
const AnnounceInput = z.object({
  announce: OutboxEntry.refine((entry): entry is StartApproval => entry.kind === 'start_approval'),
});

const environment = readEnvironment(WaitForDecisionEnvironment);
const changer = wireRunChanger(environment);
const connections = systemConnections(changer.stored, secretNames(environment, 'messaging'));
const waiter = {
  ...changer,
  pause: systemPause,
  cards: new SlackCards({ ...changer, connections, people: changer.definitions, consoleUrl: environment.CONSOLE_URL }),
};

/**
 * Notifies people. The worker invokes this for a new approval; the state machine invokes it at each escalation stage, and waits
 * with a task token.
 */
export const handler = functionHandler<unknown, void>().handler(async (event: unknown) => {
  if ('announce' in Object(event)) return announceApproval(waiter, AnnounceInput.parse(event).announce);
  const { after, ...waiting } = WaitInput.parse(event);
  const earlierAttempts = after === 'failure' ? 1 : 0;
  await waitForDecision(waiter, { ...waiting, retryCount: waiting.retryCount + earlierAttempts });
});
