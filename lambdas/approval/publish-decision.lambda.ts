import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SFNClient } from '@aws-sdk/client-sfn';
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import * as z from 'zod';
import { systemConnections } from '../connectors/secrets-connections.ts';
import { readEnvironment } from '../entry/environment.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { processBatch } from '../entry/sqs-batch.ts';
import { systemClock, systemLog, systemPause } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { CachedDefinitions } from '../pipeline/cached-definitions.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { DynamoRunStore } from '../run/dynamo/dynamo-run-store.ts';
import { SlackCards } from '../slack/card/slack-cards.ts';
import { PublishDecisionEnvironment } from './environment.ts';
import { publishDecision } from './publish-decision.ts';
import { SfnTaskTokens } from './sfn-task-tokens.ts';

const ApprovalMessage = z.object({
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
const publisher = {
  runs,
  cards: new SlackCards({
    runs,
    connections,
    people: new CachedDefinitions(stored, systemClock.now),
    clock: systemClock,
    log: systemLog,
  }),
  tokens: new SfnTaskTokens(new SFNClient()),
  log: systemLog,
};

export const handler = functionHandler<SQSEvent, SQSBatchResponse>().handler((event: SQSEvent) =>
  processBatch(event, ApprovalMessage, (message) => publishDecision(publisher, message), systemLog),
);
