import { ArnFormat, Duration, RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import {
  type AddToPrincipalPolicyResult,
  Effect,
  PolicyDocument,
  PolicyStatement,
  Role,
  ServicePrincipal,
} from 'aws-cdk-lib/aws-iam';
import {
  ApplicationLogLevel,
  Architecture,
  type CfnFunction,
  Code,
  Function as LambdaFunction,
  LoggingFormat,
  RecursiveLoop,
  Runtime,
  SystemLogLevel,
} from 'aws-cdk-lib/aws-lambda';
import { type ILogGroup, LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import type * as z from 'zod';
import type { FunctionBundles } from './bundle-functions.ts';
import type { StageConfig, VpcConfig } from './stage-config.ts';

const MEMORY_MIB = 512;

export interface NodeFunctionProps<Schema extends z.ZodObject> {
  bundles: FunctionBundles;
  /** Only for functions that people invoke, and for those that the HTTP API invokes and that know its URL. */
  name?: string;
  /** The entry point in lambdas/ without its ending: `intake/github`. */
  entry: string;
  description: string;
  /** The schema with which the function parses its environment, so that both always agree. */
  schema: Schema;
  environment: z.input<Schema> & Record<string, string>;
  timeout: Duration;
  /** Concurrency that Lambda reserves for the function, which is also its maximum. 0 or undefined: no reservation. */
  reservedConcurrency?: number;
  /** For functions that belong together. By default each has its own. */
  logGroup?: ILogGroup;
  /** The function sends messages to a queue that it consumes. Without this setting Lambda stops such a loop after about 16 invocations. */
  sendsToItself?: boolean;
}

/** The only construct for functions: each has its own role without default permissions, and its own log group. */
export class NodeFunction<Schema extends z.ZodObject = z.ZodObject> extends LambdaFunction {
  /**
   * For callers of the function. The ARN of a function with a name contains no reference to the function: the definition of the
   * HTTP API contains it, and a function that knows the URL of that API would otherwise depend on itself.
   */
  readonly invokedArn: string;

  constructor(scope: Construct, id: string, props: NodeFunctionProps<Schema>) {
    const logGroup = props.logGroup ?? newLogGroup(scope, `${id}Log`);
    const role = new InlineRole(scope, `${id}Role`, {
      service: 'lambda.amazonaws.com',
      description: `${Stack.of(scope).stackName}: ${props.description}`,
    });
    const level = logLevelOf(scope);
    super(scope, id, {
      ...(props.name && { functionName: props.name }),
      description: props.description,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      code: Code.fromAsset(props.bundles(props.entry)),
      handler: 'index.handler',
      memorySize: MEMORY_MIB,
      timeout: props.timeout,
      ...(props.reservedConcurrency && { reservedConcurrentExecutions: props.reservedConcurrency }),
      environment: props.environment,
      role,
      logGroup,
      loggingFormat: LoggingFormat.JSON,
      applicationLogLevelV2: ApplicationLogLevel[level],
      // Lambda's own lines: only those of failures, not two for each invocation. Metrics have durations and errors.
      systemLogLevelV2: level === 'DEBUG' ? SystemLogLevel.INFO : SystemLogLevel.WARN,
      ...(props.sendsToItself && { recursiveLoop: RecursiveLoop.ALLOW }),
    });
    placeInVpc(this, role);
    this.allow(['logs:CreateLogStream', 'logs:PutLogEvents'], [logGroup.logGroupArn]);
    const { name: resourceName } = props;
    this.invokedArn = resourceName
      ? Stack.of(this).formatArn({
          service: 'lambda',
          resource: 'function',
          resourceName,
          arnFormat: ArnFormat.COLON_RESOURCE_NAME,
        })
      : this.functionArn;
  }

  allow(actions: string[], resources: string[], conditions?: Record<string, Record<string, string[]>>): void {
    this.addToRolePolicy(new PolicyStatement({ actions, resources, ...(conditions && { conditions }) }));
  }
}

const LOG_LEVEL = 'countersign:logLevel';

/** For all functions that are created in this scope afterwards. */
export const setLogLevel = (scope: Construct, level: StageConfig['logLevel']): void =>
  scope.node.setContext(LOG_LEVEL, level);
const logLevelOf = (scope: Construct): StageConfig['logLevel'] => scope.node.tryGetContext(LOG_LEVEL) ?? 'INFO';

const VPC = 'countersign:vpc';

/** For all functions that are created in this scope afterwards. */
export const runInVpc = (scope: Construct, vpc: VpcConfig): void => scope.node.setContext(VPC, vpc);

/** Lambda itself connects a function to the subnets, with the permissions of the function's role. */
const NETWORK_INTERFACES = [
  'ec2:AssignPrivateIpAddresses',
  'ec2:CreateNetworkInterface',
  'ec2:DeleteNetworkInterface',
  'ec2:DescribeNetworkInterfaces',
  'ec2:DescribeSubnets',
  'ec2:UnassignPrivateIpAddresses',
];

function placeInVpc(to: NodeFunction, role: Role): void {
  const vpc: VpcConfig | undefined = to.node.tryGetContext(VPC);
  if (!vpc) return;
  const { subnetIds, securityGroupIds } = vpc;
  (to.node.defaultChild as CfnFunction).vpcConfig = { subnetIds, securityGroupIds };
  to.allow(NETWORK_INTERFACES, ['*']);
  Validations.of(role).acknowledge({
    id: 'AwsSolutions-IAM5[Resource::*]',
    reason:
      'Lambda requires these permissions before the network interfaces exist. The code of the function cannot use them.',
  });
  // Calls that the code of a function makes have this key; calls of Lambda itself do not.
  const conditions = { Null: { 'lambda:SourceFunctionArn': 'false' } };
  const fromCode = { effect: Effect.DENY, actions: ['ec2:*'], resources: ['*'], conditions };
  to.addToRolePolicy(new PolicyStatement(fromCode));
}

const newLogGroup = (scope: Construct, id: string): LogGroup =>
  new LogGroup(scope, id, { retention: RetentionDays.ONE_MONTH, removalPolicy: RemovalPolicy.DESTROY });

/** Has its permissions inline: as separate resources they would need a place in the template for each role. */
export class InlineRole extends Role {
  readonly #permissions: PolicyDocument;

  constructor(scope: Construct, id: string, { service, description }: { service: string; description: string }) {
    const permissions = new PolicyDocument();
    const assumedBy = new ServicePrincipal(service);
    super(scope, id, { assumedBy, description, inlinePolicies: { Permissions: permissions } });
    this.#permissions = permissions;
  }

  override addToPrincipalPolicy(statement: PolicyStatement): AddToPrincipalPolicyResult {
    this.#permissions.addStatements(statement);
    return { statementAdded: true, policyDependable: this };
  }
}

export const seconds = (count: number) => Duration.seconds(count);
