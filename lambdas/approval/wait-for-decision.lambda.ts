import * as z from 'zod';
import { systemConnections } from '../connectors/secrets-connections.ts';
import { readEnvironment } from '../entry/environment.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { wireRunChanger } from '../run-changes/run-changer.wiring.ts';
import { SlackCards } from '../slack/card/slack-cards.ts';
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

const environment = readEnvironment(WaitForDecisionEnvironment);
const changer = wireRunChanger(environment);
const connections = systemConnections(changer.stored, secretNames(environment, 'messaging'));
const waiter = {
  ...changer,
  cards: new SlackCards({ ...changer, connections, people: changer.definitions, consoleUrl: environment.CONSOLE_URL }),
};

/** The state machine calls this at each escalation stage and waits with a task token; this function notifies people. */
export const handler = functionHandler<unknown, void>().handler(async (event: unknown) => {
  const { after, ...waiting } = WaitInput.parse(event);
  const earlierAttempts = after === 'failure' ? 1 : 0;
  await waitForDecision(waiter, { ...waiting, retryCount: waiting.retryCount + earlierAttempts });
});
