import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoApiKeys } from '../api/authorizer/dynamo-api-keys.ts';
import { readEnvironment } from '../entry/environment.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { systemClock, systemIds } from '../entry/system.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { later } from '../run/lease.ts';
import { BootstrapCall, type BootstrapPorts, callBootstrap } from './bootstrap.ts';
import { BootstrapEnvironment } from './environment.ts';
import { type Reply, replyWith } from './reply.ts';

const { RUN_TABLE, STAGE, STAGE_KIND, OWN_URL, TENANTS } = readEnvironment(BootstrapEnvironment);
const dynamo = new DynamoDBClient();
const keys = new DynamoApiKeys(dynamo, RUN_TABLE);

/** As for other keys: until then, the owner signs in or creates their own. */
const KEY_EXPIRES_AFTER_MS = 90 * 24 * 60 * 60 * 1000;
const SHOWN_PERSON_CHARACTERS = 50;
const SHOWN_HASH_DIGITS = 8;

const ports: BootstrapPorts = {
  stage: { stage: STAGE, kind: STAGE_KIND, url: OWN_URL },
  tenants: TENANTS,
  definitions: new DynamoDefinitions(dynamo, RUN_TABLE),
  /** The name is made from the hash: the same key again changes nothing, and another one replaces none. */
  async saveKey(tenant, { person, sha256 }, by) {
    const name = `${person.slice(0, SHOWN_PERSON_CHARACTERS)}-${sha256.slice(0, SHOWN_HASH_DIGITS)}`;
    if ((await keys.named(tenant, name))?.hash === sha256) return;
    const expiresAt = later(by.at, KEY_EXPIRES_AFTER_MS);
    const created = { name, createdBy: by.actor, createdAt: by.at, expiresAt };
    await keys.saveHash(sha256, { tenant, person, role: 'owner', ...created }, by);
  },
  clock: systemClock,
  ids: systemIds,
};

/** Has no route, and no function may invoke it: only operators do, with their own AWS credentials. */
export const handler = functionHandler<unknown, Reply<unknown>>().handler((event: unknown) =>
  replyWith<unknown>(() => callBootstrap(ports, BootstrapCall.parse(event))),
);
