import { didYouMean } from '../entry/did-you-mean.ts';
import { CountersignError } from '../run/errors.ts';
import { BEDROCK } from './connections.ts';
import type { Access } from './connector.ts';
import { githubCredential } from './github/client.ts';
import { httpCredential } from './http/request.ts';
import { routingKeyOf } from './pagerduty/events.ts';
import { servicenowCredential } from './servicenow/client.ts';
import { agentCredential } from './session/a2a-provider.ts';
import { botTokenOf } from './slack/client.ts';

/** Reads a credential as the connector does; throws CONNECTION_MISSING, with what it needs, if it cannot. */
const READ: Record<ConnectionKind, (access: Pick<Access, 'credential'>) => unknown> = {
  servicenow: servicenowCredential,
  github: githubCredential,
  slack: botTokenOf,
  pagerduty: routingKeyOf,
  http: httpCredential,
  a2a: agentCredential,
};

/** The systems that a tenant can connect, each under its own name. Bedrock uses the role of the function. */
export const SYSTEMS = ['servicenow', 'github', 'slack', 'pagerduty', 'http'] as const;
export type ConnectionKind = (typeof SYSTEMS)[number] | 'a2a';

/** Every other name is the connection of an agent that speaks A2A, for sessions. */
export const kindOf = (connection: string): ConnectionKind => SYSTEMS.find((name) => name === connection) ?? 'a2a';

const NAME_OF_AGENT = /^[a-z][a-z0-9-]{0,62}$/;

/** Why no connection can have this name. One that is close to a system is probably a mistake. */
export function nameProblem(connection: string): string | undefined {
  if (kindOf(connection) !== 'a2a') return undefined;
  const close = didYouMean(connection, [...SYSTEMS, BEDROCK]);
  if (NAME_OF_AGENT.test(connection) && connection !== BEDROCK && close === '') return undefined;
  const names = `${SYSTEMS.join(', ')}, or a name of your own for an agent of sessions, like triage-agent`;
  return `${connection} is not a name of a connection${close || `; the names are: ${names}`}`;
}

/** A private key is text of several lines, which ends with a line end. */
const TEXT_OF_LINES = 'privateKeyPem';

/** Why a connector could not use this credential; undefined if it could. Never quotes the credential. */
export function credentialProblem(connection: string, credential: unknown): string | undefined {
  try {
    READ[kindOf(connection)]({ credential });
  } catch (error) {
    if (error instanceof CountersignError) return error.message;
    throw error;
  }
  return textProblem(credential, connection);
}

/** Empty texts, and white space that was copied by mistake. */
function textProblem(value: unknown, path: string): string | undefined {
  if (typeof value === 'string') {
    if (value.trim() === '') return `${path} is empty`;
    return value === value.trim() || path.endsWith(TEXT_OF_LINES)
      ? undefined
      : `${path} begins or ends with white space`;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    const problem = textProblem(inner, `${path}.${name}`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
