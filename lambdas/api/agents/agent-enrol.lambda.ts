import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { KMSClient } from '@aws-sdk/client-kms';
import { DynamoAgentRegistry } from '../../agents/dynamo-agent-registry.ts';
import type { Introductions } from '../../agents/introduce-keys.ts';
import type { SigningKey } from '../../agents/protocol.ts';
import { Cached } from '../../entry/cached.ts';
import { AwsEnvironment, readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { invokedIn, invokeFunction } from '../../entry/invoke-function.ts';
import { systemClock, systemIds, systemLog } from '../../entry/system.ts';
import { KmsPublicKeys } from '../../evidence/signing/kms-signer.ts';
import { AgentEnrolEnvironment } from '../environment.ts';
import { handleAgentEnrol } from './agent-enrol.ts';
import { assignmentKeys } from './assignment-keys.ts';
import { DynamoAgentChanges } from './dynamo-agent-changes.ts';

/** Keys change only with deployments, which start new functions. The cache saves KMS requests. */
const CACHED_MS = 60 * 60 * 1000;

const environment = readEnvironment(AgentEnrolEnvironment);
const dynamo = new DynamoDBClient();
const kms = new KmsPublicKeys(new KMSClient());
const keys = new Cached<SigningKey[]>(CACHED_MS, systemClock.now);
const introductions = new Cached<Introductions>(CACHED_MS, systemClock.now);
const { INTRODUCE_FUNCTION: introduce } = environment;
const aws = readEnvironment(AwsEnvironment);

const api = {
  agents: new DynamoAgentRegistry(dynamo, environment.RUN_TABLE),
  changes: new DynamoAgentChanges(dynamo, environment.RUN_TABLE),
  signingKeys: () => keys.get('current', () => assignmentKeys(environment.EVIDENCE_KEYS, kms)),
  introductions: async () =>
    introduce === undefined
      ? []
      : introductions.get('all', async () => (await invokeFunction(invokedIn(aws, introduce), {})) as Introductions),
  liveUrl: environment.LIVE_URL,
  clock: systemClock,
  ids: systemIds,
  log: systemLog,
};

export const handler = httpHandler((event) => handleAgentEnrol(api, event));
