import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import * as z from 'zod';
import { EXCHANGE_TIMEOUT_MS } from '../connectors/http-exchange.ts';
import { findOperation } from '../connectors/registry.ts';
import { SecretsConnections } from '../connectors/secrets-connections.ts';
import { readEnvironment } from '../entry/environment.ts';
import { httpHandler } from '../entry/http.ts';
import { systemClock } from '../entry/system.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { systemPolicy } from '../policy/policy-ports.ts';
import { PlanEnvironment } from '../workflow/environment.ts';
import { answerPlan } from './plan-api.ts';

/** What is left after the slowest read must do for the rest of the plan. */
const READ_TAKES_AT_MOST_MS = EXCHANGE_TIMEOUT_MS + 2_000;

const environment = readEnvironment(PlanEnvironment.extend({ AWS_REGION: z.string() }));
const definitions = new DynamoDefinitions(new DynamoDBClient(), environment.RUN_TABLE);

const planner = {
  definitions,
  connections: new SecretsConnections(
    new SecretsManagerClient(),
    definitions,
    environment.PLAN_SECRET_ARNS,
    systemClock.now,
  ),
  policy: systemPolicy(definitions, (tool) => findOperation(tool) !== undefined),
  environment: environment.STAGE_KIND,
  region: environment.AWS_REGION,
  clock: systemClock,
};

export const handler = httpHandler((event, context) =>
  answerPlan({ ...planner, hasTime: () => context.getRemainingTimeInMillis() > READ_TAKES_AT_MOST_MS }, event),
);
