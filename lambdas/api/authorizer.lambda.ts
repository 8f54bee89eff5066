import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import middy from '@middy/core';
import type { APIGatewayRequestAuthorizerEventV2, APIGatewaySimpleAuthorizerWithContextResult } from 'aws-lambda';
import { readEnvironment } from '../entry/environment.ts';
import type { Caller } from './api-keys.ts';
import { DynamoApiKeys } from './dynamo-api-keys.ts';
import { AuthorizerEnvironment } from './environment.ts';

const keys = new DynamoApiKeys(new DynamoDBClient(), readEnvironment(AuthorizerEnvironment).RUN_TABLE);

type Verdict = APIGatewaySimpleAuthorizerWithContextResult<Caller | null>;

export const handler = middy<APIGatewayRequestAuthorizerEventV2, Verdict>().handler(
  async (event: APIGatewayRequestAuthorizerEventV2) => {
    const caller = await keys.find(event.headers?.['x-api-key'] ?? '');
    return { isAuthorized: caller !== undefined, context: caller ?? null };
  },
);
