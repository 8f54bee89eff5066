import type { CloudFormationTemplate, TemplateResource } from '../../../local/template/template.ts';

/** Small parts of a template for tests. */

export function template(Resources: Record<string, TemplateResource>): CloudFormationTemplate {
  return { Resources };
}

export const arnOf = (logicalId: string) => ({ 'Fn::GetAtt': [logicalId, 'Arn'] });

export interface Grant {
  Action: string | string[];
  Resource: unknown;
  Effect?: 'Allow' | 'Deny';
  Condition?: Record<string, Record<string, unknown>>;
}

/** A role with its policy, and the function that has it. */
export function functionWith(
  logicalId: string,
  grants: Grant[] = [],
  properties: Record<string, unknown> = {},
): Record<string, TemplateResource> {
  const statements = grants.map((grant) => ({ Effect: 'Allow', ...grant }));
  return {
    [`${logicalId}Role`]: {
      Type: 'AWS::IAM::Role',
      Properties: { Policies: [{ PolicyDocument: { Statement: statements } }] },
    },
    [logicalId]: {
      Type: 'AWS::Lambda::Function',
      Properties: { Handler: 'index.handler', Role: arnOf(`${logicalId}Role`), ...properties },
    },
  };
}

export const runsTable: Record<string, TemplateResource> = {
  Runs: {
    Type: 'AWS::DynamoDB::GlobalTable',
    Properties: {
      AttributeDefinitions: ['pk', 'sk', 'owner'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
      GlobalSecondaryIndexes: [
        {
          IndexName: 'byOwner',
          KeySchema: [{ AttributeName: 'owner', KeyType: 'HASH' }],
          Projection: { ProjectionType: 'ALL' },
        },
      ],
    },
  },
};

interface SmallRoute {
  routeKey: string;
  /** The logical id of the function. */
  to: string;
  authorizer?: string;
  integration?: Record<string, unknown>;
}

const invocationUri = (functionLogicalId: string) => ({
  'Fn::Join': [
    '',
    ['arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/', arnOf(functionLogicalId), '/invocations'],
  ],
});

/** An HTTP API with these routes, and authorizers by name with their functions and settings. */
export function httpApi(
  routes: readonly SmallRoute[],
  authorizers: Record<string, { function: string; settings?: Record<string, unknown> }> = {},
): Record<string, TemplateResource> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const { routeKey, to, authorizer, integration } of routes) {
    const [method = '', path = ''] = routeKey.split(' ');
    paths[path] = {
      ...paths[path],
      [method.toLowerCase()]: {
        'x-amazon-apigateway-integration': {
          type: 'aws_proxy',
          uri: invocationUri(to),
          payloadFormatVersion: '2.0',
          ...integration,
        },
        ...(authorizer && { security: [{ [authorizer]: [] }] }),
      },
    };
  }
  const securitySchemes = Object.entries(authorizers).map(([name, { function: logicalId, settings }]) => [
    name,
    {
      'x-amazon-apigateway-authorizer': {
        type: 'request',
        authorizerUri: invocationUri(logicalId),
        authorizerPayloadFormatVersion: '2.0',
        authorizerResultTtlInSeconds: 0,
        enableSimpleResponses: true,
        ...settings,
      },
    },
  ]);
  const components = { securitySchemes: Object.fromEntries(securitySchemes) };
  return { Api: { Type: 'AWS::ApiGatewayV2::Api', Properties: { Body: { paths, components } } } };
}

/** Lets API Gateway invoke the function for a route. */
export const routePermission = (functionLogicalId: string, routeKey: string) =>
  apiPermission(`${functionLogicalId}${routeKey.replace(/\W/g, '')}Permission`, functionLogicalId, [
    '/*/*/',
    routeKey.split('/').slice(1).join('/'),
  ]);

export function apiPermission(
  logicalId: string,
  functionLogicalId: string,
  suffix: unknown[],
): Record<string, TemplateResource> {
  const region = { Ref: 'AWS::Region' };
  const account = { Ref: 'AWS::AccountId' };
  return {
    [logicalId]: {
      Type: 'AWS::Lambda::Permission',
      Properties: {
        Action: 'lambda:InvokeFunction',
        FunctionName: arnOf(functionLogicalId),
        Principal: 'apigateway.amazonaws.com',
        SourceArn: { 'Fn::Join': ['', ['arn:aws:execute-api:', region, ':', account, ':', { Ref: 'Api' }, ...suffix]] },
      },
    },
  };
}
