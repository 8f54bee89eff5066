import {
  CALLBACK_PATH,
  finishSignIn,
  type Issuer,
  leaveForIssuer,
  listIssuers,
  renewTokens,
  SignInRefused,
  type Tokens,
} from './oidc.ts';

/**
 * Who is signed in. Tokens are in the memory of this page only, so a reload asks the issuer again, without a question as
 * long as the issuer knows the person.
 */
export type Session =
  | { state: 'starting' }
  | { state: 'signed_out'; issuers: readonly Issuer[]; reason?: string }
  | { state: 'signed_in'; tokens: Tokens }
  /** The pages stay as they are, with what was typed. */
  | { state: 'expired'; tokens: Tokens };

/** The name of the last issuer of this tab. */
const LAST_ISSUER = 'countersign.issuer';
/** What people typed, by page. The next person who signs in must not see it. */
const DRAFTS = 'countersign.draft.';

/** What issuers return for `prompt=none` if they would have to ask the person something. */
const ASKS = ['login_required', 'interaction_required', 'consent_required', 'account_selection_required'];

let session: Session = { state: 'starting' };
let renewing: Promise<boolean> | undefined;
const listeners = new Set<() => void>();

export const currentSession = (): Session => session;

export function onSessionChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function change(next: Session): void {
  session = next;
  for (const listener of listeners) listener();
}

/** Finishes a sign-in, or starts one if this tab was signed in before. */
export async function startSession(): Promise<void> {
  const address = new URL(location.href);
  try {
    if (address.pathname === CALLBACK_PATH && address.searchParams.has('state')) {
      // The code must not stay in the history of the browser, also if the issuer refuses it.
      history.replaceState(null, '', CALLBACK_PATH);
      const { tokens, returnTo } = await finishSignIn(address);
      // With the origin: a path that begins with two slashes would be the address of another host.
      history.replaceState(null, '', `${location.origin}${returnTo}`);
      sessionStorage.setItem(LAST_ISSUER, tokens.issuer.name);
      return change({ state: 'signed_in', tokens });
    }
    const issuers = await listIssuers();
    const last = issuers.find(({ name }) => name === sessionStorage.getItem(LAST_ISSUER));
    if (last) return leaveForIssuer(last, { returnTo: hereOrHome(), prompt: 'none' });
    change({ state: 'signed_out', issuers });
  } catch (error) {
    sessionStorage.removeItem(LAST_ISSUER);
    // The issuer does not know the person any more: nothing went wrong.
    const asks = error instanceof SignInRefused && ASKS.includes(error.code);
    const reason = error instanceof SignInRefused ? error.message : 'The API does not respond. Try again in a moment.';
    const issuers = await listIssuers().catch(() => []);
    change({ state: 'signed_out', issuers, ...(!asks && { reason }) });
  }
}

/** The path of this page, unless it is the one that the issuer returns to. */
export const hereOrHome = (): string =>
  location.pathname === CALLBACK_PATH ? '/' : `${location.pathname}${location.search}${location.hash}`;

/** The headers of a request of the signed-in person. */
export function credentials(): Record<string, string> {
  return 'tokens' in session ? { authorization: `Bearer ${session.tokens.token}` } : {};
}

/** After the API refused the token: true if there is a new one. Otherwise the person has to sign in again. */
export function renewSession(): Promise<boolean> {
  renewing ??= renewOnce().finally(() => {
    renewing = undefined;
  });
  return renewing;
}

async function renewOnce(): Promise<boolean> {
  if (session.state !== 'signed_in') return false;
  const tokens = await renewTokens(session.tokens);
  change(tokens ? { state: 'signed_in', tokens } : { state: 'expired', tokens: session.tokens });
  return tokens !== undefined;
}

/** Signs in again after the session has expired, and returns to this page. */
export async function signInAgain(): Promise<void> {
  if (session.state === 'expired') await leaveForIssuer(session.tokens.issuer, { returnTo: hereOrHome() });
}

/** Forgets the person and what they typed, and lets another one sign in. */
export async function signOut(): Promise<void> {
  if (!('tokens' in session)) return;
  const { issuer } = session.tokens;
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(DRAFTS)) sessionStorage.removeItem(key);
  sessionStorage.removeItem(LAST_ISSUER);
  await leaveForIssuer(issuer, { returnTo: '/', prompt: 'select_account' });
}

export const draftKey = (name: string): string => `${DRAFTS}${name}`;
