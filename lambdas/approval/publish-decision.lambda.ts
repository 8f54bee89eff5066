import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SFNClient } from '@aws-sdk/client-sfn';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import * as z from 'zod';
import { systemConnections } from '../connectors/secrets-connections.ts';
import { readEnvironment } from '../entry/environment.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { processBatch } from '../entry/sqs-batch.ts';
import { systemClock, systemIds, systemLog, systemPause } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { CachedDefinitions } from '../pipeline/cached-definitions.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { DynamoRunStore } from '../run/dynamo/dynamo-run-store.ts';
import { SlackCards } from '../slack/card/slack-cards.ts';
import { SlackDigests } from '../slack/digest/slack-digests.ts';
import { DynamoDigestStore } from './digest/dynamo-digest-store.ts';
import { postDigest } from './digest/post-digest.ts';
import { PublishDecisionEnvironment } from './environment.ts';
import { publishDecision } from './publish-decision.ts';
import { SfnTaskTokens } from './sfn-task-tokens.ts';

const ApprovalMessage = z.object({
  /** Absent: publish a change of the approval. */
  kind: z.enum(['list_overdue', 'repeat_digest']).optional(),
  entryId: z.string(),
  tenant: z.string(),
  runId: z.string(),
  approvalId: z.string(),
});

const environment = readEnvironment(PublishDecisionEnvironment);
const dynamo = new DynamoDBClient();
const stored = new DynamoDefinitions(dynamo, environment.RUN_TABLE);
const connections = systemConnections(stored, secretNames(environment, 'messaging'));
const runs = new DynamoRunStore(dynamo, environment.RUN_TABLE, systemPause, systemClock);
const definitions = new CachedDefinitions(stored, systemClock.now);
const notifying = { runs, connections, people: definitions, clock: systemClock, log: systemLog };
const publisher = {
  runs,
  cards: new SlackCards(notifying),
  digests: new DynamoDigestStore(dynamo, environment.RUN_TABLE),
  messages: new SlackDigests(notifying),
  tokens: new SfnTaskTokens(new SFNClient()),
  log: systemLog,
};
const digester = { ...publisher, definitions, clock: systemClock, ids: systemIds };

/** Publishes changes of approvals, and posts digests of those that are overdue. */
export const handler = functionHandler<SQSEvent, SQSBatchResponse>().handler((event: SQSEvent, context: Context) => {
  const timeLeftMs = () => context.getRemainingTimeInMillis();
  const process = ({ kind, ...message }: z.infer<typeof ApprovalMessage>) =>
    kind ? postDigest({ ...digester, timeLeftMs }, { kind, ...message }) : publishDecision(publisher, message);
  return processBatch(event, ApprovalMessage, process, systemLog);
});
