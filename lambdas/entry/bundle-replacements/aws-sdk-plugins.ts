/**
 * Bundles contain this file in place of `@aws-sdk/core/client` (lib/bundle-functions.ts). Of what the SDK does for each request it
 * leaves out what nobody reads: the copy of input and output for a logger that is not set, and the user agent. It also lets some
 * clients compose their middleware once for each command instead of for each request. Together this is a third of the CPU time of a request.
 */
// @ts-expect-error The package has types for its entry points only; this is the file of the one that is replaced.
export * from '../../../node_modules/@aws-sdk/core/dist-es/submodules/client/index.js';

const nothing = { applyToStack: () => undefined };

export const getLoggerPlugin = () => nothing;

/**
 * What middleware finds out about a request is stored with its composition: concurrent requests share it. So only clients whose
 * endpoint and credentials are the same for all requests compose it once. The endpoint of S3 contains the bucket.
 */
const COMPOSED_ONCE: readonly (string | undefined)[] = ['DynamoDB', 'SQS'];

/** Each client asks for it when it is created. */
export function getUserAgentPlugin(config: { serviceId?: string; cacheMiddleware?: boolean }) {
  config.cacheMiddleware ??= COMPOSED_ONCE.includes(config.serviceId);
  return nothing;
}

export const createDefaultUserAgentProvider = () => async () => [];
