import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import middy from '@middy/core';
import * as z from 'zod';
import { readEnvironment } from '../entry/environment.ts';
import { systemPause } from '../entry/system.ts';
import { DynamoRunStore } from '../run/dynamo-run-store.ts';
import { HoldEnvironment } from './environment.ts';

const HoldInput = z.object({
  entryId: z.string(),
  tenant: z.string(),
  runId: z.string(),
  approvalId: z.string(),
  taskToken: z.string(),
});

/** Known to the state machine by this name: the one failure of ours that trying again cannot mend. */
class ApprovalClosed extends Error {
  override name = 'ApprovalClosed';
}

const runs = new DynamoRunStore(new DynamoDBClient(), readEnvironment(HoldEnvironment).RUN_TABLE, systemPause);

/** The first state of the approval machine: keeps the task token, with which the decision will wake the machine. */
export const handler = middy<unknown, void>().handler(async (event: unknown) => {
  const { entryId, tenant, runId, approvalId, taskToken } = HoldInput.parse(event);
  const approval = await runs.approval(tenant, runId, approvalId);
  if (!approval) throw new Error(`run ${runId} has no approval ${approvalId}`);
  const open = await runs.fulfilApproval(entryId, approval, taskToken);
  // Nobody will ever answer this token: the execution ends here instead of waiting for its timeout.
  if (!open) throw new ApprovalClosed(`approval ${approvalId} was closed before it could be held`);
});
