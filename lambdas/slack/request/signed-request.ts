import { type HttpEvent, Problem, rawBody } from '../../entry/http.ts';
import type { Clock, Log } from '../../entry/ports.ts';
import { isSigned } from '../../intake/signature.ts';
import type { TriggerSource } from '../../run/run.ts';
import type { TeamTenants } from './team-tenants.ts';

/** A modal comes back with all its fields twice, each letter escaped for JSON and for the form; a function takes 6 MB. */
const BODY_MAX_BYTES = 4 * 1024 * 1024;

/** What every endpoint for Slack needs to know who is speaking. */
export interface SlackEndpoint {
  teams: Pick<TeamTenants, 'tenants' | 'of'>;
  secrets: { secretsFor(tenant: string, source: TriggerSource | 'slack'): Promise<readonly string[]> };
  clock: Clock;
  log: Log;
}

/** The bytes of a request, as text; refused before anything reads them if they are too many. */
export function bodyText(event: HttpEvent): string {
  const body = rawBody(event);
  if (body.length <= BODY_MAX_BYTES) return body.toString('utf8');
  throw new Problem(413, 'TOO_LARGE', `the body has ${body.length} bytes; at most ${BODY_MAX_BYTES} are taken`);
}

/**
 * The tenant whose secret signed this. The team in the body only says whose secret to try; a team nobody knows and a
 * signature that does not fit are refused alike.
 */
export async function tenantSpeaking(door: SlackEndpoint, event: HttpEvent, team: string | undefined): Promise<string> {
  const found = await door.teams.of(team ?? '');
  // A workspace that nobody has connected is looked up and compared like one that somebody has.
  const signers = await signedBy(door, event, found.length > 0 ? found : [nobodyOf(team)]);
  const [tenant] = signers;
  if (tenant !== undefined && signers.length === 1) return tenant;
  if (signers.length > 1) {
    door.log.error('one Slack workspace and secret belong to several tenants; give each its own', { team, signers });
  }
  throw new Problem(401, 'UNAUTHORIZED', 'the signature does not match this workspace, body and time');
}

/** Named so that no tenant can have the name. */
const nobodyOf = (team: string | undefined): string => `team ${team ?? ''}`;

/** Those of the tenants whose secret signed this. */
export async function signedBy(door: SlackEndpoint, event: HttpEvent, tenants: readonly string[]): Promise<string[]> {
  const body = rawBody(event);
  const nowMs = door.clock.now();
  const secrets = await Promise.all(tenants.map((tenant) => door.secrets.secretsFor(tenant, 'slack')));
  return tenants.filter((_tenant, index) => isSigned('slack', secrets[index] ?? [], body, event.headers, nowMs));
}
