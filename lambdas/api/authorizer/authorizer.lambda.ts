import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { APIGatewayRequestAuthorizerEventV2, APIGatewaySimpleAuthorizerWithContextResult } from 'aws-lambda';
import { readEnvironment } from '../../entry/environment.ts';
import { functionHandler } from '../../entry/middy-handler.ts';
import { DynamoDefinitions } from '../../pipeline/dynamo-definitions.ts';
import { AuthorizerEnvironment } from '../environment.ts';
import { callerWith } from './api-keys.ts';
import type { Caller } from './caller.ts';
import { DynamoApiKeys } from './dynamo-api-keys.ts';

const { RUN_TABLE } = readEnvironment(AuthorizerEnvironment);
const dynamo = new DynamoDBClient();
const holders = { keys: new DynamoApiKeys(dynamo, RUN_TABLE), definitions: new DynamoDefinitions(dynamo, RUN_TABLE) };

type Verdict = APIGatewaySimpleAuthorizerWithContextResult<Caller | null>;

export const handler = functionHandler<APIGatewayRequestAuthorizerEventV2, Verdict>().handler(
  async (event: APIGatewayRequestAuthorizerEventV2) => {
    const caller = await callerWith(holders, event.headers?.['x-api-key'] ?? '');
    return { isAuthorized: caller !== undefined, context: caller ?? null };
  },
);
