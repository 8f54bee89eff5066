import { EXIT, Failure } from '../commands/failure.ts';
import type { Profile, Profiles, SignIn } from './profiles.ts';

/** A token that is about to expire is replaced before it is used. */
const REFRESH_BEFORE_MS = 60_000;

export const apiKeyHeaders = (apiKey: string): Record<string, string> => ({ 'x-api-key': apiKey });
export const tokenHeaders = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

/** The headers that identify the person of a profile. A token that is about to expire is refreshed and stored first. */
export async function headersOf(profiles: Profiles, name: string, profile: Profile): Promise<Record<string, string>> {
  if (profile.apiKey !== undefined) return apiKeyHeaders(profile.apiKey);
  const { signIn, url } = profile;
  const now = () => Date.now();
  if (signIn && !needsRefresh(signIn, now())) return tokenHeaders(signIn.token);
  const { refresh } = await import('./oidc-sign-in.ts');
  const refreshed = signIn && (await refresh(signIn, now));
  if (refreshed) {
    profiles.save(name, { ...profile, signIn: refreshed }, { makeCurrent: false });
    return tokenHeaders(refreshed.token);
  }
  // Another command may have refreshed it at the same time, which makes our refresh token invalid.
  const stored = profiles.named(name).signIn;
  if (stored && !needsRefresh(stored, now())) return tokenHeaders(stored.token);
  throw new Failure(EXIT.refused, `your sign-in at ${url} has expired; run: countersign login ${url}`);
}

const needsRefresh = ({ expiresAt }: SignIn, now: number): boolean => Date.parse(expiresAt) - REFRESH_BEFORE_MS <= now;
