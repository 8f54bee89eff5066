/**
 * Bundles contain this file in place of `@aws-sdk/core/client` (lib/bundle-functions.ts). Of what the SDK does for each request it
 * leaves out what nobody reads: the copy of input and output for a logger that is not set, and the user agent. It also lets some
 * clients compose their middleware once for each command instead of for each request, and without copies of their configuration.
 * Together this is almost half of the CPU time of a request.
 */
import { getSchemaSerdePlugin } from '@smithy/core/schema';

// @ts-expect-error The package has types for its entry points only; this is the file of the one that is replaced.
export * from '../../../node_modules/@aws-sdk/core/dist-es/submodules/client/index.js';

const nothing = { applyToStack: () => undefined };

export const getLoggerPlugin = () => nothing;

/**
 * What middleware finds out about a request is stored with its composition: concurrent requests share it. So only clients whose
 * endpoint and credentials are the same for all requests compose it once. The endpoint of S3 contains the bucket.
 */
const COMPOSED_ONCE: readonly (string | undefined)[] = ['DynamoDB', 'SQS'];

type Signer = (authScheme?: object) => Promise<unknown>;

interface Config {
  serviceId?: string;
  cacheMiddleware?: boolean;
  signer?: Signer;
  streamCollector?: unknown;
}

/** Each client asks for it when it is created. */
export function getUserAgentPlugin(config: Config) {
  const isComposedOnce = COMPOSED_ONCE.includes(config.serviceId);
  config.cacheMiddleware ??= isComposedOnce;
  if (!isComposedOnce) return nothing;
  if (config.signer) config.signer = createdOnce(config.signer);
  // In place of the same plugin with the whole configuration.
  return getSchemaSerdePlugin(cheaplyCopied(config) as never);
}

/**
 * To write and read each request, the SDK passes on a copy of the configuration, of almost a hundred fields. The protocol of these
 * clients uses only this one of the copy; the others stay readable.
 */
const cheaplyCopied = (config: Config): Config =>
  Object.assign(Object.create(config), { streamCollector: config.streamCollector });

/** The SDK would create a signer with a copy of the whole configuration for each request. Region and service stay the same. */
function createdOnce(create: Signer): Signer {
  const signers = new WeakMap<object, Promise<unknown>>();
  const noScheme = {};
  return (authScheme) => {
    const known = signers.get(authScheme ?? noScheme);
    if (known) return known;
    const created = create(authScheme);
    signers.set(authScheme ?? noScheme, created);
    created.catch(() => signers.delete(authScheme ?? noScheme));
    return created;
  };
}

export const createDefaultUserAgentProvider = () => async () => [];
