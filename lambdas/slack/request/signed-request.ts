import { type HttpEvent, Problem, rawBody } from '../../entry/http.ts';
import type { Clock, Log } from '../../entry/ports.ts';
import { isSigned } from '../../intake/signature.ts';
import type { SigningSecrets } from '../../intake/signing-secrets.ts';
import type { TeamTenants } from './team-tenants.ts';

/** What every endpoint for Slack needs to authenticate a request. */
export interface SlackEndpoint {
  teams: Pick<TeamTenants, 'tenants' | 'of'>;
  secrets: SigningSecrets;
  clock: Clock;
  log: Log;
}

/**
 * The tenant whose secret signed the request. The team in the body only selects the secrets to try. An unknown team and a
 * wrong signature get the same response.
 */
export async function tenantOfRequest(
  endpoint: SlackEndpoint,
  event: HttpEvent,
  team: string | undefined,
): Promise<string> {
  const found = await endpoint.teams.of(team ?? '');
  // An unknown workspace takes the same time as a known one.
  const signers = await signedBy(endpoint, event, found.length > 0 ? found : [noTenant(team)]);
  const [tenant] = signers;
  if (tenant !== undefined && signers.length === 1) return tenant;
  if (signers.length > 1) {
    endpoint.log.error('several tenants have the same Slack workspace and secret', { team, signers });
  }
  throw new Problem(401, 'UNAUTHORIZED', 'the signature does not match this workspace, body and time');
}

/** Not a valid name of a tenant. */
const noTenant = (team: string | undefined): string => `team ${team ?? ''}`;

/** The tenants whose secret signed the request. */
export async function signedBy(
  endpoint: SlackEndpoint,
  event: HttpEvent,
  tenants: readonly string[],
): Promise<string[]> {
  const body = rawBody(event);
  const nowMs = endpoint.clock.now();
  const secrets = await Promise.all(tenants.map((tenant) => endpoint.secrets.secretsFor(tenant, 'slack')));
  return tenants.filter((_tenant, index) => isSigned('slack', secrets[index] ?? [], body, event.headers, nowMs));
}
