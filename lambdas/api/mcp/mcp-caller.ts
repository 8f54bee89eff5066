import { type HttpEvent, Problem } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import { isSessionToken, openSessionToken, type SessionToken } from '../../run-changes/session/session-token.ts';
import type { SessionAuthenticator } from '../actions/authenticate-session.ts';
import { type Caller, callerForTools, requireRight } from '../authorizer/caller.ts';
import { metadataUrl } from './protected-resource.ts';

/** Who uses the tools: a person or program, or the session of a run. */
export type McpCaller = { session: SessionToken } | { caller: Caller };

/** Throws a 401 that says where the metadata of the resource is: OAuth clients find the issuer with it. */
export async function mcpCallerOf(authenticator: SessionAuthenticator, event: HttpEvent): Promise<McpCaller> {
  try {
    return await identified(authenticator, event);
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
    const challenge = `Bearer resource_metadata="${metadataUrl(event)}"`;
    throw new Problem(401, error.code, error.message, {}, { 'www-authenticate': challenge });
  }
}

async function identified(authenticator: SessionAuthenticator, event: HttpEvent): Promise<McpCaller> {
  const [, bearer = ''] = /^Bearer +(\S+)$/i.exec(event.headers?.authorization ?? '') ?? [];
  if (isSessionToken(bearer)) {
    const session = openSessionToken(bearer, await authenticator.sessionSecret(), isoNow(authenticator.clock));
    if (session) return { session };
    throw new Problem(401, 'UNAUTHORIZED', 'the token of the session is not valid, or its step has ended');
  }
  const caller = callerForTools(event);
  requireRight(caller, 'runs:start');
  return { caller };
}
