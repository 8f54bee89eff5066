import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { StageConnections } from '../connectors/connections.ts';
import { SecretsConnections } from '../connectors/secrets-connections.ts';
import { AwsEnvironment, readEnvironment } from '../entry/environment.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { systemClock, systemIds } from '../entry/system.ts';
import { type SecretPurpose, secretNames } from '../entry/tenant-secrets.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { CredentialsCall } from './credentials.ts';
import { CredentialsEnvironment } from './environment.ts';
import { type Reply, replyWith } from './reply.ts';
import { SecretsSecretDocuments } from './secrets-secret-documents.ts';
import { StoredCredentials } from './stored-credentials.ts';
import { testConnection } from './test-connection/test-connection.ts';

const environment = readEnvironment(CredentialsEnvironment);
const secretsManager = new SecretsManagerClient();
const definitions = new DynamoDefinitions(new DynamoDBClient(), environment.RUN_TABLE);

/** New for every test: a credential that was just corrected must not be tested as it was a minute ago. */
const connectionsWith = (purpose: SecretPurpose) =>
  new SecretsConnections(
    secretsManager,
    definitions,
    secretNames(environment, purpose),
    systemClock.now,
    purpose === 'plan-connections' ? 'planCredential' : 'credential',
  );
const withStage = (targets: SecretPurpose, messaging: SecretPurpose) =>
  new StageConnections(
    { targets: connectionsWith(targets), messaging: connectionsWith(messaging) },
    { ownUrl: environment.OWN_URL, aws: readEnvironment(AwsEnvironment) },
  );

const credentials = new StoredCredentials({
  documents: new SecretsSecretDocuments(secretsManager, environment.STAGE),
  changes: definitions,
  clock: systemClock,
  ids: systemIds,
  tenants: environment.TENANTS,
  testConnection: (tenant, connection) =>
    testConnection(
      {
        connections: withStage('connections', 'messaging'),
        planConnections: withStage('plan-connections', 'plan-connections'),
        definitions,
      },
      tenant,
      connection,
    ),
});

/** Has no route: the setup API invokes it for owners and admins, and operators with their own AWS credentials. */
export const handler = functionHandler<unknown, Reply<unknown>>().handler((event: unknown) =>
  replyWith<unknown>(() => {
    const { action, request } = CredentialsCall.parse(event);
    return credentials[action](request as never);
  }),
);
