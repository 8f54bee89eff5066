import { describe, expect, it } from 'vitest';
import { apiDefinitions, functionArnOf, httpRoutes } from '../../local/api-gateway/http-routes.ts';
import { socketApis } from '../../local/api-gateway/websocket-routes.ts';
import { wildcardMatches } from '../../local/iam/conditions.ts';
import { STAGES, synthesized } from './synthesized.ts';

/** Permissions that AWS cannot narrow, and permissions for objects that do not exist yet. */
const WILDCARDS: Record<string, RegExp> = {
  ApprovalFlowMachineRole: /^(logs|xray):/,
  EvidenceVaultSealRole: /^(s3:(Put|Get)Object|xray:PutTraceSegments)$/,
  EvidenceLogCloseDaysRole: /^s3:(Put|Get)Object$/,
  EvidenceApiFetchRole: /^s3:GetObject$/,
  AgentApiWorkRole: /^s3:PutObject$/,
  PolicyApiPoliciesRole: /^s3:PutObject$/,
  ApiRunsRole: /^s3:GetObject$/,
  ConsoleDeployRole: /^s3:(Put|Delete)Object$/,
  ApiBulkRole: /^execute-api:ManageConnections$/,
  ApiControlRole: /^execute-api:ManageConnections$/,
  LiveFeedConnectionsRole: /^execute-api:ManageConnections$/,
  LiveFeedFanOutRole: /^(execute-api:ManageConnections|dynamodb:ListStreams)$/,
  WorkerStepRole: /^execute-api:ManageConnections$/,
};

/** The streams of one log group and the versions of one function are spelled with a star at the end. */
const PARTS_OF_ONE_THING = /:(log-group|function):[^*]+:\*$/;
/** The secrets of one purpose of all tenants of a stage. */
const SECRETS_OF_ONE_PURPOSE = /:secret:countersign\/[a-z-]+\/\*\/[a-z-]+-\?{6}$/;
const isNarrow = (resource: string) =>
  !resource.includes('*') || PARTS_OF_ONE_THING.test(resource) || SECRETS_OF_ONE_PURPOSE.test(resource);

const isConsole = (role: string) => role.startsWith('ConsoleDeployRole');

const ITEM_ACTIONS = ['GetItem', 'BatchGetItem', 'Query', 'PutItem', 'UpdateItem', 'DeleteItem', 'ConditionCheckItem'];

describe.each(STAGES)('in stage %s', (stage) => {
  const { stack, statements } = synthesized(stage);
  const functions = stack.ofType('AWS::Lambda::Function');
  const functionRoles = new Set(functions.map(({ properties }) => stack.byArn(String(properties.Role))?.logicalId));
  const ofFunctions = statements.filter(({ role }) => functionRoles.has(role));
  const tableArn = stack.ofType('AWS::DynamoDB::GlobalTable')[0]?.arn ?? '';

  const secretsOf = (resources: string[]) =>
    stack
      .ofType('AWS::SecretsManager::Secret')
      .filter(({ arn }) => resources.some((resource) => wildcardMatches(resource, arn)));

  it('the template has statements to check', () => {
    expect(functions.length).toBeGreaterThanOrEqual(10);
    expect(new Set(ofFunctions.map(({ role }) => role))).toEqual(functionRoles);
  });

  it('every function has its own role; API Gateway and Step Functions have theirs', () => {
    expect(functionRoles.size).toBe(functions.length);
    for (const role of stack.ofType('AWS::IAM::Role')) {
      const document = role.properties.AssumeRolePolicyDocument as { Statement: { Principal: { Service: string } }[] };
      const principals = document.Statement.map(({ Principal }) => Principal.Service);
      const other = role.logicalId.startsWith('HttpApiInvokeRole') ? 'apigateway' : 'states';
      expect(principals).toEqual([`${functionRoles.has(role.logicalId) ? 'lambda' : other}.amazonaws.com`]);
    }
  });

  it('no grant has a wildcard action', () => {
    expect(statements.flatMap(({ actions }) => actions).filter((action) => action.includes('*'))).toEqual([]);
  });

  it('no grant has a wildcard resource, except where AWS offers nothing narrower', () => {
    const wide = statements.filter(({ resources }) => resources.some((resource) => resource.includes('*')));
    const unexplained = wide.filter(({ role, actions, resources }) => {
      if (resources.every(isNarrow)) return false;
      const [, allowed] = Object.entries(WILDCARDS).find(([name]) => role.startsWith(name)) ?? [];
      return !allowed || !actions.every((action) => allowed.test(action));
    });
    expect(unexplained).toEqual([]);
    const evidence = wide.filter(
      ({ role, actions }) => actions.some((action) => action.startsWith('s3:')) && !isConsole(role),
    );
    for (const resource of evidence.flatMap(({ resources }) => resources)) {
      expect(resource).toMatch(/\/(evidence|log|texts|siem|artifacts|output)\/\*$/);
    }
  });

  it('no function may scan, describe, change or delete the table', () => {
    const onTable = statements.flatMap(({ actions }) => actions.filter((action) => action.startsWith('dynamodb:')));
    const items = ITEM_ACTIONS.map((action) => `dynamodb:${action}`);
    const stream = ['DescribeStream', 'GetRecords', 'GetShardIterator', 'ListStreams'].map(
      (each) => `dynamodb:${each}`,
    );
    expect(onTable.filter((action) => !items.includes(action)).toSorted()).toEqual(stream);
  });

  it('a grant for rows names their kinds; a grant for an index allows queries only', () => {
    const onDynamo = statements.filter(({ actions }) => actions.some((action) => action.startsWith('dynamodb:')));
    for (const { actions, resources, leadingKeys } of onDynamo) {
      if (resources.some((resource) => resource === tableArn)) {
        expect(resources).toEqual([tableArn]);
        expect(leadingKeys?.length).toBeGreaterThan(0);
        for (const key of leadingKeys ?? []) expect(key).toMatch(/^[A-Z]+#\*$/);
      } else if (actions.some((action) => /Stream|GetRecords|ShardIterator/.test(action))) {
        for (const resource of resources) expect([`${tableArn}/stream/local`, '*']).toContain(resource);
      } else {
        expect(actions).toEqual(['dynamodb:Query']);
        for (const resource of resources) expect(resource.startsWith(`${tableArn}/index/`)).toBe(true);
      }
    }
  });

  it.each([
    // A person who resolves a run says whether its writes were made.
    ['dynamodb:PutItem', 'RECEIPT', ['AgentApiWorkRole', 'ApiBulkRole', 'ApiControlRole', 'WorkerStepRole']],
    [
      'dynamodb:PutItem',
      'IDEM',
      [
        'ApiBulkRole',
        'ApiMcpRole',
        'ApiStartRole',
        'DefinitionsApiPlanRole',
        'IntakeGenericRole',
        'IntakeGithubRole',
        'IntakeServicenowRole',
        'SlackCommandsRole',
        'SlackEventsRole',
        'SweepSweeperRole',
      ],
    ],
    ['dynamodb:PutItem', 'TOKEN', ['ApprovalFlowHoldRole']],
    ['dynamodb:PutItem', 'DIGEST', ['ApprovalFlowFollowRole']],
    ['dynamodb:PutItem', 'NOTICE', ['ApprovalFlowFollowRole', 'SlackEventsRole']],
    ['dynamodb:GetItem', 'DIGEST', ['ApprovalFlowFollowRole']],
    ['dynamodb:GetItem', 'APIKEY', ['AccessApiAccessRole', 'KeyedRoutesAuthorizeRole', 'TenantSetupBootstrapRole']],
    ['dynamodb:PutItem', 'APIKEY', ['AccessApiAccessRole', 'TenantSetupBootstrapRole']],
    ['dynamodb:DeleteItem', 'APIKEY', ['AccessApiAccessRole']],
    // It records the last use of a key.
    ['dynamodb:UpdateItem', 'APIKEY', ['KeyedRoutesAuthorizeRole']],
    ['dynamodb:GetItem', 'TOKEN', ['ApprovalFlowFollowRole']],
    ['dynamodb:PutItem', 'TICKET', ['AccessApiAccessRole']],
    ['dynamodb:DeleteItem', 'TICKET', ['LiveFeedConnectionsRole']],
    ['dynamodb:PutItem', 'LIVE', ['LiveFeedConnectionsRole']],
    // Only people remove agents.
    ['dynamodb:DeleteItem', 'AGENT', ['AgentApiAgentsRole']],
    ['dynamodb:PutItem', 'LOG', ['EvidenceLogCloseDaysRole', 'EvidenceVaultSealRole']],
    [
      'dynamodb:PutItem',
      'TENANT',
      [
        'AgentApiAgentsRole',
        'DefinitionsApiDefinitionsRole',
        'PolicyApiPoliciesRole',
        'TenantSetupApiRole',
        'TenantSetupBootstrapRole',
      ],
    ],
    [
      'dynamodb:PutItem',
      'CHANGE',
      [
        'AccessApiAccessRole',
        'AgentApiAgentsRole',
        'AgentApiEnrolRole',
        'DefinitionsApiDefinitionsRole',
        'PolicyApiPoliciesRole',
        'TenantSetupApiRole',
        'TenantSetupBootstrapRole',
        'TenantSetupCredentialsRole',
      ],
    ],
    [
      'dynamodb:PutItem',
      'IDENTITY',
      ['DefinitionsApiDefinitionsRole', 'KeyedRoutesAuthorizeRole', 'TenantSetupBootstrapRole'],
    ],
    // No function may delete entries of the history. The bootstrap function, for operators only, overwrites one to erase personal data.
    ['dynamodb:DeleteItem', 'CHANGE', []],
    ['dynamodb:UpdateItem', 'CHANGE', []],
    ['dynamodb:UpdateItem', 'TENANT', []],
    ['dynamodb:UpdateItem', 'RECEIPT', []],
    ['dynamodb:DeleteItem', 'RUN', []],
    ['dynamodb:DeleteItem', 'RECEIPT', []],
  ])('%s on %s rows is granted to %j only', (action, rows, roles) => {
    const holders = statements
      .filter(({ actions, leadingKeys }) => actions.includes(action) && leadingKeys?.includes(`${rows}#*`))
      .map(({ role }) => role.replace(/[0-9A-F]{8}$/, ''));
    expect(holders.sort()).toEqual(roles);
  });

  it.each([
    // The worker signs assignments of agents, which have a payload type of their own.
    ['kms:Sign', ['EvidenceLogCloseDaysRole', 'EvidenceVaultSealRole', 'WorkerStepRole']],
    [
      's3:PutObject',
      [
        'AgentApiWorkRole',
        'ConsoleDeployRole',
        'EvidenceLogCloseDaysRole',
        'EvidenceVaultSealRole',
        // The text of a policy set, before it is published.
        'PolicyApiPoliciesRole',
      ],
    ],
    ['states:SendTaskSuccess', ['ApprovalFlowFollowRole']],
    ['states:StartExecution', ['SweepSweeperRole', 'WorkerStepRole']],
    ['secretsmanager:PutSecretValue', ['TenantSetupCredentialsRole']],
    ['secretsmanager:UpdateSecretVersionStage', ['TenantSetupCredentialsRole']],
    // Nobody but operators can create owners: no function may invoke the bootstrap function.
    ['lambda:InvokeFunction', ['ApprovalFlowMachineRole', 'HttpApiInvokeRole', 'TenantSetupApiRole', 'WorkerStepRole']],
    [
      'execute-api:ManageConnections',
      ['ApiBulkRole', 'ApiControlRole', 'LiveFeedConnectionsRole', 'LiveFeedFanOutRole', 'WorkerStepRole'],
    ],
    ['dynamodb:GetRecords', ['LiveFeedFanOutRole']],
    // It would move every tenant's messages.
    ['sqs:StartMessageMoveTask', []],
  ])('%s is granted to %j only', (action, roles) => {
    const holders = statements.filter(({ actions }) => actions.includes(action));
    expect([...new Set(holders.map(({ role }) => role.replace(/[0-9A-F]{8}$/, '')))].sort()).toEqual(roles);
  });

  it('only the function that publishes decisions can use a task token, and it can only read them', () => {
    const answering = statements.filter(({ actions }) => actions.some((action) => /^states:SendTask/.test(action)));
    expect(answering.map(({ actions }) => actions)).toEqual([['states:SendTaskSuccess']]);
    const onTokens = statements.filter(({ leadingKeys }) => leadingKeys?.includes('TOKEN#*'));
    expect(onTokens.flatMap(({ actions }) => actions).sort()).toEqual(['dynamodb:GetItem', 'dynamodb:PutItem']);
  });

  it('no function can delete or unlock evidence or change its retention', () => {
    const onS3 = statements.filter(({ actions }) => actions.some((action) => action.startsWith('s3:')));
    const ofOthers = onS3.filter(({ role }) => !isConsole(role)).flatMap(({ actions }) => actions);
    expect([...new Set(ofOthers)].sort()).toEqual(['s3:GetObject', 's3:PutObject']);
    // The files of the console are in a bucket of their own.
    const ofConsole = onS3.filter(({ role }) => isConsole(role)).flatMap(({ resources }) => resources);
    for (const resource of ofConsole) expect(resource).toMatch(/-consolebucket[0-9a-f]{8}(\/\*)?$/);
  });

  it('each function reads only the secrets that it needs', () => {
    const reads = statements.filter(({ actions }) => actions.includes('secretsmanager:GetSecretValue'));
    const purposes: Record<string, string[]> = {};
    for (const { role, resources } of reads) {
      const name = role.replace(/[0-9A-F]{8}$/, '');
      const secrets = secretsOf(resources).map(({ logicalId }) =>
        logicalId.replace(/(acme|globex|initech)?[0-9A-F]{8}$/, ''),
      );
      purposes[name] = [...new Set([...(purposes[name] ?? []), ...secrets])].sort();
    }
    expect(purposes).toEqual({
      // The confirmation of an assignment carries the token of a session that is a command.
      AgentApiWorkRole: ['SessionTokensSessionSecret'],
      ApiControlRole: ['SessionTokensSessionSecret'],
      ApiMcpRole: ['SessionTokensSessionSecret'],
      IntakeGenericRole: ['WebhookSecrets'],
      IntakeGithubRole: ['WebhookSecrets'],
      IntakeServicenowRole: ['WebhookSecrets'],
      SlackCommandsRole: ['WebhookSecrets'],
      SlackEventsRole: ['MessagingSecrets', 'WebhookSecrets'],
      SlackInteractivityRole: ['MessagingSecrets', 'WebhookSecrets'],
      ApprovalFlowHoldRole: ['MessagingSecrets'],
      ApprovalFlowFollowRole: ['MessagingSecrets'],
      WorkerStepRole: ['ConnectionSecrets', 'MessagingSecrets', 'SessionTokensSessionSecret'],
      // A plan uses credentials that can only read.
      DefinitionsApiPlanRole: ['DefinitionsApiPlanSecrets'],
      ApiBulkRole: ['KeyedRoutesCursorSecret'],
      ApiRunsRole: ['KeyedRoutesCursorSecret'],
      ApiApprovalsRole: ['KeyedRoutesCursorSecret'],
      AccessApiAccessRole: ['KeyedRoutesCursorSecret'],
      AgentApiAgentsRole: ['KeyedRoutesCursorSecret'],
      DefinitionsApiDefinitionsRole: ['KeyedRoutesCursorSecret'],
      PolicyApiPoliciesRole: ['KeyedRoutesCursorSecret'],
      TenantSetupApiRole: ['KeyedRoutesCursorSecret'],
      // It has no route.
      TenantSetupCredentialsRole: [
        'ConnectionSecrets',
        'DefinitionsApiPlanSecrets',
        'MessagingSecrets',
        'WebhookSecrets',
      ],
    });
  });

  it('no function with a public route can read the credentials of targets', () => {
    const open = [
      ...apiDefinitions(stack).flatMap(httpRoutes),
      ...socketApis(stack).flatMap(({ routes }) => [...routes.values()]),
    ].filter((route) => !('authorizerId' in route && route.authorizerId));
    const callable = open.map(({ functionArn }) => functions.find(({ arn }) => arn === functionArn));
    expect(callable.length).toBeGreaterThanOrEqual(7);
    const roles = callable.map((each) => stack.byArn(String(each?.properties.Role))?.logicalId);
    expect(roles).not.toContain(undefined);
    const ofTargets = stack
      .ofType('AWS::SecretsManager::Secret')
      .filter(({ properties }) => /\/(plan-)?connections$/.test(String(properties.Name)));
    expect(ofTargets.length).toBeGreaterThan(0);
    const readers = statements.filter(
      ({ actions, resources }) =>
        actions.some((action) => action.startsWith('secretsmanager:')) &&
        secretsOf(resources).some((secret) => ofTargets.includes(secret)),
    );
    expect(readers.map(({ role }) => role.replace(/[0-9A-F]{8}$/, '')).sort()).toEqual([
      'DefinitionsApiPlanRole',
      'TenantSetupCredentialsRole',
      'WorkerStepRole',
    ]);
    for (const { role } of readers) expect(roles).not.toContain(role);
  });

  it('the functions that create owners and read every credential have no route and no event source', () => {
    const setup = functions.filter(({ logicalId }) => /^TenantSetup(Bootstrap|Credentials)/.test(logicalId));
    expect(setup.map(({ ref }) => ref).sort()).toEqual([
      `countersign-${stage}-bootstrap`,
      `countersign-${stage}-credentials`,
    ]);
    const permitted = stack.ofType('AWS::Lambda::Permission').map(({ properties }) => properties.FunctionName);
    const invoked = statements.filter(({ actions }) => actions.includes('lambda:InvokeFunction'));
    for (const { arn, ref, logicalId } of setup) {
      expect(permitted).not.toContain(arn);
      expect(permitted).not.toContain(ref);
      const invokers = invoked.filter(({ resources }) => resources.some((each) => wildcardMatches(each, arn)));
      const expected = logicalId.startsWith('TenantSetupCredentials') ? [/^TenantSetupApiRole/] : [];
      expect(invokers.map(({ role }) => role)).toEqual(expected.map((each) => expect.stringMatching(each)));
    }
  });

  it('API Gateway may invoke exactly the functions that have routes, and the authorizer', () => {
    const invoke = statements.filter(({ role }) => role.startsWith('HttpApiInvokeRole'));
    expect(invoke.map(({ actions }) => actions)).toEqual([['lambda:InvokeFunction']]);
    const apis = apiDefinitions(stack);
    const uris = apis.flatMap(({ integrations, authorizers }) => [
      ...Object.values(integrations).map(({ uri }) => uri),
      ...Object.values(authorizers).map(({ authorizerUri }) => authorizerUri),
    ]);
    const ofSockets = stack.ofType('AWS::ApiGatewayV2::Integration').map(({ properties }) => properties.IntegrationUri);
    const called = [...uris, ...ofSockets].map((uri) => functionArnOf(String(uri)));
    expect(invoke.flatMap(({ resources }) => resources).toSorted()).toEqual(called.toSorted());
    for (const arn of called) expect(stack.byArn(arn)?.type, arn).toBe('AWS::Lambda::Function');
  });

  it('a service may invoke a function only for one resource of this stack', () => {
    const permissions = stack.ofType('AWS::Lambda::Permission');
    expect(permissions.length).toBeGreaterThan(0);
    for (const { properties } of permissions) {
      expect(properties.Action).toBe('lambda:InvokeFunction');
      expect(properties.Principal).toBe('events.amazonaws.com');
      expect(properties.SourceArn).toMatch(/^arn:aws:events:[^*]+/);
    }
  });
});
