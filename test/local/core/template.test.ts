// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these placeholders are CloudFormation's.
import { describe, expect, it } from 'vitest';
import { resolveTemplate } from '../../../local/template/template.ts';
import { arnOf, functionWith, runsTable, template } from './small-template.ts';

const urls = { stackName: 'Test', gatewayUrl: 'http://127.0.0.1:4501', worldUrl: 'http://127.0.0.1:4500' };

/** What a value comes out as inside a resource of a stack that has one of each. */
function resolved(value: unknown, more: Parameters<typeof resolveTemplate>[0] = {}): unknown {
  const { Resources, ...rest } = more;
  const stack = resolveTemplate(
    {
      ...rest,
      Resources: {
        ...runsTable,
        Work: { Type: 'AWS::SQS::Queue' },
        Named: { Type: 'AWS::SQS::Queue', Properties: { QueueName: { 'Fn::Sub': 'q-${AWS::StackName}' } } },
        Ordered: { Type: 'AWS::SQS::Queue', Properties: { FifoQueue: true } },
        Evidence: { Type: 'AWS::S3::Bucket' },
        Token: { Type: 'AWS::SecretsManager::Secret', Properties: { Name: 'countersign/token' } },
        Signer: { Type: 'AWS::KMS::Key' },
        Api: { Type: 'AWS::ApiGatewayV2::Api', Properties: { ProtocolType: 'HTTP' } },
        ...functionWith('Worker'),
        Probe: { Type: 'AWS::Logs::LogGroup', Properties: { value } },
        ...Resources,
      },
    },
    urls,
  );
  return stack.resources.get('Probe')?.properties.value;
}

describe('a reference', () => {
  it('is the physical id that the type has in AWS', () => {
    expect(resolved({ Ref: 'Runs' })).toBe('Test-Runs');
    expect(resolved({ Ref: 'Work' })).toBe('http://127.0.0.1:4501/000000000000/Test-Work');
    expect(resolved({ Ref: 'Named' })).toBe('http://127.0.0.1:4501/000000000000/q-Test');
    expect(resolved({ 'Fn::GetAtt': ['Ordered', 'QueueName'] })).toBe('Test-Ordered.fifo');
    expect(resolved({ Ref: 'Evidence' })).toBe('test-evidence');
    expect(resolved({ Ref: 'Token' })).toBe(
      'arn:aws:secretsmanager:us-east-1:000000000000:secret:countersign/token-LOCAL1',
    );
    expect(resolved({ Ref: 'WorkerRole' })).toBe('Test-WorkerRole');
    expect(resolved(arnOf('Work'))).toBe('arn:aws:sqs:us-east-1:000000000000:Test-Work');
    expect(resolved(arnOf('Runs'))).toBe('arn:aws:dynamodb:us-east-1:000000000000:table/Test-Runs');
    expect(resolved(arnOf('Worker'))).toBe('arn:aws:lambda:us-east-1:000000000000:function:Test-Worker');
    expect(resolved({ 'Fn::GetAtt': ['Api', 'ApiEndpoint'] })).toBe('http://127.0.0.1:4500');
    expect(resolved(arnOf('Signer'))).toMatch(
      /^arn:aws:kms:us-east-1:000000000000:key\/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
    );
  });

  it('is the same at every start', () => {
    expect(resolved(arnOf('Signer'))).toBe(resolved(arnOf('Signer')));
  });

  it('to nothing is refused with the place it stands in', () => {
    expect(() => resolved({ a: [{ Ref: 'Absent' }] })).toThrow(
      'Probe.value.a refers to Absent, which the template does not have',
    );
    expect(() => resolved({ 'Fn::GetAtt': ['Work', 'Colour'] })).toThrow(/wants Colour of Work \(AWS::SQS::Queue\)/);
  });
});

describe('an intrinsic function', () => {
  it('is replaced by its value, nested as deep as it stands', () => {
    expect(resolved({ 'Fn::Join': ['/', ['a', { Ref: 'AWS::Region' }, { 'Fn::Sub': '${Runs.Arn}' }]] })).toBe(
      'a/us-east-1/arn:aws:dynamodb:us-east-1:000000000000:table/Test-Runs',
    );
    expect(resolved({ 'Fn::Sub': ['${x}-${!Literal}-${AWS::AccountId}', { x: { Ref: 'Runs' } }] })).toBe(
      'Test-Runs-${Literal}-000000000000',
    );
    expect(resolved({ 'Fn::Select': [1, { 'Fn::Split': ['-', { Ref: 'Runs' }] }] })).toBe('Runs');
    expect(resolved({ kept: 1, dropped: { Ref: 'AWS::NoValue' }, list: [{ Ref: 'AWS::NoValue' }, 2] })).toEqual({
      kept: 1,
      list: [2],
    });
  });

  it('that depends on a parameter or condition uses its default', () => {
    const more = {
      Parameters: { Stage: { Default: 'local' }, Needed: {} },
      Conditions: {
        IsLocal: { 'Fn::Equals': [{ Ref: 'Stage' }, 'local'] },
        IsNot: { 'Fn::Not': [{ Condition: 'IsLocal' }] },
      },
      Resources: { Gone: { Type: 'AWS::EC2::Instance', Condition: 'IsNot' } },
    };
    expect(resolved({ 'Fn::If': ['IsLocal', 'yes', 'no'] }, more)).toBe('yes');
    expect(() => resolved({ Ref: 'Needed' }, more)).toThrow('needs the parameter Needed, which has no default');
  });

  it('that the host does not know is refused', () => {
    expect(() => resolved({ 'Fn::Cidr': ['10.0.0.0/8', 1, 8] })).toThrow('Probe.value uses Fn::Cidr');
  });

  it('that spells the URL of an HTTP API gives the local one', () => {
    const parts = [
      'https://',
      { Ref: 'Api' },
      '.execute-api.',
      { Ref: 'AWS::Region' },
      '.',
      { Ref: 'AWS::URLSuffix' },
      '/hooks',
    ];
    expect(resolved({ 'Fn::Join': ['', parts] })).toBe('http://127.0.0.1:4500/hooks');
  });
});

describe('a template', () => {
  it('with resources that the host cannot run is refused, all of them named at once', () => {
    const resources = {
      Vpc: { Type: 'AWS::EC2::VPC' },
      Work: { Type: 'AWS::SQS::Queue' },
      Search: { Type: 'AWS::OpenSearch::Domain' },
    };
    expect(() => resolveTemplate(template(resources), urls)).toThrow(
      /Vpc \(AWS::EC2::VPC\)\n {2}Search \(AWS::OpenSearch::Domain\)$/,
    );
    expect(() => resolveTemplate(template(resources), { ...urls, alsoIgnored: ['AWS::EC2::VPC'] })).toThrow(
      /:\n {2}Search/,
    );
  });

  it('with a circular dependency is refused, as CloudFormation would', () => {
    const circle = template({
      A: { Type: 'AWS::SQS::Queue', Properties: { Tag: { Ref: 'B' } } },
      B: { Type: 'AWS::SQS::Queue', Properties: { Tag: { 'Fn::Sub': 'x${C.Arn}' } } },
      C: { Type: 'AWS::SQS::Queue', DependsOn: 'A' },
    });
    expect(() => resolveTemplate(circle, urls)).toThrow('circular dependency: A -> B -> C -> A');
  });

  it('has its state machines defined in full', () => {
    const { resources } = resolveTemplate(
      template({
        ...functionWith('Ask'),
        Approval: {
          Type: 'AWS::StepFunctions::StateMachine',
          Properties: {
            DefinitionString: { 'Fn::Join': ['', ['{"a":"', arnOf('Ask'), '","b":"${Queue}"}']] },
            DefinitionSubstitutions: { Queue: { Ref: 'AWS::Region' } },
          },
        },
      }),
      urls,
    );
    expect(JSON.parse(String(resources.get('Approval')?.properties.DefinitionString))).toEqual({
      a: 'arn:aws:lambda:us-east-1:000000000000:function:Test-Ask',
      b: 'us-east-1',
    });
  });
});
