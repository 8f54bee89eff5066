import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { KMSClient, SignCommand } from '@aws-sdk/client-kms';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { SendTaskSuccessCommand, SFNClient, StartExecutionCommand } from '@aws-sdk/client-sfn';
import { SendMessageBatchCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AwsError, type JsonService } from '../../../local/aws/aws.ts';
import { type SmallHost, startSmallHost } from './small-host.ts';
import { arnOf, functionWith, runsTable, template } from './small-template.ts';

const TABLE = 'Test-Runs';
const TABLE_ARN = `arn:aws:dynamodb:us-east-1:000000000000:table/${TABLE}`;
const item = (pk: string, sk = '1') => ({ pk: { S: pk }, sk: { S: sk } });

/** Returns the same result for every operation, or fails on request, so that only the endpoint is tested. */
const calls: string[] = [];
const echo = (answer: Record<string, unknown>): JsonService => ({
  call: async (operation, input) => {
    calls.push(operation);
    if (String(input.MessageBody).startsWith('unknown queue')) throw new AwsError('QueueDoesNotExist', 'no such queue');
    if (input.MessageBody === 'bug') throw new TypeError('a bug in the service');
    return answer;
  },
});

const puts: string[] = [];

let host: SmallHost;

beforeAll(async () => {
  const indexes = { 'Fn::Join': ['', [arnOf('Runs'), '/index/*']] };
  const objects = { 'Fn::Join': ['', [arnOf('Evidence'), '/*']] };
  host = await startSmallHost({
    template: template({
      ...runsTable,
      Work: { Type: 'AWS::SQS::Queue' },
      Other: { Type: 'AWS::SQS::Queue' },
      Evidence: { Type: 'AWS::S3::Bucket' },
      Token: { Type: 'AWS::SecretsManager::Secret', Properties: { Name: 'countersign/token' } },
      Signer: { Type: 'AWS::KMS::Key' },
      Approval: { Type: 'AWS::StepFunctions::StateMachine', Properties: { DefinitionString: '{}' } },
      ...functionWith('Worker', [
        { Action: ['dynamodb:PutItem', 'dynamodb:GetItem', 'dynamodb:UpdateItem'], Resource: arnOf('Runs') },
        { Action: 'dynamodb:Query', Resource: [arnOf('Runs'), indexes] },
        { Action: 'sqs:SendMessage', Resource: arnOf('Work') },
        { Action: 's3:PutObject', Resource: objects },
        { Action: 'secretsmanager:GetSecretValue', Resource: { Ref: 'Token' } },
        { Action: 'kms:Sign', Resource: arnOf('Signer') },
        { Action: ['states:StartExecution', 'states:SendTaskSuccess'], Resource: { Ref: 'Approval' } },
      ]),
      ...functionWith('Tenant', [
        {
          Action: ['dynamodb:PutItem', 'dynamodb:Query', 'dynamodb:BatchGetItem', 'dynamodb:BatchWriteItem'],
          Resource: [arnOf('Runs'), indexes],
          Condition: { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': ['acme#*'] } },
        },
      ]),
      ...functionWith('Idle'),
    }),
    services: {
      json: {
        sqs: echo({ MessageId: '1', Successful: [], Failed: [] }),
        states: echo({ executionArn: 'arn:x', startDate: 1 }),
        secretsmanager: echo({ SecretString: 'swordfish' }),
        kms: echo({ Signature: Buffer.from('signed').toString('base64') }),
      },
      rest: {
        s3: {
          describe: ({ path }) => ({
            operation: 'PutObject',
            checks: [{ action: 's3:PutObject', resource: `arn:aws:s3:::${decodeURIComponent(path.slice(1))}` }],
          }),
          handle: async ({ path, body }) => {
            puts.push(`${path} ${body}`);
            return { status: 200, headers: {}, body: '' };
          },
        },
      },
    },
  });
});
afterAll(() => host.stop());
beforeEach(() => {
  host.requests.reset();
  host.faults.clear();
  calls.length = 0;
});

describe('a call its role grants', () => {
  it('reaches the DynamoDB engine', async () => {
    const worker = host.dynamodbAs('Worker');
    await worker.send(new PutItemCommand({ TableName: TABLE, Item: { ...item('granted'), n: { N: '7' } } }));
    const { Item } = await worker.send(new GetItemCommand({ TableName: TABLE, Key: item('granted') }));
    expect(Item?.n?.N).toBe('7');
  });

  it('reaches each service by its own protocol', async () => {
    const queueUrl = host.stack.resources.get('Work')?.ref;
    const settings = host.as('Worker');
    await new SQSClient({ ...settings, md5: false }).send(
      new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: 'x' }),
    );
    await new SQSClient({ ...settings, md5: false }).send(
      new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries: [{ Id: '1', MessageBody: 'x' }] }),
    );
    const secret = await new SecretsManagerClient(settings).send(
      new GetSecretValueCommand({ SecretId: 'countersign/token' }),
    );
    expect(secret.SecretString).toBe('swordfish');
    const sign = new SignCommand({
      KeyId: host.stack.resources.get('Signer')?.ref,
      Message: Buffer.from('m'),
      SigningAlgorithm: 'ECDSA_SHA_256',
    });
    const { Signature } = await new KMSClient(settings).send(sign);
    expect(Buffer.from(Signature ?? []).toString()).toBe('signed');
    const machine = host.stack.resources.get('Approval')?.arn;
    await new SFNClient(settings).send(new StartExecutionCommand({ stateMachineArn: machine }));
    await new SFNClient(settings).send(new SendTaskSuccessCommand({ taskToken: 't', output: '{}' }));
    await new S3Client(settings).send(new PutObjectCommand({ Bucket: 'test-evidence', Key: 'a/b c', Body: 'bundle' }));
    expect(puts).toEqual(['/test-evidence/a/b%20c bundle']);
    expect(calls).toEqual([
      'SendMessage',
      'SendMessageBatch',
      'GetSecretValue',
      'Sign',
      'StartExecution',
      'SendTaskSuccess',
    ]);
  });

  it('is counted by function, service and operation, separately for the host', async () => {
    await host.dynamodbAs('Worker').send(new GetItemCommand({ TableName: TABLE, Key: item('x') }));
    await host.dynamodbAs('Worker').send(new GetItemCommand({ TableName: TABLE, Key: item('x') }));
    await host.dynamodbAs('host').send(new DeleteItemCommand({ TableName: TABLE, Key: item('x') }));
    expect(host.requests.report()).toEqual({
      total: 2,
      functions: { Worker: { dynamodb: { GetItem: 2 } } },
      services: { dynamodb: { GetItem: 2 } },
      host: { dynamodb: { DeleteItem: 1 } },
    });
  });
});

it('a service that the host does not have is refused by name', async () => {
  const { accessKeyId } = host.as('Worker').credentials;
  const authorization = `AWS4-HMAC-SHA256 Credential=${accessKeyId}/20261116/us-east-1/polly/aws4_request, Signature=x`;
  const response = await fetch(`${host.gateway.url}/v1/speech`, { method: 'POST', headers: { authorization } });
  const { message } = (await response.json()) as { message: string };
  expect(message).toContain('does not support the service polly (POST /v1/speech)');
});

describe('a call its role does not grant', () => {
  const denial = (action: string, resource: string) => ({
    name: 'AccessDeniedException',
    message: `Worker is not authorized to perform ${action} on ${resource}: no statement of its role grants it`,
  });

  it('is refused with the missing grant in the message', async () => {
    const deleting = host.dynamodbAs('Worker').send(new DeleteItemCommand({ TableName: TABLE, Key: item('x') }));
    await expect(deleting).rejects.toMatchObject(denial('dynamodb:DeleteItem', TABLE_ARN));
  });

  it('is refused for one item of a transaction, and none of its items is written', async () => {
    const transaction = new TransactWriteItemsCommand({
      TransactItems: [
        { Put: { TableName: TABLE, Item: item('in-transaction') } },
        { Delete: { TableName: TABLE, Key: item('other') } },
      ],
    });
    await expect(host.dynamodbAs('Worker').send(transaction)).rejects.toMatchObject(
      denial('dynamodb:DeleteItem', TABLE_ARN),
    );
    const { Item } = await host
      .dynamodbAs('host')
      .send(new GetItemCommand({ TableName: TABLE, Key: item('in-transaction') }));
    expect(Item).toBeUndefined();
  });

  it('is refused with the error format of each service', async () => {
    const settings = host.as('Worker');
    const sending = new SQSClient(settings).send(
      new SendMessageCommand({ QueueUrl: host.stack.resources.get('Other')?.ref, MessageBody: 'x' }),
    );
    await expect(sending).rejects.toMatchObject(
      denial('sqs:SendMessage', 'arn:aws:sqs:us-east-1:000000000000:Test-Other'),
    );
    const putting = new S3Client(settings).send(new PutObjectCommand({ Bucket: 'other', Key: 'k', Body: 'x' }));
    await expect(putting).rejects.toMatchObject({
      ...denial('s3:PutObject', 'arn:aws:s3:::other/k'),
      name: 'AccessDenied',
      $metadata: { httpStatusCode: 403 },
    });
    const signing = new KMSClient(host.as('Idle')).send(
      new SignCommand({
        KeyId: host.stack.resources.get('Signer')?.ref,
        Message: Buffer.from('m'),
        SigningAlgorithm: 'ECDSA_SHA_256',
      }),
    );
    await expect(signing).rejects.toMatchObject({
      name: 'AccessDeniedException',
      message: expect.stringMatching(/^Idle .* kms:Sign on arn:aws:kms:.*:key\//),
    });
    expect(calls).toEqual([]);
  });

  it('is refused for an unknown access key', async () => {
    const settings = { ...host.as('host'), credentials: { accessKeyId: 'AKIASTRANGER', secretAccessKey: 'x' } };
    const reading = new SecretsManagerClient(settings).send(
      new GetSecretValueCommand({ SecretId: 'countersign/token' }),
    );
    await expect(reading).rejects.toMatchObject({ name: 'UnrecognizedClientException' });
  });
});

describe('leading keys', () => {
  const refused = {
    name: 'AccessDeniedException',
    message: expect.stringContaining('dynamodb:LeadingKeys requires acme#*; the request has globex#'),
  };
  const put = (pk: string) => new PutItemCommand({ TableName: TABLE, Item: { ...item(pk), owner: { S: pk } } });

  it('limit a put, each item of a transaction and each key of a batch', async () => {
    const tenant = host.dynamodbAs('Tenant');
    await tenant.send(put('acme#1'));
    await expect(tenant.send(put('globex#1'))).rejects.toMatchObject(refused);
    const write = (pk: string) => ({ Put: { TableName: TABLE, Item: item(pk) } });
    const transaction = new TransactWriteItemsCommand({ TransactItems: [write('acme#2'), write('globex#2')] });
    await expect(tenant.send(transaction)).rejects.toMatchObject(refused);
    const batch = (...keys: string[]) =>
      new BatchGetItemCommand({ RequestItems: { [TABLE]: { Keys: keys.map((pk) => item(pk)) } } });
    await tenant.send(batch('acme#1'));
    await expect(tenant.send(batch('acme#1', 'globex#1'))).rejects.toMatchObject({ name: 'AccessDeniedException' });
  });

  it('cannot be avoided by an operation whose keys the host does not check', async () => {
    const requests = [{ PutRequest: { Item: item('globex#3') } }];
    const batch = new BatchWriteItemCommand({ RequestItems: { [TABLE]: requests } });
    await expect(host.dynamodbAs('Tenant').send(batch)).rejects.toThrow('does not support BatchWriteItem');
  });

  it('limit the key of a query, also with #names and on an index', async () => {
    const tenant = host.dynamodbAs('Tenant');
    const query = (value: string, index?: string) =>
      new QueryCommand({
        TableName: TABLE,
        IndexName: index,
        KeyConditionExpression: '#k = :v',
        ExpressionAttributeNames: { '#k': index ? 'owner' : 'pk' },
        ExpressionAttributeValues: { ':v': { S: value } },
      });
    await host.dynamodbAs('host').send(put('acme#query'));
    expect((await tenant.send(query('acme#query'))).Count).toBe(1);
    expect((await tenant.send(query('acme#query', 'byOwner'))).Count).toBe(1);
    await expect(tenant.send(query('globex#1'))).rejects.toMatchObject(refused);
    await expect(tenant.send(query('globex#1', 'byOwner'))).rejects.toMatchObject(refused);
  });
});

describe('an error of a service', () => {
  it('keeps its name in the client', async () => {
    const QueueUrl = host.stack.resources.get('Work')?.ref;
    const send = (MessageBody: string) =>
      new SQSClient(host.as('Worker')).send(new SendMessageCommand({ QueueUrl, MessageBody }));
    await expect(send('unknown queue')).rejects.toMatchObject({ name: 'QueueDoesNotExist' });
    await expect(send('bug')).rejects.toMatchObject({
      name: 'InternalServerError',
      $metadata: { httpStatusCode: 500 },
    });
    const clash = new PutItemCommand({
      TableName: TABLE,
      Item: item('once'),
      ConditionExpression: 'attribute_not_exists(pk)',
    });
    await host.dynamodbAs('Worker').send(clash);
    await expect(host.dynamodbAs('Worker').send(clash)).rejects.toMatchObject({
      name: 'ConditionalCheckFailedException',
    });
  });
});

describe('an injected fault', () => {
  const put = (pk: string) => new PutItemCommand({ TableName: TABLE, Item: item(pk) });
  const exists = async (pk: string) => {
    const { Item } = await host
      .dynamodbAs('host')
      .send(new GetItemCommand({ TableName: TABLE, Key: item(pk), ConsistentRead: true }));
    return Item !== undefined;
  };

  it('throttles or fails the call once, without effect', async () => {
    const worker = host.dynamodbAs('Worker');
    host.faults.add({ function: 'worker', service: 'dynamodb', operation: 'PutItem', kind: 'throttle' });
    await expect(worker.send(put('throttled'))).rejects.toMatchObject({
      name: 'ProvisionedThroughputExceededException',
    });
    host.faults.add({ operation: 'PutItem', kind: 'error', status: 503, code: 'ServiceUnavailable' });
    await expect(worker.send(put('throttled'))).rejects.toMatchObject({ name: 'ServiceUnavailable' });
    expect(await exists('throttled')).toBe(false);
    await worker.send(put('throttled'));
    expect(host.faults.list().map(({ hits }) => hits)).toEqual([1, 1]);
  });

  it('loses the reply of a successful write', async () => {
    host.faults.add({ operation: 'PutItem', nth: 2, kind: 'lost_reply' });
    await host.dynamodbAs('Worker').send(put('answered'));
    await expect(host.dynamodbAs('Worker').send(put('unanswered'))).rejects.toThrow();
    expect(await exists('unanswered')).toBe(true);
  });

  it('cancels a transaction with a conflict on its first item', async () => {
    host.faults.add({ kind: 'conflict', operation: 'TransactWriteItems' });
    const writes = ['c1', 'c2'].map((pk) => ({ Put: { TableName: TABLE, Item: item(pk) } }));
    const transaction = host.dynamodbAs('Worker').send(new TransactWriteItemsCommand({ TransactItems: writes }));
    await expect(transaction).rejects.toMatchObject({
      name: 'TransactionCanceledException',
      CancellationReasons: [{ Code: 'TransactionConflict' }, { Code: 'None' }],
    });
    expect(await exists('c1')).toBe(false);
  });

  it('delays the call and then executes it', async () => {
    host.faults.add({ function: 'Worker', kind: 'delay', delayMs: 30 });
    const before = performance.now();
    await host.dynamodbAs('Worker').send(put('late'));
    expect(performance.now() - before).toBeGreaterThanOrEqual(29);
    expect(await exists('late')).toBe(true);
  });

  it('does not affect other functions', async () => {
    host.faults.add({ function: 'Tenant', times: 'always', kind: 'error' });
    await host.dynamodbAs('Worker').send(put('spared'));
    expect(host.faults.list()[0]?.hits).toBe(0);
  });
});
