import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import * as z from 'zod';
import { DynamoAgentRegistry } from '../../agents/dynamo-agent-registry.ts';
import { EXCHANGE_TIMEOUT_MS } from '../../connectors/exchange.ts';
import { systemConnections } from '../../connectors/secrets-connections.ts';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { systemClock, systemLog } from '../../entry/system.ts';
import { secretNames } from '../../entry/tenant-secrets.ts';
import { wireStarter } from '../../intake/starter.wiring.ts';
import { DynamoDefinitions } from '../../pipeline/dynamo-definitions.ts';
import { DynamoPlanStore } from '../../plan/dynamo-plan-store.ts';
import { PlanEnvironment } from '../../plan/environment.ts';
import { wirePolicy } from '../../policy/policy.wiring.ts';
import { handlePlan } from './plan.ts';

/** The time for one more read at a target, and for the rest of the plan after it. */
const READ_MAX_MS = EXCHANGE_TIMEOUT_MS + 2_000;

const environment = readEnvironment(PlanEnvironment.extend({ AWS_REGION: z.string() }));
const dynamo = new DynamoDBClient();
const definitions = new DynamoDefinitions(dynamo, environment.RUN_TABLE);

const planner = {
  ...wireStarter(),
  agents: new DynamoAgentRegistry(dynamo, environment.RUN_TABLE),
  plans: new DynamoPlanStore(dynamo, environment.RUN_TABLE),
  definitions,
  connections: systemConnections(definitions, secretNames(environment, 'plan-connections'), 'planCredential'),
  policy: wirePolicy(definitions),
  environment: environment.STAGE_KIND,
  region: environment.AWS_REGION,
  clock: systemClock,
  log: systemLog,
};

export const handler = httpHandler((event, context) =>
  handlePlan({ ...planner, hasTime: () => context.getRemainingTimeInMillis() > READ_MAX_MS }, event),
);
