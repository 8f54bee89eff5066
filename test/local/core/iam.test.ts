import { describe, expect, it } from 'vitest';
import { LocalS3 } from '../../../local/cloud/s3.ts';
import { HostClock } from '../../../local/host/clock.ts';
import { accessChecks } from '../../../local/iam/access-checks.ts';
import { type AccessRequest, Iam } from '../../../local/iam/iam.ts';
import { resolveTemplate, type TemplateResource } from '../../../local/template/template.ts';
import { temporaryFolder } from './small-host.ts';
import { arnOf, functionWith, type Grant, httpApi, routePermission, runsTable, template } from './small-template.ts';

const stackWith = (grants: Grant[]) =>
  resolveTemplate(template({ ...runsTable, ...functionWith('Worker', grants) }), { stackName: 'Test' });

function decide(grants: Grant[], request: Partial<AccessRequest> = {}) {
  const full = {
    roleLogicalId: 'WorkerRole',
    caller: 'Worker',
    action: 'sqs:SendMessage',
    resource: 'arn:q',
    ...request,
  };
  return new Iam(stackWith(grants)).authorize(full);
}
const allows = (grants: Grant[], request?: Partial<AccessRequest>) => decide(grants, request).allowed;

describe('a role', () => {
  it('grants only what a statement names, including wildcards', () => {
    expect(allows([{ Action: 'sqs:SendMessage', Resource: 'arn:q' }])).toBe(true);
    expect(allows([{ Action: 'sqs:Send*', Resource: 'arn:?' }])).toBe(true);
    expect(allows([{ Action: 'SQS:sendmessage', Resource: '*' }])).toBe(true);
    expect(allows([{ Action: 'sqs:SendMessage', Resource: 'arn:Q' }])).toBe(false);
    expect(allows([{ Action: 'sqs:ReceiveMessage', Resource: '*' }])).toBe(false);
    expect(allows([{ Action: 'sqs:SendMessage', Resource: 'arn.q' }], { resource: 'arnXq' })).toBe(false);
  });

  it('denies explicitly over any grant', () => {
    const grants: Grant[] = [
      { Action: 'sqs:*', Resource: '*' },
      { Effect: 'Deny', Action: 'sqs:SendMessage', Resource: 'arn:q' },
    ];
    expect(decide(grants)).toEqual({
      allowed: false,
      message: 'Worker is not authorized to perform sqs:SendMessage on arn:q: a statement denies it explicitly',
    });
    expect(allows(grants, { resource: 'arn:other' })).toBe(true);
  });

  it('that the template does not have grants nothing', () => {
    expect(allows([{ Action: '*', Resource: '*' }], { roleLogicalId: 'Absent' })).toBe(false);
  });

  it('has the permissions of its own policies, too', () => {
    const PolicyDocument = { Statement: [{ Effect: 'Allow', Action: 'sqs:SendMessage', Resource: 'arn:q' }] };
    const R = { Type: 'AWS::IAM::Role', Properties: { Policies: [{ PolicyName: 'p', PolicyDocument }] } };
    const iam = new Iam(resolveTemplate(template({ R }), { stackName: 'Test' }));
    const may = (action: string) =>
      iam.authorize({ roleLogicalId: 'R', caller: 'F', action, resource: 'arn:q' }).allowed;
    expect([may('sqs:SendMessage'), may('sqs:ReceiveMessage')]).toEqual([true, false]);
  });

  it('with a managed policy stops the start, because nobody here knows what it allows', () => {
    const R = { Type: 'AWS::IAM::Role', Properties: { ManagedPolicyArns: ['arn:aws:iam::aws:policy/Admin'] } };
    const stack = resolveTemplate(template({ R }), { stackName: 'Test' });
    expect(() => new Iam(stack)).toThrow('R: the local host does not support ManagedPolicyArns');
  });

  describe('of a bucket', () => {
    const bucketWith = (Statement: object[]) =>
      new Iam(
        resolveTemplate(
          template({
            P: { Type: 'AWS::S3::BucketPolicy', Properties: { Bucket: 'b', PolicyDocument: { Statement } } },
          }),
          { stackName: 'Test' },
        ),
      );
    const writeOnce = {
      Effect: 'Deny',
      Principal: { AWS: '*' },
      Action: 's3:PutObject',
      Resource: 'arn:aws:s3:::b/*',
      Condition: { Null: { 's3:if-none-match': 'true' } },
    };
    const put = { action: 's3:PutObject', resource: 'arn:aws:s3:::b/key' };

    it('denies its actions to every caller, and nothing else', () => {
      const iam = bucketWith([writeOnce]);
      expect(iam.deniedByBucket(put)).toBe('the bucket policy denies s3:PutObject on arn:aws:s3:::b/key');
      expect(iam.deniedByBucket({ ...put, context: { 's3:if-none-match': '*' } })).toBeUndefined();
      expect(iam.deniedByBucket({ ...put, action: 's3:GetObject' })).toBeUndefined();
      expect(iam.deniedByBucket({ ...put, resource: 'arn:aws:s3:::other/key' })).toBeUndefined();
    });

    it('accepts the loopback interface where it requires TLS', () => {
      const tls = { Effect: 'Deny', Principal: { AWS: '*' }, Action: 's3:*', Resource: 'arn:aws:s3:::b/*' };
      const Condition = { Bool: { 'aws:SecureTransport': 'false' } };
      expect(bucketWith([{ ...tls, Condition }]).deniedByBucket(put)).toBeUndefined();
    });

    it('that denies something to some principals stops the start', () => {
      expect(() => bucketWith([{ ...writeOnce, Principal: { AWS: 'arn:aws:iam::1:user/x' } }])).toThrow(
        /for every principal/,
      );
    });
  });

  it('with NotAction or NotResource stops the start', () => {
    const inverted = { NotAction: 'iam:*', Action: [], Resource: '*' } as Grant;
    expect(() => decide([inverted])).toThrow('WorkerRole: the local host does not support NotAction');
  });

  it('lists the grants that no call has used', () => {
    const iam = new Iam(
      stackWith([
        { Action: ['dynamodb:PutItem', 'dynamodb:DeleteItem'], Resource: arnOf('Runs') },
        { Action: 'xray:PutTraceSegments', Resource: '*' },
      ]),
    );
    const resource = 'arn:aws:dynamodb:us-east-1:000000000000:table/Test-Runs';
    iam.authorize({ roleLogicalId: 'WorkerRole', caller: 'Worker', action: 'dynamodb:PutItem', resource });
    expect(iam.unusedGrants()).toEqual([{ role: 'WorkerRole', action: 'dynamodb:DeleteItem', resources: [resource] }]);
  });
});

describe('a condition', () => {
  const given = (Condition: Grant['Condition'], context: AccessRequest['context'], Effect: Grant['Effect'] = 'Allow') =>
    allows(
      [
        { Effect, Action: '*', Resource: '*', Condition },
        ...(Effect === 'Deny' ? [{ Action: '*', Resource: '*' }] : []),
      ],
      { context },
    );
  const keys = 'dynamodb:LeadingKeys';

  it('ForAllValues requires every value to match, and is true without a value, as in AWS', () => {
    expect(given({ 'ForAllValues:StringLike': { [keys]: ['a*', 'c*'] } }, { [keys]: ['a1', 'c1'] })).toBe(true);
    expect(given({ 'ForAllValues:StringLike': { [keys]: 'a*' } }, { [keys]: ['a1', 'b1'] })).toBe(false);
    expect(given({ 'ForAllValues:StringLike': { [keys]: 'a*' } }, {})).toBe(true);
    expect(given({ 'ForAllValues:StringLike': { [keys]: 'a*' }, Null: { [keys]: 'false' } }, {})).toBe(false);
  });

  it('compares booleans', () => {
    expect(given({ Bool: { 'aws:SecureTransport': 'true' } }, {})).toBe(true);
    expect(given({ Bool: { 'aws:SecureTransport': 'false' } }, {}, 'Deny')).toBe(true);
    expect(given({ Bool: { 'aws:SecureTransport': 'true' } }, {}, 'Deny')).toBe(false);
  });

  it('with an unknown operator or key never allows a call', () => {
    expect(given({ StringEquals: { [keys]: 'a' } }, { [keys]: 'a' })).toBe(false);
    expect(given({ StringNotEquals: { [keys]: 'b' } }, { [keys]: 'a' }, 'Deny')).toBe(false);
    expect(given({ Bool: { 'aws:PrincipalTag/team': 'a' } }, {})).toBe(false);
    expect(given({ Bool: { 'aws:PrincipalTag/team': 'a' } }, {}, 'Deny')).toBe(false);
    const decision = decide([{ Action: '*', Resource: '*', Condition: { Bool: { 'aws:PrincipalTag/team': 'a' } } }]);
    expect(decision).toMatchObject({
      message: expect.stringContaining('does not support the condition key aws:PrincipalTag/team'),
    });
  });
});

describe('a call', () => {
  const stack = stackWith([]);
  const actionsOf = (service: string, operation: string, input: Record<string, unknown>) =>
    accessChecks(service, operation, input, stack).map(({ action, resource }) => [
      action,
      String(resource).replace(/^arn:aws:[^:]*:us-east-1:000000000000:/, ''),
    ]);

  it('needs the actions that AWS documents for its operation', () => {
    const TableName = 'Test-Runs';
    expect(actionsOf('dynamodb', 'Scan', { TableName, IndexName: 'byOwner' })).toEqual([
      ['dynamodb:Scan', 'table/Test-Runs/index/byOwner'],
    ]);
    const TransactItems = [{ Put: { TableName } }, { Update: { TableName } }, { Delete: { TableName } }];
    expect(actionsOf('dynamodb', 'TransactWriteItems', { TransactItems }).map(([action]) => action)).toEqual(
      ['PutItem', 'UpdateItem', 'DeleteItem'].map((name) => `dynamodb:${name}`),
    );
    expect(actionsOf('dynamodb', 'BatchGetItem', { RequestItems: { a: { Keys: [] }, b: { Keys: [] } } })).toEqual([
      ['dynamodb:BatchGetItem', 'table/a'],
      ['dynamodb:BatchGetItem', 'table/b'],
    ]);
    const QueueUrl = 'http://127.0.0.1:1/0/work';
    expect(actionsOf('sqs', 'SendMessageBatch', { QueueUrl })).toEqual([['sqs:SendMessage', 'work']]);
    expect(actionsOf('states', 'DescribeExecution', { executionArn: 'arn:e' })).toEqual([
      ['states:DescribeExecution', 'arn:e'],
    ]);
  });

  it.each(['BatchWriteItem', 'TransactGetItems', 'ExecuteStatement'])('of %s is refused', (operation) => {
    expect(() => accessChecks('dynamodb', operation, {}, stack)).toThrow(`does not support ${operation}`);
  });

  it('of S3 needs the action of its operation, and of its version', () => {
    const folder = temporaryFolder();
    const s3 = new LocalS3({ dataFolder: folder.path, clock: new HostClock(folder.path), buckets: [] });
    const checks = (method: string, query = '', headers: Record<string, string> = {}) =>
      s3.describe({ method, path: '/b/k', query: new URLSearchParams(query), headers, body: Buffer.alloc(0) }).checks;
    const resource = 'arn:aws:s3:::b/k';
    expect(checks('HEAD')).toEqual([{ action: 's3:GetObject', resource, context: {} }]);
    expect(checks('DELETE')).toEqual([{ action: 's3:DeleteObject', resource, context: {} }]);
    expect(checks('DELETE', 'versionId=1')).toEqual([{ action: 's3:DeleteObjectVersion', resource, context: {} }]);
    expect(checks('PUT', '', { 'if-none-match': '*' })).toEqual([
      { action: 's3:PutObject', resource, context: { 's3:if-none-match': '*' } },
    ]);
    s3.close();
    folder.remove();
  });
});

describe('a Lambda permission', () => {
  const stack = resolveTemplate(
    template({
      ...functionWith('Worker'),
      ...httpApi([{ routeKey: 'GET /runs/{id}', to: 'Worker' }]),
      ...routePermission('Worker', 'GET /runs/{id}'),
    }),
    { stackName: 'Test' },
  );
  const root = `arn:aws:execute-api:us-east-1:000000000000:${stack.resources.get('Api')?.ref}`;
  const may = (principal: string, sourceArn: string) =>
    new Iam(stack).mayInvoke(stack.resources.get('Worker')?.arn ?? '', { principal, sourceArn });

  it('lets its principal invoke for its source only', () => {
    expect(may('apigateway.amazonaws.com', `${root}/$default/GET/runs/{id}`)).toEqual({ allowed: true });
    expect(may('apigateway.amazonaws.com', `${root}/$default/GET/other`).allowed).toBe(false);
    expect(may('events.amazonaws.com', `${root}/$default/GET/runs/{id}`)).toEqual({
      allowed: false,
      message: `events.amazonaws.com is not authorized to perform lambda:InvokeFunction on Worker for ${root}/$default/GET/runs/{id}: no AWS::Lambda::Permission grants it`,
    });
  });
});

describe('a role of API Gateway', () => {
  const roleFor = (Service: string, functions: string[]): Record<string, TemplateResource> => ({
    InvokeRole: {
      Type: 'AWS::IAM::Role',
      Properties: {
        AssumeRolePolicyDocument: {
          Statement: [{ Effect: 'Allow', Action: 'sts:AssumeRole', Principal: { Service } }],
        },
        Policies: functions.map((name) => ({
          PolicyDocument: { Statement: [{ Effect: 'Allow', Action: 'lambda:InvokeFunction', Resource: arnOf(name) }] },
        })),
      },
    },
  });
  const may = (role: Record<string, TemplateResource>) => {
    const stack = resolveTemplate(template({ ...functionWith('Worker'), ...functionWith('Other'), ...role }), {
      stackName: 'Test',
    });
    const invoker = { principal: 'apigateway.amazonaws.com', sourceArn: 'arn:any' };
    const roleArn = stack.resources.get('InvokeRole')?.arn ?? '';
    return new Iam(stack).mayInvoke(stack.resources.get('Worker')?.arn ?? '', { ...invoker, roleArn });
  };

  it('allows it to invoke the functions that the role names, if it may assume the role', () => {
    expect(may(roleFor('apigateway.amazonaws.com', ['Worker']))).toEqual({ allowed: true });
    expect(may(roleFor('apigateway.amazonaws.com', ['Other']))).toMatchObject({
      message: expect.stringContaining('no statement of its role grants it'),
    });
    expect(may(roleFor('lambda.amazonaws.com', ['Worker']))).toMatchObject({
      message: expect.stringContaining('apigateway.amazonaws.com is not authorized to assume the role'),
    });
    expect(may({})).toMatchObject({ allowed: false });
  });
});
