import { Construct } from 'constructs';
import { packageVersion } from '../bin/version.ts';
import { SetupEnvironment } from '../lambdas/api/environment.ts';
import {
  BootstrapEnvironment,
  bootstrapFunctionName,
  CredentialsEnvironment,
  credentialsFunctionName,
} from '../lambdas/setup/environment.ts';
import { apiFunctionName, type CountersignHttpApi } from './api/http-api.ts';
import type { ListCursors } from './api/list-cursors.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';
import type { StageConfig } from './stage-config.ts';
import type { TenantSecrets } from './tenant-secrets.ts';

/** API Gateway waits at most 30 s, and the API waits for the test of a connection, which makes a few requests. */
const API_TIMEOUT = seconds(29);
const CREDENTIALS_TIMEOUT = seconds(27);
const BOOTSTRAP_TIMEOUT = seconds(15);

interface TenantSetupProps {
  bundles: FunctionBundles;
  config: StageConfig;
  runTable: RunTable;
  httpApi: CountersignHttpApi;
  cursors: ListCursors;
  /** All secrets of the tenants. */
  secrets: readonly TenantSecrets[];
}

/**
 * How a tenant is set up. The bootstrap function creates its first owners: only operators invoke it, with their own AWS
 * credentials. The owners do the rest over the API, which cannot read a credential: the function that can has no route.
 */
export class TenantSetup extends Construct {
  constructor(scope: Construct, id: string, props: TenantSetupProps) {
    super(scope, id);
    const { bundles, config, runTable, httpApi, cursors, secrets } = props;
    const stage = {
      RUN_TABLE: runTable.table.tableName,
      STAGE: config.stage,
      TENANTS: config.tenants.join(','),
      OWN_URL: httpApi.url,
    };
    const bootstrap = new NodeFunction(this, 'Bootstrap', {
      bundles,
      name: bootstrapFunctionName(config.stage),
      entry: 'setup/bootstrap',
      description: 'Creates the first owners of a tenant and erases personal data, for operators with AWS credentials',
      schema: BootstrapEnvironment,
      environment: { ...stage, STAGE_KIND: config.kind },
      timeout: BOOTSTRAP_TIMEOUT,
    });
    runTable.allow(bootstrap, ['GetItem', 'PutItem'], ['TENANT', 'APIKEY']);
    runTable.allow(bootstrap, ['GetItem', 'PutItem'], ['KEYS']);
    runTable.allow(bootstrap, ['Query'], ['TENANT']);
    runTable.allow(bootstrap, ['BatchGetItem', 'PutItem'], ['IDENTITY']);
    runTable.allow(bootstrap, ['Query', 'PutItem'], ['CHANGE']);

    const credentials = new NodeFunction(this, 'Credentials', {
      bundles,
      name: credentialsFunctionName(config.stage),
      entry: 'setup/credentials',
      description: 'Stores, checks and tests the credentials of tenants, and returns none',
      schema: CredentialsEnvironment,
      environment: stage,
      timeout: CREDENTIALS_TIMEOUT,
    });
    for (const each of secrets) each.changeableBy(credentials);
    runTable.allow(credentials, ['GetItem'], ['TENANT']);
    runTable.allow(credentials, ['PutItem'], ['CHANGE']);

    const api = new NodeFunction(this, 'Api', {
      bundles,
      name: apiFunctionName(config, 'setup'),
      entry: 'api/setup/setup',
      description: 'Changes and returns connections and settings',
      schema: SetupEnvironment,
      environment: {
        RUN_TABLE: stage.RUN_TABLE,
        ...cursors.environment,
        STAGE: config.stage,
        STAGE_KIND: config.kind,
        STAGE_FLAGS: JSON.stringify(config.features),
        OWN_URL: stage.OWN_URL,
        VERSION: packageVersion(),
        HAS_ALARM_RECEIVER:
          config.alarmEmails.length + config.alarmUrls.length > 0 || config.alarmTopicArn !== undefined
            ? 'true'
            : 'false',
        CREDENTIALS_FUNCTION: credentials.functionName,
      },
      timeout: API_TIMEOUT,
    });
    cursors.allow(api);
    runTable.allow(api, ['GetItem', 'Query', 'PutItem', 'DeleteItem'], ['TENANT']);
    runTable.allow(api, ['PutItem'], ['CHANGE']);
    // OIDC issuers of the tenant's settings.
    runTable.allow(api, ['GetItem', 'PutItem', 'DeleteItem'], ['ISSUER']);
    // The doctor lists keys that are about to expire.
    runTable.allow(api, ['Query'], ['KEYS']);
    runTable.allow(api, ['BatchGetItem'], ['APIKEY']);
    api.allow(['lambda:InvokeFunction'], [credentials.functionArn]);
    httpApi.serve('setup', api);
  }
}
