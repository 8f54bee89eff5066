import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { systemClock } from '../entry/system.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { SecretsConnections } from './secrets-connections.ts';

/** The connections whose credentials are in these secrets, one for each tenant. */
export function systemConnections(
  definitions: Pick<Definitions, 'connection'>,
  secretIds: Record<string, string>,
): SecretsConnections {
  return new SecretsConnections(new SecretsManagerClient(), definitions, secretIds, systemClock.now);
}
