import { expect, it } from 'vitest';
import { scopesFor } from '../../client/oidc-scopes.ts';

it('asks for a refresh token, unless the issuer says that it does not know the scope, as Cognito does', () => {
  expect(scopesFor(['openid', 'email', 'offline_access'])).toBe('openid email profile offline_access');
  expect(scopesFor(undefined)).toBe('openid email profile offline_access');
  expect(scopesFor(['openid', 'email', 'phone', 'profile'])).toBe('openid email profile');
});
