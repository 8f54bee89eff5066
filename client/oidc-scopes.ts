const SCOPES = 'openid email profile';

/**
 * `offline_access` asks for a refresh token. Issuers that give one anyway, such as Cognito, refuse scopes that they do not
 * know; they say which ones they know.
 */
export const scopesFor = (supported: unknown): string =>
  Array.isArray(supported) && !supported.includes('offline_access') ? SCOPES : `${SCOPES} offline_access`;
