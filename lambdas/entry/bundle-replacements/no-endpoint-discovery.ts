/**
 * Bundles contain this file in place of `@aws-sdk/middleware-endpoint-discovery` (lib/bundle-functions.ts) with its cache. DynamoDB
 * uses it only if it is switched on.
 */
export const resolveEndpointDiscoveryConfig = <Config>(config: Config): Config => config;

const notSet = () => undefined;
export const NODE_ENDPOINT_DISCOVERY_CONFIG_OPTIONS = {
  environmentVariableSelector: notSet,
  configFileSelector: notSet,
  default: undefined,
};
