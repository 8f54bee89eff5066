import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { REGION } from '../aws/aws.ts';
import type { ResolvedResource, ResolvedStack } from '../template/template.ts';

/** The properties of a function in the template. */
export interface FunctionDefinition {
  logicalId: string;
  name: string;
  arn: string;
  roleLogicalId: string;
  handlerFile: string;
  handlerName: string;
  handler: string;
  codeFolder: string;
  environment: Record<string, string>;
  timeoutMs: number;
  memoryMb: number;
  /** Undefined without a reservation. */
  reservedConcurrency: number | undefined;
  allowsRecursion: boolean;
  /** The least level of the lines of the function. */
  logLevel: string | undefined;
}

/** Lambda's defaults. */
const DEFAULT_TIMEOUT_SECONDS = 3;
const DEFAULT_MEMORY_MB = 128;

export function functionDefinitions(
  stack: ResolvedStack,
  codeFolder: (logicalId: string) => string,
): FunctionDefinition[] {
  return stack
    .ofType('AWS::Lambda::Function')
    .map((resource) => define(resource, stack, codeFolder(resource.logicalId)));
}

function define(resource: ResolvedResource, stack: ResolvedStack, codeFolder: string): FunctionDefinition {
  const { logicalId, ref, arn, properties } = resource;
  const handler = String(properties.Handler);
  const [moduleName = '', handlerName = ''] = handler.split('.');
  const role = stack.byArn(String(properties.Role));
  if (!role) throw new Error(`${logicalId} has the role ${String(properties.Role)}, which is not in the template`);
  const variables = (properties.Environment as { Variables?: Record<string, unknown> } | undefined)?.Variables ?? {};
  const reserved = properties.ReservedConcurrentExecutions;
  return {
    logicalId,
    name: ref,
    arn,
    roleLogicalId: role.logicalId,
    handler,
    handlerFile: handlerFile(join(codeFolder, moduleName), logicalId),
    handlerName,
    codeFolder,
    environment: Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, String(value)])),
    timeoutMs: Number(properties.Timeout ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
    memoryMb: Number(properties.MemorySize ?? DEFAULT_MEMORY_MB),
    reservedConcurrency: reserved === undefined ? undefined : Number(reserved),
    allowsRecursion: properties.RecursiveLoop === 'Allow',
    logLevel: (properties.LoggingConfig as { ApplicationLogLevel?: string } | undefined)?.ApplicationLogLevel,
  };
}

function handlerFile(modulePath: string, logicalId: string): string {
  const candidates = ['.mjs', '.js', '.cjs'].map((extension) => modulePath + extension);
  const found = candidates.find((candidate) => existsSync(candidate));
  if (!found) throw new Error(`${logicalId} has no code at ${candidates.join(' or ')}`);
  return found;
}

/** The environment of the function as in AWS, plus the local AWS endpoint. */
export function environmentOf(
  definition: FunctionDefinition,
  { accessKeyId, awsEndpointUrl }: { accessKeyId: string; awsEndpointUrl: string },
): Record<string, string> {
  // A thread cannot have its own V8 options.
  const { NODE_OPTIONS: _, ...environment } = definition.environment;
  return {
    ...environment,
    AWS_REGION: REGION,
    AWS_DEFAULT_REGION: REGION,
    AWS_LAMBDA_FUNCTION_NAME: definition.name,
    AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(definition.memoryMb),
    ...(definition.logLevel !== undefined && { AWS_LAMBDA_LOG_LEVEL: definition.logLevel }),
    AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x',
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: 'local',
    AWS_SESSION_TOKEN: 'local',
    AWS_ENDPOINT_URL: awsEndpointUrl,
    LAMBDA_TASK_ROOT: definition.codeFolder,
    _HANDLER: definition.handler,
    TZ: ':UTC',
  };
}
