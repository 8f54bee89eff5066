import { parsed } from '../../client/api-client.ts';
import { InvocationFailed, type InvokedFunction, invokeFunction } from '../../lambdas/entry/invoke-function.ts';
import { CountersignError } from '../../lambdas/run/errors.ts';
import type { AddOwners, DescribedStage, OwnersAdded } from '../../lambdas/setup/bootstrap.ts';
import type { Credentials } from '../../lambdas/setup/credentials.ts';
import { bootstrapFunctionName, credentialsFunctionName } from '../../lambdas/setup/environment.ts';
import type { EraseChanges } from '../../lambdas/setup/erase-changes.ts';
import { type Reply, resultOf } from '../../lambdas/setup/reply.ts';
import { sendTo } from '../client/api-client.ts';
import type { Call } from '../commands/command.ts';
import { EXIT, Failure, UsageError } from '../commands/failure.ts';

const LOCAL_STAGE = 'local';

type Access = Omit<InvokedFunction, 'functionName'>;

/** What the operator of a stage does with their own AWS credentials, before and beside the API. */
export class Operator {
  readonly stage: string;
  readonly #access: Access;

  constructor(stage: string, access: Access) {
    this.stage = stage;
    this.#access = access;
  }

  describe(): Promise<DescribedStage> {
    return this.#invoke(bootstrapFunctionName(this.stage), { action: 'describe' });
  }

  addOwners(request: AddOwners): Promise<OwnersAdded> {
    return this.#invoke(bootstrapFunctionName(this.stage), { action: 'addOwners', request });
  }

  eraseChanges(request: EraseChanges): Promise<{ erased: string[] }> {
    return this.#invoke(bootstrapFunctionName(this.stage), { action: 'eraseChanges', request });
  }

  storeSigningSecret: Credentials['storeSigningSecret'] = (request) =>
    this.#invoke(credentialsFunctionName(this.stage), { action: 'storeSigningSecret', request });

  async #invoke<Result>(functionName: string, event: unknown): Promise<Result> {
    try {
      return resultOf((await invokeFunction({ ...this.#access, functionName }, event)) as Reply<Result>);
    } catch (error) {
      if (error instanceof CountersignError) throw new Failure(EXIT.failed, error.message, { cause: error });
      throw error instanceof InvocationFailed ? refusal(error, this.#access.region) : unreachable(error);
    }
  }
}

/** With `--stage` through AWS; without it through the local host. */
export async function operatorOf(call: Call): Promise<Operator> {
  const stage = call.option('stage');
  if (stage !== undefined) return new Operator(stage, await awsAccess(call));
  if (call.isLocal) return new Operator(LOCAL_STAGE, await localAccess(call));
  throw new UsageError('--stage STAGE is required, with AWS credentials of its account (AWS_PROFILE, AWS_REGION)');
}

/** Credentials and region as every AWS tool finds them: environment, profiles, SSO, the role of the machine. */
async function awsAccess(call: Call): Promise<Access> {
  const { SecretsManagerClient } = await import('@aws-sdk/client-secrets-manager');
  const region = call.option('region');
  const { config } = new SecretsManagerClient(region === undefined ? {} : { region });
  try {
    const [credentials, resolved] = await Promise.all([config.credentials(), config.region()]);
    return { region: resolved, credentials };
  } catch (cause) {
    const { message } = cause as Error;
    throw new Failure(
      EXIT.refused,
      `no AWS credentials or no region (${message}); set AWS_PROFILE and AWS_REGION, or run aws sso login`,
      { cause },
    );
  }
}

async function localAccess(call: Call): Promise<Access> {
  const { text } = await sendTo(call.url, '/_local/aws', {});
  const { endpoint, region, credentials } = parsed(text) ?? {};
  if (typeof endpoint === 'string') return { endpoint, region, credentials } as Access;
  throw new Failure(EXIT.refused, `${call.url} is not a local host of this version; start it again with npm start`);
}

const refusal = ({ reason, message }: InvocationFailed, region: string): Failure =>
  new Failure(
    EXIT.refused,
    reason === 'ResourceNotFoundException'
      ? `${message}; is the stage deployed in ${region}? Check --stage and AWS_REGION`
      : reason.startsWith('AccessDenied')
        ? `${message}; your AWS credentials need lambda:InvokeFunction on it`
        : `${message}; its log in CloudWatch has the error`,
  );

const unreachable = (cause: unknown): Failure =>
  new Failure(EXIT.refused, `AWS does not respond: ${cause instanceof Error ? cause.message : String(cause)}`, {
    cause,
  });
