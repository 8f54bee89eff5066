// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these placeholders are CloudFormation's.
import { describe, expect, it } from 'vitest';
import { resolveTemplate, type TemplateResource } from '../../../local/template/template.ts';
import { arnOf, functionWith, runsTable, template } from './small-template.ts';

const urls = { stackName: 'Test', awsEndpointUrl: 'http://127.0.0.1:4501', hostUrl: 'http://127.0.0.1:4500' };

/** The resolved value of a property, in a template with one resource of each type. */
function resolved(value: unknown): unknown {
  const stack = resolveTemplate(
    {
      Resources: {
        ...runsTable,
        Work: { Type: 'AWS::SQS::Queue' },
        Named: { Type: 'AWS::SQS::Queue', Properties: { QueueName: { 'Fn::Sub': 'q-${AWS::Region}' } } },
        Evidence: { Type: 'AWS::S3::Bucket' },
        Token: { Type: 'AWS::SecretsManager::Secret', Properties: { Name: 'countersign/token' } },
        Signer: { Type: 'AWS::KMS::Key' },
        Api: { Type: 'AWS::ApiGatewayV2::Api', Properties: { ProtocolType: 'HTTP' } },
        ...functionWith('Worker'),
        Probe: { Type: 'AWS::Logs::LogGroup', Properties: { value } },
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
    expect(resolved({ Ref: 'Named' })).toBe('http://127.0.0.1:4501/000000000000/q-us-east-1');
    expect(resolved({ 'Fn::GetAtt': ['Work', 'QueueName'] })).toBe('Test-Work');
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

  it('to nothing is refused with its position', () => {
    expect(() => resolved({ a: [{ Ref: 'Absent' }] })).toThrow(
      'Probe.value.a refers to Absent, which the template does not have',
    );
    expect(() => resolved({ 'Fn::GetAtt': ['Work', 'Colour'] })).toThrow(
      'Probe.value: the local host does not support the attribute Colour of AWS::SQS::Queue',
    );
  });
});

describe('an intrinsic function', () => {
  it('is replaced by its value at any depth', () => {
    expect(resolved({ 'Fn::Join': ['/', ['a', { Ref: 'AWS::Region' }, arnOf('Runs')]] })).toBe(
      'a/us-east-1/arn:aws:dynamodb:us-east-1:000000000000:table/Test-Runs',
    );
    expect(resolved({ list: [{ 'Fn::Sub': '${Runs}-${AWS::AccountId}' }] })).toEqual({
      list: ['Test-Runs-000000000000'],
    });
  });

  it('that the host does not support is refused', () => {
    expect(() => resolved({ 'Fn::Cidr': ['10.0.0.0/8', 1, 8] })).toThrow(
      'Probe.value: the local host does not support Fn::Cidr',
    );
  });
});

describe('a template', () => {
  it('with unsupported resources is refused, and all of them are named', () => {
    const resources = {
      Vpc: { Type: 'AWS::EC2::VPC' },
      Work: { Type: 'AWS::SQS::Queue' },
      Search: { Type: 'AWS::OpenSearch::Domain' },
    };
    expect(() => resolveTemplate(template(resources), urls)).toThrow(
      /Vpc \(AWS::EC2::VPC\)\n {2}Search \(AWS::OpenSearch::Domain\)$/,
    );
  });

  it('with a circular dependency is refused, as CloudFormation would', () => {
    const circle = template({
      A: { Type: 'AWS::SQS::Queue', Properties: { Tag: { Ref: 'B' } } },
      B: { Type: 'AWS::SQS::Queue', Properties: { Tag: { 'Fn::GetAtt': ['C', 'Arn'] } } },
      C: { Type: 'AWS::SQS::Queue', DependsOn: 'A' },
    });
    expect(() => resolveTemplate(circle, urls)).toThrow('circular dependency: A -> B -> C -> A');
  });

  it('with a condition is refused', () => {
    const conditional = template({ A: { Type: 'AWS::SQS::Queue', Condition: 'IsLocal' } as TemplateResource });
    expect(() => resolveTemplate(conditional, urls)).toThrow('A: the local host does not support conditions');
  });
});
