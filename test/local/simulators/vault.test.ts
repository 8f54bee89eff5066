import { afterEach, beforeEach, expect, test } from 'vitest';
import { openWorld, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const vault = (method: string, path: string, body?: unknown, token = 'local-root') =>
  world.ask(method, `/vault/v1${path}`, body, { 'x-vault-token': token });

test('a login returns a token that is valid until it expires', async () => {
  const wrong = await vault('POST', '/auth/approle/login', { role_id: 'r', secret_id: 'guess' }, '');
  expect([wrong.status, wrong.body]).toEqual([400, { errors: ['invalid role or secret ID'] }]);
  const { auth } = (await vault('POST', '/auth/approle/login', { role_id: 'r', secret_id: 'local-secret-id' }, ''))
    .body;
  expect(
    (await vault('GET', '/secret/data/payments/database', undefined, auth.client_token)).body.data.data.username,
  ).toBe('payments');
  world.nowMs += auth.lease_duration * 1000;
  expect(await vault('GET', '/secret/data/github', undefined, auth.client_token)).toMatchObject({
    status: 403,
    body: { errors: ['permission denied'] },
  });
  expect(JSON.stringify(await world.calls())).not.toContain('local-secret-id');
});

test('every version of a secret can be read', async () => {
  await vault('POST', '/secret/data/app', { data: { key: 'one' } });
  await vault('POST', '/secret/data/app', { data: { key: 'two' } });
  expect((await vault('GET', '/secret/data/app')).body.data).toMatchObject({
    data: { key: 'two' },
    metadata: { version: 2 },
  });
  expect((await vault('GET', '/secret/data/app?version=1')).body.data.data).toEqual({ key: 'one' });
  expect((await vault('GET', '/secret/data/nothing')).body).toEqual({ errors: [] });
});

test('a lease can be renewed until it expires or is revoked', async () => {
  const lease = async () => (await vault('GET', '/database/creds/readonly')).body;
  const { lease_id, lease_duration } = await lease();
  const renew = (id: string) => vault('POST', '/sys/leases/renew', { lease_id: id, increment: lease_duration });
  world.nowMs += lease_duration * 1000 - 1;
  expect((await renew(lease_id)).body).toMatchObject({ lease_id, lease_duration });
  world.nowMs += lease_duration * 1000;
  expect(await renew(lease_id)).toMatchObject({ status: 400, body: { errors: ['lease not found'] } });
  const other = await lease();
  expect((await vault('POST', '/sys/leases/revoke', { lease_id: other.lease_id })).status).toBe(204);
  expect((await renew(other.lease_id)).status).toBe(400);
  expect(other.data.password).not.toBe((await lease()).data.password);
});
