import { CountersignError } from '../run/errors.ts';
import type { Access } from './connector.ts';
import { githubCredential } from './github/client.ts';
import { httpCredential } from './http/request.ts';
import { routingKeyOf } from './pagerduty/events.ts';
import { servicenowCredential } from './servicenow/client.ts';
import { botTokenOf } from './slack/client.ts';

/** Reads a credential as the connector does; throws CONNECTION_MISSING, with what it needs, if it cannot. */
const READ: Record<ConnectionName, (access: Pick<Access, 'credential'>) => unknown> = {
  servicenow: servicenowCredential,
  github: githubCredential,
  slack: botTokenOf,
  pagerduty: routingKeyOf,
  http: httpCredential,
};

/** The systems that a tenant can connect. Bedrock uses the role of the function. */
export const CONNECTION_NAMES = ['servicenow', 'github', 'slack', 'pagerduty', 'http'] as const;
export type ConnectionName = (typeof CONNECTION_NAMES)[number];

export const isConnectionName = (name: string): name is ConnectionName =>
  (CONNECTION_NAMES as readonly string[]).includes(name);

/** A private key is text of several lines, which ends with a line end. */
const TEXT_OF_LINES = 'privateKeyPem';

/** Why a connector could not use this credential; undefined if it could. Never quotes the credential. */
export function credentialProblem(connection: ConnectionName, credential: unknown): string | undefined {
  try {
    READ[connection]({ credential });
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
