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

/** A role, its policy as CDK writes it (a resource of its own), and the function that has it. */
export function functionWith(
  logicalId: string,
  grants: Grant[] = [],
  properties: Record<string, unknown> = {},
): Record<string, TemplateResource> {
  const statements = grants.map((grant) => ({ Effect: 'Allow', ...grant }));
  return {
    [`${logicalId}Role`]: { Type: 'AWS::IAM::Role' },
    [`${logicalId}Policy`]: {
      Type: 'AWS::IAM::Policy',
      Properties: { PolicyDocument: { Statement: statements }, Roles: [{ Ref: `${logicalId}Role` }] },
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

/** An HTTP route to a function, with the permission that lets API Gateway invoke it. */
export function routeTo(
  functionLogicalId: string,
  routeKey: string,
  { authorizer, permitted = true }: { authorizer?: string; permitted?: boolean } = {},
): Record<string, TemplateResource> {
  const name = `Route${routeKey.replace(/\W/g, '')}`;
  return {
    [name]: {
      Type: 'AWS::ApiGatewayV2::Route',
      Properties: {
        ApiId: { Ref: 'Api' },
        RouteKey: routeKey,
        Target: { 'Fn::Join': ['', ['integrations/', { Ref: `${name}Integration` }]] },
        ...(authorizer ? { AuthorizationType: 'CUSTOM', AuthorizerId: { Ref: authorizer } } : {}),
      },
    },
    [`${name}Integration`]: {
      Type: 'AWS::ApiGatewayV2::Integration',
      Properties: {
        ApiId: { Ref: 'Api' },
        IntegrationType: 'AWS_PROXY',
        IntegrationUri: arnOf(functionLogicalId),
        PayloadFormatVersion: '2.0',
      },
    },
    ...(permitted
      ? apiPermission(`${name}Permission`, functionLogicalId, ['/*/*/', routeKey.split('/').slice(1).join('/')])
      : {}),
  };
}

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

export const httpApi: Record<string, TemplateResource> = {
  Api: { Type: 'AWS::ApiGatewayV2::Api', Properties: { Name: 'api', ProtocolType: 'HTTP' } },
};
