import * as z from 'zod';
import { systemConnections } from '../connectors/connection-ports.ts';
import { readEnvironment } from '../entry/environment.ts';
import { METRICS } from '../entry/metrics.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { systemMetrics } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { SlackCards } from '../slack/card/slack-cards.ts';
import { moverPorts } from '../worker/worker-ports.ts';
import { HoldEnvironment, RUNGS } from './environment.ts';
import { holdApproval } from './hold-approval.ts';

const HoldInput = z.object({
  entryId: z.string(),
  tenant: z.string(),
  runId: z.string(),
  approvalId: z.string(),
  rung: z.enum(RUNGS),
  taskToken: z.string(),
  retryCount: z.int(),
});

const environment = readEnvironment(HoldEnvironment);
const mover = moverPorts(environment);
const metrics = systemMetrics(environment.STAGE);
const connections = systemConnections(mover.stored, secretNames(environment, 'messaging'));
const holder = {
  ...mover,
  cards: new SlackCards({ ...mover, connections, people: mover.definitions }),
};

/** A rung of the approval machine: it waits here with a token, and people are told. */
export const handler = functionHandler<unknown, void>().handler(async (event: unknown) => {
  const { retryCount, ...holding } = HoldInput.parse(event);
  await holdApproval(holder, { ...holding, retrying: retryCount > 0 });
  if (holding.rung === 'escalate') metrics.record({ name: METRICS.approvalsOverdue, value: 1, unit: 'Count' });
});
