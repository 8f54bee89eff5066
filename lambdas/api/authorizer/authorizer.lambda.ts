import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { APIGatewayRequestAuthorizerEventV2, APIGatewaySimpleAuthorizerWithContextResult } from 'aws-lambda';
import { readEnvironment } from '../../entry/environment.ts';
import { functionHandler } from '../../entry/middy-handler.ts';
import { systemClock, systemLog } from '../../entry/system.ts';
import { DynamoDefinitions } from '../../pipeline/dynamo-definitions.ts';
import { AuthorizerEnvironment } from '../environment.ts';
import { authenticate } from './authenticate.ts';
import type { Caller, RefusedCaller } from './caller.ts';
import { configuredIssuers } from './configured-issuers.ts';
import { DynamoApiKeys } from './dynamo-api-keys.ts';
import { fetchIssuerJson } from './fetch-issuer-json.ts';
import { IssuerKeys } from './issuer-keys.ts';
import { Unauthenticated } from './unauthenticated.ts';

const { RUN_TABLE, ISSUERS, OWN_URL, STAGE_KIND } = readEnvironment(AuthorizerEnvironment);
const dynamo = new DynamoDBClient();
const definitions = new DynamoDefinitions(dynamo, RUN_TABLE);
const authenticator = {
  keys: new DynamoApiKeys(dynamo, RUN_TABLE),
  definitions,
  issuers: {
    find: configuredIssuers(ISSUERS, STAGE_KIND, definitions),
    keys: new IssuerKeys(fetchIssuerJson({ ownUrl: OWN_URL }), systemClock.now, (issuer, error) =>
      systemLog.error('the keys of an issuer could not be read', { issuer, error }),
    ),
  },
  clock: systemClock,
};

type Verdict = APIGatewaySimpleAuthorizerWithContextResult<Caller | RefusedCaller>;

/**
 * Lets every request pass to its function, with the caller or with the reason why there is none: the router then responds
 * with 401 and this reason. API Gateway would respond with a 403 that says nothing.
 */
export const handler = functionHandler<APIGatewayRequestAuthorizerEventV2, Verdict>().handler(async ({ headers }) => {
  try {
    return { isAuthorized: true, context: await authenticate(authenticator, headers) };
  } catch (error) {
    if (!(error instanceof Unauthenticated)) throw error;
    return { isAuthorized: true, context: { refused: error.message } };
  }
});
