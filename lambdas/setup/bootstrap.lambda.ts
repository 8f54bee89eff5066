import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoApiKeys } from '../api/authorizer/dynamo-api-keys.ts';
import { readEnvironment } from '../entry/environment.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { systemClock, systemIds } from '../entry/system.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { addOwners, BootstrapCall, type BootstrapPorts, describeStage } from './bootstrap.ts';
import { BootstrapEnvironment } from './environment.ts';
import { type Reply, replyWith } from './reply.ts';

const { RUN_TABLE, STAGE, STAGE_KIND, OWN_URL, TENANTS } = readEnvironment(BootstrapEnvironment);
const dynamo = new DynamoDBClient();
const keys = new DynamoApiKeys(dynamo, RUN_TABLE);

const ports: BootstrapPorts = {
  stage: { stage: STAGE, kind: STAGE_KIND, url: OWN_URL },
  tenants: TENANTS,
  definitions: new DynamoDefinitions(dynamo, RUN_TABLE),
  saveKey: (tenant, { person, sha256 }, by) => {
    const created = { name: `first-${person}`, createdBy: by.actor, createdAt: by.at };
    return keys.saveHash(sha256, { tenant, person, role: 'owner', ...created }, by);
  },
  clock: systemClock,
  ids: systemIds,
};

/** Has no route, and no function may invoke it: only operators do, with their own AWS credentials. */
export const handler = functionHandler<unknown, Reply<unknown>>().handler((event: unknown) =>
  replyWith<unknown>(() => {
    const call = BootstrapCall.parse(event);
    return call.action === 'describe' ? describeStage(ports) : addOwners(ports, call.request);
  }),
);
