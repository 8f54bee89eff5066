import type { AwsEnvironment } from '../entry/environment.ts';
import { invokedIn, invokeFunction } from '../entry/invoke-function.ts';
import type { Credentials } from './credentials.ts';
import { type Reply, resultOf } from './reply.ts';

/** The credentials of the tenants, behind the only function that can read and write all of them. */
export function invokedCredentials(functionName: string, aws: AwsEnvironment): Credentials {
  const target = invokedIn(aws, functionName);
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
