import { Aws, CfnOutput, RemovalPolicy, SecretValue, Stack, Validations } from 'aws-cdk-lib';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';
import type { NodeFunction } from '../node-function.ts';
import type { StageConfig } from '../stage-config.ts';

/** Where the sealer sends the traces of ended runs: X-Ray, a collector, or nowhere. */
export class Traces extends Construct {
  readonly environment: { TRACES_URL?: string; TRACES_SECRET_ARN?: string };
  readonly #traces: StageConfig['traces'];

  constructor(scope: Construct, id: string, { traces, kind }: StageConfig) {
    super(scope, id);
    this.#traces = traces;
    this.environment = {};
    if (traces === 'xray') this.environment.TRACES_URL = `https://xray.${Aws.REGION}.${Aws.URL_SUFFIX}/v1/traces`;
    if (typeof traces !== 'object') return;
    this.environment.TRACES_URL = traces.url;
    if (traces.secretHeaders) this.environment.TRACES_SECRET_ARN = this.#secret(kind).secretArn;
  }

  /** Operators enter the headers. Until then requests have none. */
  #secret(kind: StageConfig['kind']): Secret {
    const secret = new Secret(this, 'Headers', {
      description: 'Headers for the collector of traces, as JSON: {"x-api-key": "…"}',
      secretStringValue: SecretValue.unsafePlainText('{}'),
      removalPolicy: kind === 'prod' ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
    });
    Validations.of(secret).acknowledge({
      id: 'AwsSolutions-SMG4',
      reason: 'The collector issues its credential; operators replace it there and here.',
    });
    new CfnOutput(Stack.of(this), 'TracesSecretArn', { value: secret.secretArn });
    return secret;
  }

  allow(to: NodeFunction): void {
    const { TRACES_SECRET_ARN: secretArn } = this.environment;
    if (secretArn !== undefined) to.allow(['secretsmanager:GetSecretValue'], [secretArn]);
    if (this.#traces !== 'xray') return;
    to.allow(['xray:PutTraceSegments'], ['*']);
    Validations.of(to.node.scope ?? to).acknowledge({
      id: 'AwsSolutions-IAM5[Resource::*]',
      reason: 'xray:PutTraceSegments has no resources; it can only add traces.',
    });
  }
}

/** For the API: where people see a trace. */
export function traceUrl({ traces, traceUrl: configured }: StageConfig): { TRACE_URL?: string } {
  const region = Aws.REGION;
  const console = `https://${region}.console.aws.amazon.com/cloudwatch/home?region=${region}#xray:traces/{xrayTraceId}`;
  const url = configured ?? (traces === 'xray' ? console : undefined);
  return url === undefined ? {} : { TRACE_URL: url };
}
