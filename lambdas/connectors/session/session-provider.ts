import type { Access } from '../connector.ts';

/** What a session gets with its prompt, so that it can act and complete. */
export interface SessionContract {
  tenant: string;
  runId: string;
  stepId: string;
  /** The same for every attempt: a provider that has a session with this key must not be asked for another. */
  sessionKey: string;
  promptKey: string;
  completionId: string;
  /** The run-scoped token. */
  token: string;
  until: string;
  /** The URL of this stage's API. */
  ownUrl: string;
}

export interface StartedSession {
  sessionId: string;
}

/** `ended`: it has finished or was canceled. `dead`: it failed. `missing`: the provider does not know it. */
export type SessionState = 'working' | 'ended' | 'dead' | 'missing';

export interface SessionPrompt {
  /** What the session shall do. */
  text: string;
  /** What it may use, as data. */
  data: Record<string, unknown>;
}

/**
 * Where sessions run. Each call is one request, without retries. Errors say whether the provider can have acted
 * (`TargetRefused`: no; `OutcomeUnknown`: perhaps).
 */
export interface SessionProvider {
  /** Starts a session and prompts it, in one request that returns before the session has done its work. */
  start(access: Access, url: string, contract: SessionContract, prompt: SessionPrompt): Promise<StartedSession>;
  /** The session that an earlier attempt may have started with this key. */
  find(access: Access, url: string, sessionKey: string): Promise<StartedSession | undefined>;
  state(access: Access, url: string, sessionId: string): Promise<SessionState>;
  /** Asks the provider to end the session. One that has ended is no error. */
  end(access: Access, url: string, sessionId: string): Promise<void>;
}
