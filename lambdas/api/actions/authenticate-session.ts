import { type HttpEvent, Problem } from '../../entry/http.ts';
import { type Clock, isoNow } from '../../entry/ports.ts';
import { openSessionToken, type SessionToken } from '../../run-changes/session/session-token.ts';

export interface SessionAuthenticator {
  sessionSecret: () => Promise<string>;
  clock: Clock;
}

/** The session whose token signs the request. It reaches its own run only: any other one does not exist for it. */
export async function authenticateSession(
  { sessionSecret, clock }: SessionAuthenticator,
  headers: HttpEvent['headers'],
  runId: string,
): Promise<SessionToken> {
  const [, bearer] = /^Bearer +(\S+)$/i.exec(headers?.authorization ?? '') ?? [];
  const token = bearer === undefined ? undefined : openSessionToken(bearer, await sessionSecret(), isoNow(clock));
  if (!token) {
    const detail = 'send the token of the prompt as Authorization: Bearer; it expires with the step of the session';
    throw new Problem(401, 'UNAUTHORIZED', detail);
  }
  if (token.runId === runId) return token;
  throw new Problem(404, 'NOT_FOUND', `there is no run ${runId} for this session`);
}
