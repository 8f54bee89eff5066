/**
 * Bundles contain this file in place of `@smithy/core/endpoints` (lib/bundle-functions.ts). The package copies the configuration of
 * the client and looks for its endpoint with each request. A client whose requests all have the same endpoint finds it once.
 */
// @ts-expect-error The package has types for its entry points only; this is the file of the one that is replaced.
import { getEndpointPlugin as ofPackage } from '../../../node_modules/@smithy/core/dist-es/submodules/endpoints/index.js';

// @ts-expect-error The same.
export * from '../../../node_modules/@smithy/core/dist-es/submodules/endpoints/index.js';

type Handler = (parameters: object) => Promise<unknown>;
type Middleware = (next: Handler, context: { endpointV2?: object; authSchemes?: object }) => Handler;
interface Stack {
  addRelativeTo(middleware: Middleware, place: object): void;
}

export function getEndpointPlugin(config: { cacheMiddleware?: boolean }, instructions: object) {
  const plugin = ofPackage(config, instructions) as { applyToStack(stack: Stack): void };
  // Only clients with composed middleware (aws-sdk-plugins.ts) keep what it finds.
  if (!config.cacheMiddleware) return plugin;
  return {
    applyToStack: (stack: Stack) =>
      plugin.applyToStack({ addRelativeTo: (middleware, place) => stack.addRelativeTo(onlyOnce(middleware), place) }),
  };
}

/** An endpoint with its own way to sign also changes each request. */
const onlyOnce =
  (findEndpoint: Middleware): Middleware =>
  (next, context) => {
    const find = findEndpoint(next, context);
    return (parameters) => (context.endpointV2 && !context.authSchemes ? next(parameters) : find(parameters));
  };
