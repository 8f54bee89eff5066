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
import { DynamoNoticeStore } from '../notify/dynamo-notice-store.ts';
import { notifyRunEnd } from '../notify/notify-run-end.ts';
import { postProgress } from '../notify/post-progress.ts';
import { CachedDefinitions } from '../pipeline/cached-definitions.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { DynamoRunStore } from '../run/dynamo/dynamo-run-store.ts';
import { SlackCards } from '../slack/card/slack-cards.ts';
import { SlackDigests } from '../slack/digest/slack-digests.ts';
import { SlackNotices } from '../slack/notice/slack-notices.ts';
import { DynamoDigestStore } from './digest/dynamo-digest-store.ts';
import { postDigest } from './digest/post-digest.ts';
import { PublishDecisionEnvironment } from './environment.ts';
import { publishDecision } from './publish-decision.ts';
import { SfnTaskTokens } from './sfn-task-tokens.ts';

const ofRun = { entryId: z.string(), tenant: z.string(), runId: z.string() };
const Message = z.union([
  z.object({ kind: z.literal('notify_run_end'), ...ofRun }),
  z.object({ kind: z.literal('post_progress'), ...ofRun, seq: z.int() }),
  z.object({
    /** Absent: publish a change of the approval. */
    kind: z.enum(['list_overdue', 'repeat_digest']).optional(),
    ...ofRun,
    approvalId: z.string(),
  }),
]);

const environment = readEnvironment(PublishDecisionEnvironment);
const dynamo = new DynamoDBClient();
const stored = new DynamoDefinitions(dynamo, environment.RUN_TABLE);
const connections = systemConnections(stored, secretNames(environment, 'messaging'));
const runs = new DynamoRunStore(dynamo, environment.RUN_TABLE, systemPause, systemClock);
const definitions = new CachedDefinitions(stored, systemClock.now);
const consoleUrl = environment.CONSOLE_URL;
const notifying = { runs, connections, people: definitions, clock: systemClock, log: systemLog, consoleUrl };
const publisher = {
  runs,
  cards: new SlackCards(notifying),
  digests: new DynamoDigestStore(dynamo, environment.RUN_TABLE),
  messages: new SlackDigests(notifying),
  tokens: new SfnTaskTokens(new SFNClient()),
  clock: systemClock,
  log: systemLog,
};
const digester = { ...publisher, definitions, ids: systemIds };

const notifier = {
  runs,
  notices: new DynamoNoticeStore(dynamo, environment.RUN_TABLE),
  messages: new SlackNotices({ connections, definitions, log: systemLog, consoleUrl: environment.CONSOLE_URL }),
  clock: systemClock,
  ids: systemIds,
  log: systemLog,
};

/** Publishes changes of approvals, posts digests of those that are overdue, and notifies of the end of runs. */
export const handler = functionHandler<SQSEvent, SQSBatchResponse>().handler((event: SQSEvent, context: Context) => {
  const timeLeftMs = () => context.getRemainingTimeInMillis();
  const process = (message: z.infer<typeof Message>) => {
    if (message.kind === 'notify_run_end') return notifyRunEnd({ ...notifier, timeLeftMs }, message);
    if (message.kind === 'post_progress') return postProgress({ ...notifier, timeLeftMs }, message);
    const { kind, ...about } = message;
    return kind ? postDigest({ ...digester, timeLeftMs }, { kind, ...about }) : publishDecision(publisher, about);
  };
  return processBatch(event, Message, process, systemLog);
});
