import * as z from 'zod';
import { systemConnections } from '../connectors/secrets-connections.ts';
import { readEnvironment } from '../entry/environment.ts';
import { METRICS } from '../entry/metrics.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { systemMetrics } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { wireRunChanger } from '../run-changes/run-changer.wiring.ts';
import { SlackCards } from '../slack/card/slack-cards.ts';
import { ESCALATION_STAGES, WaitForDecisionEnvironment } from './environment.ts';
import { waitForDecision } from './wait-for-decision.ts';

const HoldInput = z.object({
  entryId: z.string(),
  tenant: z.string(),
  runId: z.string(),
  approvalId: z.string(),
  escalationStage: z.enum(ESCALATION_STAGES),
  taskToken: z.string(),
  retryCount: z.int(),
});

const environment = readEnvironment(WaitForDecisionEnvironment);
const mover = wireRunChanger(environment);
const metrics = systemMetrics(environment.STAGE);
const connections = systemConnections(mover.stored, secretNames(environment, 'messaging'));
const holder = {
  ...mover,
  cards: new SlackCards({ ...mover, connections, people: mover.definitions }),
};

/** A rung of the approval machine: it waits here with a token, and people are told. */
export const handler = functionHandler<unknown, void>().handler(async (event: unknown) => {
  const { retryCount, ...holding } = HoldInput.parse(event);
  await waitForDecision(holder, { ...holding, retrying: retryCount > 0 });
  if (holding.escalationStage === 'escalate')
    metrics.record({ name: METRICS.approvalsOverdue, value: 1, unit: 'Count' });
});
