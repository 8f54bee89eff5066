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

test('revoking a token revokes its leases, and a renewal can shorten its time', async () => {
  const { auth } = (await vault('POST', '/auth/approle/login', { role_id: 'r', secret_id: 'local-secret-id' }, ''))
    .body;
  const as = (method: string, path: string, body?: unknown) => vault(method, path, body, auth.client_token);
  expect((await as('POST', '/auth/token/renew-self', { increment: 300 })).body.auth.lease_duration).toBe(300);
  expect((await as('GET', '/auth/token/lookup-self')).body.data).toMatchObject({ ttl: 300, accessor: auth.accessor });
  const { lease_id } = (await as('GET', '/database/creds/orders-maintenance')).body;
  expect((await vault('PUT', '/sys/leases/lookup', { lease_id })).body.data.ttl).toBe(120);
  expect((await as('POST', '/auth/token/revoke-self', {})).status).toBe(204);
  expect((await vault('PUT', '/sys/leases/lookup', { lease_id })).status).toBe(400);
  expect((await as('GET', '/secret/data/github')).status).toBe(403);
});

test('a login with AWS needs a signed request to STS', async () => {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const login = {
    role: 'agent',
    iam_http_request_method: 'POST',
    iam_request_url: base64('https://sts.amazonaws.com/'),
    iam_request_body: base64('Action=GetCallerIdentity&Version=2011-06-15'),
    iam_request_headers: base64('{"authorization":"none"}'),
  };
  expect((await vault('POST', '/auth/aws/login', login, '')).status).toBe(400);
});

test('the audit log has the id of each response', async () => {
  const { request_id } = (await vault('GET', '/secret/data/github')).body;
  const { entries } = (await vault('GET', '/_audit')).body;
  expect(entries).toMatchObject([{ request: { id: request_id, operation: 'read', path: 'secret/data/github' } }]);
});
