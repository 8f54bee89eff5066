import type { AwsEnvironment } from '../entry/environment.ts';
import { type InvokedFunction, invokeFunction } from '../entry/invoke-function.ts';
import type { Credentials } from './credentials.ts';
import { type Reply, resultOf } from './reply.ts';

/** The credentials of the tenants, behind the only function that can read and write all of them. */
export function invokedCredentials(functionName: string, aws: AwsEnvironment): Credentials {
  const target: InvokedFunction = {
    functionName,
    region: aws.AWS_REGION,
    endpoint: aws.AWS_ENDPOINT_URL,
    credentials: {
      accessKeyId: aws.AWS_ACCESS_KEY_ID,
      secretAccessKey: aws.AWS_SECRET_ACCESS_KEY,
      ...(aws.AWS_SESSION_TOKEN && { sessionToken: aws.AWS_SESSION_TOKEN }),
    },
  };
  const call =
    <Request, Result>(action: keyof Credentials) =>
    async (request: Request): Promise<Result> =>
      resultOf((await invokeFunction(target, { action, request })) as Reply<Result>);
  return {
    describe: call('describe'),
    store: call('store'),
    storeSigningSecret: call('storeSigningSecret'),
    dropPreviousSecrets: call('dropPreviousSecrets'),
    test: call('test'),
  };
}
