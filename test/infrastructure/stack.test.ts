import { createRequire } from 'node:module';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
import { CONTRACT } from '../../lambdas/api/contract/index.ts';
import { routeKey } from '../../lambdas/api/contract/route.ts';
import { INDEXES, TTL_ATTRIBUTE } from '../../lambdas/run/dynamo/dynamo-keys.ts';
import { LEASE_DURATION_MS, QUARANTINE_MS, WORKER_TIMEOUT_MS } from '../../lambdas/run/lease.ts';
import { RESERVING_FUNCTIONS } from '../../lib/stage-config.ts';
import { apiDefinitions, httpRoutes } from '../../local/api-gateway/http-routes.ts';
import { allRoutes } from '../api/every-route.ts';
import { STAGES, synthesized } from './synthesized.ts';

const VISIBILITY_PER_TIMEOUT = 6;

/** The resources that a part of a template refers to. */
function dependenciesOf(part: unknown): string[] {
  if (Array.isArray(part)) return part.flatMap(dependenciesOf);
  if (typeof part !== 'object' || part === null) return [];
  const { Ref, 'Fn::GetAtt': attribute, DependsOn = [], ...rest } = part as Record<string, unknown>;
  const named = [Ref, [attribute].flat()[0], ...[DependsOn].flat()].filter((each) => typeof each === 'string');
  return [...named, ...Object.values(rest).flatMap(dependenciesOf)];
}

describe.each(STAGES)('in stage %s', (stage) => {
  const { template, stack, properties } = synthesized(stage);
  const prod = stage === 'acme-prod';
  const cdk = Template.fromJSON(template as Record<string, unknown>);
  const [httpApi, ...otherApis] = apiDefinitions(stack);
  const routes = httpApi ? httpRoutes(httpApi) : [];
  const isOfQueue = ({ EventSourceArn }: Record<string, unknown>) => String(EventSourceArn).includes(':sqs:');

  it('the HTTP API has the routes of the contract and no others; only these require no credential', () => {
    expect(otherApis).toEqual([]);
    expect(routes.map((route) => route.routeKey).toSorted()).toEqual(
      allRoutes.map(({ route }) => routeKey(route)).toSorted(),
    );
    const open = routes.filter(({ authorizerId }) => authorizerId === undefined);
    expect(open.map((route) => route.routeKey).toSorted()).toEqual([
      'GET /.well-known/countersign-keys.json',
      'GET /.well-known/oauth-protected-resource',
      'GET /.well-known/oauth-protected-resource/mcp',
      'GET /api/v1/runs/{id}/actions/{actionId}',
      'GET /api/v1/sign-in',
      'GET /docs',
      'GET /docs/{file}',
      'GET /healthz',
      'GET /openapi.json',
      'POST /api/v1/agent/enrol',
      'POST /api/v1/agent/heartbeat',
      'POST /api/v1/agent/register',
      'POST /api/v1/agent/{id}/ack',
      'POST /api/v1/agent/{id}/complete-step',
      'POST /api/v1/agent/{id}/drain',
      'POST /api/v1/agent/{id}/output',
      'POST /api/v1/agent/{id}/unregister',
      'POST /api/v1/runs/{id}/actions',
      'POST /api/v1/runs/{id}/complete',
      'POST /api/v1/runs/{id}/heartbeat',
      'POST /slack/commands',
      'POST /slack/events',
      'POST /slack/interactivity',
      'POST /webhooks/generic/{tenant}/{source}',
      'POST /webhooks/github/{tenant}',
      'POST /webhooks/servicenow/{tenant}',
    ]);
  });

  it('the definition of the HTTP API is a valid OpenAPI document, and no route is a resource of its own', async () => {
    const { Body, ...others } = stack.resources.get(httpApi?.logicalId ?? '')?.properties ?? {};
    expect(others).toEqual({});
    const source = JSON.stringify(Body);
    const config = await createConfig({
      rules: { struct: 'error', 'path-parameters-defined': 'error', 'no-unresolved-refs': 'error' },
    });
    expect(await lintFromString({ source, config })).toEqual([]);
    // API Gateway cannot combine a definition with resources: all of these belong to the live feed.
    const ofApi = ({ ApiId }: Record<string, unknown>) => ApiId === httpApi?.apiId;
    for (const type of ['Route', 'Integration', 'Authorizer']) {
      expect(properties(`AWS::ApiGatewayV2::${type}`).filter(ofApi)).toEqual([]);
    }
  });

  it('documentation, agents and MCP clients have limits of their own, and the stage comes after their routes', () => {
    const keys = allRoutes.map(({ route }) => routeKey(route));
    const docs = keys.filter((key) => /docs|openapi|\/agent\/|mcp|oauth/.test(key));
    const api = stack.ofType('AWS::ApiGatewayV2::Stage').find(({ properties: { ApiId } }) => ApiId === httpApi?.apiId);
    const settings = api?.properties.RouteSettings as Record<string, { ThrottlingRateLimit: number }>;
    expect(Object.keys(settings).toSorted()).toEqual(docs.toSorted());
    expect(dependenciesOf(template.Resources?.[api?.logicalId ?? ''])).toContain(httpApi?.logicalId);
  });

  it('Lambda logs no line for each invocation, and our lines from INFO on', () => {
    for (const { properties } of stack.ofType('AWS::Lambda::Function')) {
      expect(properties.LoggingConfig).toMatchObject({
        LogFormat: 'JSON',
        SystemLogLevel: 'WARN',
        ApplicationLogLevel: 'INFO',
      });
    }
  });

  it('no resource depends on itself, directly or through others', () => {
    const resources = template.Resources ?? {};
    const open = new Set<string>();
    const done = new Set<string>();
    const visit = (id: string): void => {
      expect(open, `a cycle through ${id}`).not.toContain(id);
      if (done.has(id)) return;
      open.add(id);
      for (const other of dependenciesOf(resources[id])) if (other in resources) visit(other);
      open.delete(id);
      done.add(id);
    };
    for (const id of Object.keys(resources)) visit(id);
    expect(done.size).toBeGreaterThan(150);
  });

  it('a function has one integration and no permission of its own', () => {
    expect(Object.keys(httpApi?.integrations ?? {}).toSorted()).toEqual(Object.keys(CONTRACT).toSorted());
    const invokers = properties('AWS::Lambda::Permission').map(({ Principal }) => Principal);
    expect(new Set(invokers)).toEqual(new Set(['events.amazonaws.com']));
  });

  it('each group of the contract has its routes, with its authorization, at one function of its own', () => {
    const deployed = routes.map(({ routeKey: key, authorizerId, functionArn }) => ({
      key,
      keyed: authorizerId !== undefined,
      handler: stack.byArn(functionArn)?.logicalId,
    }));
    const handlers = new Map<string, Set<string | undefined>>();
    for (const { group, route } of allRoutes) {
      const found = deployed.find(({ key }) => key === routeKey(route));
      expect(found).toMatchObject({ keyed: route.right !== 'public' && route.right !== 'signed' });
      handlers.set(group, (handlers.get(group) ?? new Set()).add(found?.handler));
    }
    expect([...handlers.values()].every(({ size }) => size === 1)).toBe(true);
    expect(new Set([...handlers.values()].flatMap((each) => [...each])).size).toBe(handlers.size);
  });

  it('authorizer results are not cached, so a deleted person has no rights from the next request on', () => {
    const authorizers = Object.values(httpApi?.authorizers ?? {});
    expect(authorizers.map((each) => each.authorizerResultTtlInSeconds)).toEqual([0]);
  });

  it('the authorizer has no identity source: callers have a key or a token', () => {
    expect(Object.values(httpApi?.authorizers ?? {}).map((each) => each.identitySource)).toEqual([undefined]);
  });

  it('a stage sets how long a new right to approve does not count; the default in prod is a day', () => {
    cdk.hasResourceProperties('AWS::Lambda::Function', {
      Environment: {
        Variables: Match.objectLike({ APPROVER_COOL_DOWN_HOURS: stage.endsWith('prod') ? '24' : '0' }),
      },
    });
  });

  it('the run table is on demand, with its keys, its indexes and its time to live', () => {
    cdk.hasResourceProperties('AWS::DynamoDB::GlobalTable', {
      BillingMode: 'PAY_PER_REQUEST',
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
      GlobalSecondaryIndexes: Match.arrayWith(
        Object.values(INDEXES).map(({ name, partition, sort }) => ({
          IndexName: name,
          KeySchema: [
            { AttributeName: partition, KeyType: 'HASH' },
            { AttributeName: sort, KeyType: 'RANGE' },
          ],
          Projection: { ProjectionType: 'KEYS_ONLY' },
        })),
      ),
      TimeToLiveSpecification: { AttributeName: TTL_ATTRIBUTE, Enabled: true },
    });
  });

  it(`the run table is ${prod ? '' : 'not '}protected from deletion and recoverable to any second`, () => {
    cdk.hasResource('AWS::DynamoDB::GlobalTable', {
      DeletionPolicy: prod ? 'Retain' : 'Delete',
      UpdateReplacePolicy: prod ? 'Retain' : 'Delete',
      Properties: {
        Replicas: [
          Match.objectLike({
            DeletionProtectionEnabled: prod,
            PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: prod },
          }),
        ],
      },
    });
  });

  it(`evidence is locked for ${prod ? 'seven years, even from administrators' : 'a day'}, and retained when the stack is deleted`, () => {
    cdk.hasResource('AWS::S3::Bucket', {
      DeletionPolicy: 'Retain',
      Properties: {
        ObjectLockEnabled: true,
        ObjectLockConfiguration: {
          ObjectLockEnabled: 'Enabled',
          Rule: { DefaultRetention: prod ? { Mode: 'COMPLIANCE', Days: 2555 } : { Mode: 'GOVERNANCE', Days: 1 } },
        },
        VersioningConfiguration: { Status: 'Enabled' },
      },
    });
    cdk.hasResource('AWS::KMS::Key', { DeletionPolicy: prod ? 'Retain' : 'Delete' });
  });

  it('evidence can only be written if no object of that name exists', () => {
    const [bucket] = Object.keys(cdk.findResources('AWS::S3::Bucket', { Properties: { ObjectLockEnabled: true } }));
    cdk.hasResourceProperties('AWS::S3::BucketPolicy', {
      Bucket: { Ref: bucket },
      PolicyDocument: Match.objectLike({
        Statement: Match.arrayWith([
          {
            Sid: 'WriteOnce',
            Effect: 'Deny',
            Principal: { AWS: '*' },
            Action: 's3:PutObject',
            Resource: { 'Fn::Join': ['', [{ 'Fn::GetAtt': [bucket, 'Arn'] }, '/*']] },
            Condition: { Null: { 's3:if-none-match': 'true' } },
          },
        ]),
      }),
    });
  });

  it('an invocation seals up to ten runs that ended within the window of the stage', () => {
    const seal = stack
      .ofType('AWS::Lambda::Function')
      .find(({ logicalId }) => logicalId.startsWith('EvidenceVaultSeal'));
    const mappings = properties('AWS::Lambda::EventSourceMapping').filter(isOfQueue);
    expect(mappings.filter(({ FunctionName }) => FunctionName === seal?.ref)).toMatchObject([{ BatchSize: 10 }]);
    const [{ MaximumBatchingWindowInSeconds: window = 0 } = {}] = mappings.filter(
      ({ FunctionName }) => FunctionName === seal?.ref,
    );
    expect(window).toBe(stage === 'local' ? 0 : 20);
  });

  it('no bucket is public or accepts requests without TLS', () => {
    const closed = {
      BlockPublicAcls: true,
      BlockPublicPolicy: true,
      IgnorePublicAcls: true,
      RestrictPublicBuckets: true,
    };
    cdk.allResourcesProperties('AWS::S3::Bucket', { PublicAccessBlockConfiguration: closed });
    cdk.allResourcesProperties('AWS::S3::BucketPolicy', {
      PolicyDocument: Match.objectLike({
        Statement: Match.arrayWith([
          Match.objectLike({ Effect: 'Deny', Condition: { Bool: { 'aws:SecureTransport': 'false' } } }),
        ]),
      }),
    });
  });

  it('consumers of queues report single failures, and messages that keep failing go to a dead-letter queue', () => {
    const mappings = properties('AWS::Lambda::EventSourceMapping').filter(isOfQueue);
    expect(mappings).toHaveLength(3);
    for (const { EventSourceArn, FunctionResponseTypes } of mappings) {
      expect(FunctionResponseTypes).toEqual(['ReportBatchItemFailures']);
      const redrive = stack.byArn(String(EventSourceArn))?.properties.RedrivePolicy as { deadLetterTargetArn: string };
      const deadLetters = stack.byArn(redrive.deadLetterTargetArn);
      expect(deadLetters?.type).toBe('AWS::SQS::Queue');
      // People read dead letters, so they must be retained for longer than a long weekend.
      expect(deadLetters?.properties.MessageRetentionPeriod).toBe(14 * 24 * 3600);
    }
  });

  it('the visibility timeout of a message is six times the timeout of its consumer, and the batch window', () => {
    for (const { EventSourceArn, FunctionName, MaximumBatchingWindowInSeconds = 0 } of properties(
      'AWS::Lambda::EventSourceMapping',
    ).filter(isOfQueue)) {
      const consumer = stack.ofType('AWS::Lambda::Function').find(({ ref }) => ref === FunctionName);
      const visibility = Number(stack.byArn(String(EventSourceArn))?.properties.VisibilityTimeout);
      const recommended = VISIBILITY_PER_TIMEOUT * Number(consumer?.properties.Timeout);
      expect(visibility).toBeGreaterThanOrEqual(recommended + Number(MaximumBatchingWindowInSeconds));
    }
  });

  it('a lease lasts longer than its worker can run', () => {
    const worker = stack.ofType('AWS::Lambda::Function').find(({ logicalId }) => logicalId.startsWith('WorkerStep'));
    expect(Number(worker?.properties.Timeout) * 1000).toBe(WORKER_TIMEOUT_MS);
    expect(QUARANTINE_MS).toBeGreaterThan(WORKER_TIMEOUT_MS);
    expect(LEASE_DURATION_MS).toBeGreaterThanOrEqual(QUARANTINE_MS);
  });

  it('the approval state machine is valid and durable, and logs no task tokens', () => {
    const [machine] = properties('AWS::StepFunctions::StateMachine');
    const validate = createRequire(import.meta.url)('asl-validator') as (definition: object) => { isValid: boolean };
    const definition = JSON.parse(String(machine?.DefinitionString));
    expect(validate(definition)).toMatchObject({ isValid: true });
    const broken = { ...definition, StartAt: 'Nowhere' };
    expect(validate(broken)).toMatchObject({ isValid: false });
    expect(machine?.StateMachineType).toBe('STANDARD');
    expect(machine?.LoggingConfiguration).toMatchObject({ IncludeExecutionData: false });
  });

  it('every function runs Node.js 24 on arm64 and has its own log group with a retention; those of the live feed share one', () => {
    const groups = properties('AWS::Lambda::Function').map(({ Runtime, Architectures, LoggingConfig }) => {
      expect([Runtime, Architectures]).toEqual(['nodejs24.x', ['arm64']]);
      return (LoggingConfig as { LogGroup: string }).LogGroup;
    });
    expect(new Set(groups).size).toBe(groups.length - 1);
    expect(groups.filter((name) => name.includes('LiveFeedConnectionsLog'))).toHaveLength(2);
    cdk.allResourcesProperties('AWS::Logs::LogGroup', { RetentionInDays: 30 });
  });

  it('no secret is in the template or in the environment of a function', () => {
    const text = JSON.stringify(template);
    for (const known of ['local-github-secret', 'local-servicenow', 'xoxb', 'local-owner-key']) {
      expect(text).not.toContain(known);
    }
    cdk.allResourcesProperties('AWS::SecretsManager::Secret', { GenerateSecretString: Match.anyValue() });
  });

  it('intake functions have reserved concurrency, so busy workers cannot block deliveries', () => {
    const reserved = stack
      .ofType('AWS::Lambda::Function')
      .filter(({ properties }) => properties.ReservedConcurrentExecutions !== undefined)
      .map(({ logicalId, properties }) => [logicalId.slice(0, -8), properties.ReservedConcurrentExecutions]);
    expect(Object.fromEntries(reserved)).toEqual({
      IntakeGeneric: 25,
      IntakeGithub: 25,
      IntakeServicenow: 25,
      SlackInteractivity: 25,
      // A sync that is delayed loses leases.
      AgentApiWork: 25,
    });
    // The limit on workers counts them: otherwise a stage passes its checks, and CloudFormation refuses it.
    expect(reserved).toHaveLength(RESERVING_FUNCTIONS);
  });

  it('the dashboard has the five questions of an operator, and the errors of every function', () => {
    const [dashboard] = properties('AWS::CloudWatch::Dashboard');
    expect(dashboard?.DashboardName).toBe(`countersign-${stage}`);
    const { widgets } = JSON.parse(String(dashboard?.DashboardBody)) as {
      widgets: { properties: { title?: string; markdown?: string; metrics?: unknown[][]; alarms?: string[] } }[];
    };
    expect(widgets.flatMap(({ properties: { markdown } }) => markdown ?? [])).toEqual([
      '## Is it healthy?',
      '## Are people the bottleneck?',
      '## Are the targets the bottleneck?',
      '## What do the agents do?',
      '## What does it cost?',
    ]);
    const shown = (title: string) => widgets.find(({ properties: widget }) => widget.title === title)?.properties;
    expect(shown('Errors of functions')?.metrics).toHaveLength(
      properties('AWS::Lambda::Function').filter(({ Handler }) => Handler === 'index.handler').length,
    );
    const notifying = [...properties('AWS::CloudWatch::Alarm'), ...properties('AWS::CloudWatch::CompositeAlarm')];
    expect(shown('Alarms')?.alarms).toHaveLength(notifying.filter(({ AlarmActions }) => AlarmActions).length);
    for (const { properties: widget } of widgets) expect(widget.metrics ?? widget.alarms).not.toEqual([]);
  });

  it('the sweeper runs every minute', () => {
    cdk.hasResourceProperties('AWS::Events::Rule', { ScheduleExpression: 'rate(1 minute)', State: 'ENABLED' });
  });

  it('the stack has outputs with plain names', () => {
    expect(Object.keys(template.Outputs ?? {})).toEqual(
      expect.arrayContaining(['Url', 'KeysUrl', 'SigningKeyArn', 'EvidenceBucketName', 'ExportBucketName']),
    );
    expect(Object.keys(template.Outputs ?? {}).filter((name) => /[0-9A-F]{8}$/.test(name))).toEqual([]);
  });
});
