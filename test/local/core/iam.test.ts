import { describe, expect, it } from 'vitest';
import { accessChecks, s3Checks } from '../../../local/iam/access-checks.ts';
import { type AccessRequest, Iam } from '../../../local/iam/iam.ts';
import { resolveTemplate } from '../../../local/template/template.ts';
import { arnOf, functionWith, type Grant, httpApi, routeTo, runsTable, template } from './small-template.ts';

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
  it('grants only what a statement names, wildcards included', () => {
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

  it('reads inline policies too', () => {
    const PolicyDocument = { Statement: { Effect: 'Allow', Action: 'sqs:SendMessage', Resource: 'arn:q' } };
    const resources = {
      R: { Type: 'AWS::IAM::Role', Properties: { Policies: [{ PolicyName: 'p', PolicyDocument }] } },
    };
    const iam = new Iam(resolveTemplate(template(resources), { stackName: 'Test' }));
    expect(iam.authorize({ roleLogicalId: 'R', action: 'sqs:SendMessage', resource: 'arn:q' }).allowed).toBe(true);
    expect(iam.authorize({ roleLogicalId: 'Absent', action: 'sqs:SendMessage', resource: 'arn:q' })).toMatchObject({
      allowed: false,
    });
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

    it('denies to everybody what it denies, and nothing else', () => {
      const iam = bucketWith([writeOnce]);
      expect(iam.deniedByBucket(put)).toBe('the policy of the bucket denies s3:PutObject on arn:aws:s3:::b/key');
      expect(iam.deniedByBucket({ ...put, context: { 's3:if-none-match': '*' } })).toBeUndefined();
      expect(iam.deniedByBucket({ ...put, action: 's3:GetObject' })).toBeUndefined();
      expect(iam.deniedByBucket({ ...put, resource: 'arn:aws:s3:::other/key' })).toBeUndefined();
    });

    it('is satisfied with the loopback where it asks for TLS', () => {
      const tls = { Effect: 'Deny', Principal: '*', Action: 's3:*', Resource: 'arn:aws:s3:::b/*' };
      const Condition = { Bool: { 'aws:SecureTransport': 'false' } };
      expect(bucketWith([{ ...tls, Condition }]).deniedByBucket(put)).toBeUndefined();
    });

    it('that denies something to some only stops the start', () => {
      expect(() => bucketWith([{ ...writeOnce, Principal: { AWS: 'arn:aws:iam::1:user/x' } }])).toThrow(/to some only/);
    });
  });

  it('with NotAction or NotResource stops the start', () => {
    const inverted = { NotAction: 'iam:*', Action: [], Resource: '*' } as Grant;
    expect(() => decide([inverted])).toThrow('WorkerPolicy uses NotAction');
  });

  it('lists the grants that no call has used', () => {
    const iam = new Iam(
      stackWith([
        { Action: ['dynamodb:PutItem', 'dynamodb:DeleteItem'], Resource: arnOf('Runs') },
        { Action: 'xray:PutTraceSegments', Resource: '*' },
      ]),
    );
    const resource = 'arn:aws:dynamodb:us-east-1:000000000000:table/Test-Runs';
    iam.authorize({ roleLogicalId: 'WorkerRole', action: 'dynamodb:PutItem', resource });
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

  it.each([
    ['StringEquals', ['a'], true, ['b'], false],
    ['StringLike', ['a*'], true, ['b'], false],
    ['ForAllValues:StringEquals', ['a', 'b'], true, ['b'], false],
    ['ForAnyValue:StringEquals', ['b', 'a'], true, ['c'], false],
    ['StringNotEquals', ['b'], true, ['a'], false],
  ])('%s holds or does not', (operator, wanted, holds, other, otherHolds) => {
    expect(given({ [operator]: { [keys]: wanted } }, { [keys]: ['a'] })).toBe(holds);
    expect(given({ [operator]: { [keys]: other } }, { [keys]: ['a'] })).toBe(otherHolds);
  });

  it('ForAllValues wants every value, and is satisfied by none, as in AWS', () => {
    expect(given({ 'ForAllValues:StringLike': { [keys]: 'a*' } }, { [keys]: ['a1', 'b1'] })).toBe(false);
    expect(given({ 'ForAllValues:StringLike': { [keys]: 'a*' } }, {})).toBe(true);
    expect(given({ 'ForAllValues:StringLike': { [keys]: 'a*' }, Null: { [keys]: 'false' } }, {})).toBe(false);
    expect(given({ StringLike: { [keys]: 'a*' } }, {})).toBe(false);
  });

  it('compares ARNs part by part, and booleans', () => {
    const source = { 'aws:SourceArn': 'arn:aws:sqs:us-east-1:1:queue' };
    expect(given({ ArnLike: { 'aws:SourceArn': 'arn:aws:sqs:*:1:q*' } }, source)).toBe(true);
    expect(given({ ArnLike: { 'aws:SourceArn': 'arn:aws:*:queue' } }, source)).toBe(false);
    expect(given({ Bool: { 'aws:SecureTransport': 'false' } }, {}, 'Deny')).toBe(true);
  });

  it('that the host does not know never lets a call pass', () => {
    expect(given({ DateGreaterThan: { [keys]: '2020' } }, { [keys]: 'a' })).toBe(false);
    expect(given({ StringEquals: { 'aws:PrincipalTag/team': 'a' } }, {})).toBe(false);
    expect(given({ StringEquals: { 'aws:PrincipalTag/team': 'a' } }, {}, 'Deny')).toBe(false);
    const decision = decide([
      { Action: '*', Resource: '*', Condition: { StringEquals: { 'aws:PrincipalTag/team': 'a' } } },
    ]);
    expect(decision).toMatchObject({
      message: expect.stringContaining('the condition key aws:PrincipalTag/team is not known'),
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
    const TransactItems = [
      { Put: { TableName } },
      { Update: { TableName } },
      { Delete: { TableName } },
      { ConditionCheck: { TableName } },
    ];
    expect(actionsOf('dynamodb', 'TransactWriteItems', { TransactItems }).map(([action]) => action)).toEqual(
      ['PutItem', 'UpdateItem', 'DeleteItem', 'ConditionCheckItem'].map((name) => `dynamodb:${name}`),
    );
    expect(actionsOf('dynamodb', 'TransactGetItems', { TransactItems: [{ Get: { TableName } }] })).toEqual([
      ['dynamodb:GetItem', 'table/Test-Runs'],
    ]);
    expect(actionsOf('dynamodb', 'BatchGetItem', { RequestItems: { a: { Keys: [] }, b: { Keys: [] } } })).toEqual([
      ['dynamodb:BatchGetItem', 'table/a'],
      ['dynamodb:BatchGetItem', 'table/b'],
    ]);
    expect(actionsOf('sqs', 'DeleteMessageBatch', { QueueUrl: 'http://127.0.0.1:1/0/work' })).toEqual([
      ['sqs:DeleteMessage', 'work'],
    ]);
    expect(actionsOf('states', 'StopExecution', { executionArn: 'arn:e' })).toEqual([
      ['states:StopExecution', 'arn:e'],
    ]);
  });

  it('tells which attributes an expression touches', () => {
    const [check] = accessChecks(
      'dynamodb',
      'UpdateItem',
      {
        TableName: 'Test-Runs',
        Key: { pk: { S: 'a' }, sk: { S: 'b' } },
        UpdateExpression: 'SET #s = :s, detail.inner[0] = if_not_exists(plain, :zero) REMOVE gone',
        ConditionExpression: 'attribute_exists(pk) AND version = :v',
        ExpressionAttributeNames: { '#s': 'status' },
      },
      stack,
    );
    const expected = ['detail', 'gone', 'pk', 'plain', 'sk', 'status', 'version'];
    expect([...(check?.context?.['dynamodb:Attributes'] ?? [])].sort()).toEqual(expected);
  });

  it('on S3 needs further grants for object locks, versions and copies', () => {
    const check = (operation: string, query = '', headers: Record<string, string> = {}) =>
      s3Checks({
        operation,
        bucket: 'b',
        key: 'k',
        query: new URLSearchParams(query),
        headers,
        body: Buffer.alloc(0),
      }).map(({ action, resource }) => `${action} ${String(resource)}`);
    expect(check('HeadObject')).toEqual(['s3:GetObject arn:aws:s3:::b/k']);
    expect(check('GetObject', 'versionId=1')).toEqual(['s3:GetObjectVersion arn:aws:s3:::b/k']);
    expect(
      check('PutObject', '', { 'x-amz-object-lock-mode': 'COMPLIANCE', 'x-amz-object-lock-retain-until-date': 'x' }),
    ).toEqual(['s3:PutObject arn:aws:s3:::b/k', 's3:PutObjectRetention arn:aws:s3:::b/k']);
    expect(check('CopyObject', '', { 'x-amz-copy-source': '/other/key' })).toEqual([
      's3:PutObject arn:aws:s3:::b/k',
      's3:GetObject arn:aws:s3:::other/key',
    ]);
  });
});

describe('a Lambda permission', () => {
  const stack = resolveTemplate(
    template({ ...httpApi, ...functionWith('Worker'), ...routeTo('Worker', 'GET /runs/{id}') }),
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
