import { generateKeyPairSync, verify } from 'node:crypto';
import { inspect } from 'node:util';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Access } from '../../lambdas/connectors/connector.ts';
import { addLabels } from '../../lambdas/connectors/github/labels.ts';
import { SecretsConnections } from '../../lambdas/connectors/secrets-connections.ts';
import { getIncident } from '../../lambdas/connectors/servicenow/incidents.ts';
import { TokenCache } from '../../lambdas/connectors/token-cache.ts';
import { seededSysId } from '../../local/simulators/servicenow/seed.ts';
import { FakeClock, STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { openWorld, type World } from '../local/simulators/world.ts';

const MINUTE_MS = 60_000;
const LATER = { code: 'TARGET_REFUSED', retryable: true };
const REFUSED = { code: 'TARGET_REFUSED', retryable: false };
const CANARY = 'CANARY-of-the-credential';

const { publicKey, privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

const KINDS = [
  {
    kind: 'an OAuth client of ServiceNow',
    system: 'servicenow',
    credential: { clientId: 'countersign', clientSecret: CANARY },
    grantPath: '/oauth_token.do',
    operation: getIncident,
    input: { sysId: seededSysId('INC0010001'), fields: ['number'] },
    method: 'GET',
    lifetimeMs: 1_799_000,
  },
  {
    kind: 'a GitHub App',
    system: 'github',
    credential: { appId: 4711, installationId: '42', privateKeyPem: privateKey },
    grantPath: '/app/installations/42/access_tokens',
    operation: addLabels,
    input: { owner: 'octo-org', repo: 'payments', number: 7, labels: ['triage'] },
    method: 'POST',
    lifetimeMs: 3_600_000,
  },
];

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.close());

describe.each(KINDS)(
  'the token of $kind',
  ({ system, credential, grantPath, operation, input, method, lifetimeMs }) => {
    let access: Access;
    beforeEach(async () => {
      const token = new TokenCache(() => world.nowMs);
      access = { baseUrl: `${world.url}/_sim/${system}`, instance: 'acme', credential, token };
      await world.ask('DELETE', '/calls');
      await world.ask('DELETE', '/faults');
    });
    const call = () => operation.perform(input, { access, mark: 'm', openSince: STORY_BEGINS_AT });
    const paths = async () => (await world.calls(`?system=${system}`)).map(({ path }) => String(path));
    const grants = async () => (await paths()).filter((path) => path === grantPath).length;
    const order = (fault: object) => world.ask('POST', '/faults', { system, kind: 'status', ...fault });
    const notGranting = { method, path: method === 'GET' ? 'incident' : 'labels' };

    it('is granted once for many calls, concurrent or successive', async () => {
      await Promise.all([call(), call()]);
      await call();
      expect(await grants()).toBe(1);
      expect((await paths()).length).toBe(4);
    });

    it('is requested again shortly before it expires', async () => {
      await call();
      world.nowMs += lifetimeMs - 2 * MINUTE_MS;
      await call();
      expect(await grants()).toBe(1);
      world.nowMs += 1.5 * MINUTE_MS;
      await call();
      expect(await grants()).toBe(2);
    });

    it('is dropped when the target rejects it, and the call may be retried with a new one', async () => {
      await call();
      await order({ ...notGranting, status: 401 });
      await expect(call()).rejects.toMatchObject(LATER);
      expect(await grants()).toBe(1);
      await call();
      expect(await grants()).toBe(2);
    });

    it('is not requested again if a new one is rejected', async () => {
      await order({ ...notGranting, status: 401 });
      await expect(call()).rejects.toMatchObject(REFUSED);
      expect(await grants()).toBe(1);
    });

    it.each([
      [{ status: 503 }, LATER],
      [{ kind: 'lost_answer' }, LATER],
      [{ kind: 'other_body', body: { token: CANARY } }, LATER],
      [{ status: 401, body: { error: CANARY } }, REFUSED],
    ])('that is not granted, for %j, means that the call was not made', async (fault, meaning) => {
      await order({ path: grantPath, ...fault });
      const failure = await call().catch((error: unknown) => error);
      expect(failure).toMatchObject(meaning);
      expect(inspect(failure, { depth: 10 })).not.toContain(CANARY);
      expect(await paths()).toEqual([grantPath]);
      await call();
    });

    it('cannot be used on a connection that cannot cache one', async () => {
      const { token: _none, ...keepsNone } = access;
      const calling = operation.perform(input, { access: keepsNone, mark: 'm', openSince: STORY_BEGINS_AT });
      await expect(calling).rejects.toMatchObject({ code: 'CONNECTION_MISSING' });
    });
  },
);

describe('a GitHub App', () => {
  const access = (privateKeyPem: string): Access => ({
    baseUrl: 'http://github',
    instance: 'acme',
    credential: { appId: 4711, installationId: 42, privateKeyPem },
    token: new TokenCache(() => Date.parse(STORY_BEGINS_AT)),
  });
  const input = { owner: 'o', repo: 'r', number: 7, labels: ['a'] };
  const performance = (privateKeyPem: string) => ({
    access: access(privateKeyPem),
    mark: 'm',
    openSince: STORY_BEGINS_AT,
  });

  it('authenticates with a signed JWT and then uses the granted token', async () => {
    const sent: { url: string; authorization: string }[] = [];
    vi.stubGlobal('fetch', async (url: string, { headers }: { headers: { authorization: string } }) => {
      sent.push({ url, authorization: headers.authorization });
      return Response.json(sent.length === 1 ? { token: 'ghs_granted', expires_at: '2099-01-01T00:00:00Z' } : []);
    });
    await addLabels.perform(input, performance(privateKey)).finally(() => vi.unstubAllGlobals());
    const [head = '', claim = '', signature = ''] = (sent[0]?.authorization ?? '').replace('Bearer ', '').split('.');
    const decoded = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
    const nowSeconds = Date.parse(STORY_BEGINS_AT) / 1000;
    expect(decoded(head)).toEqual({ alg: 'RS256', typ: 'JWT' });
    expect(decoded(claim)).toEqual({ iss: '4711', iat: nowSeconds - 60, exp: nowSeconds + 480 });
    expect(verify('RSA-SHA256', Buffer.from(`${head}.${claim}`), publicKey, Buffer.from(signature, 'base64url'))).toBe(
      true,
    );
    expect(sent[1]?.authorization).toBe('Bearer ghs_granted');
  });

  it('with an invalid key gets an error without the key', async () => {
    const failure = await addLabels.perform(input, performance(CANARY)).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'CONNECTION_MISSING' });
    expect(inspect(failure, { depth: 10 })).not.toContain(CANARY);
  });
});

it('a connection reuses its token until its credential changes', async () => {
  const definitions = new MemoryDefinitions();
  await definitions.saveConnection('acme', { name: 'github', baseUrl: 'https://api.github.com', instance: 'acme' });
  let secret = { github: { token: 'first' } };
  const client = new SecretsManagerClient({ region: 'us-east-1' });
  Object.assign(client, { send: async () => ({ SecretString: JSON.stringify(secret) }) });
  const clock = new FakeClock();
  const connections = new SecretsConnections(client, definitions, { acme: 'arn' }, () => clock.now());
  const tokenAMinuteLater = async () => {
    clock.advance(MINUTE_MS + 1);
    return (await connections.open('acme', 'github')).token;
  };
  const cached = await tokenAMinuteLater();
  expect(cached).toBeInstanceOf(TokenCache);
  expect(await tokenAMinuteLater()).toBe(cached);
  secret = { github: { token: 'rotated' } };
  expect(await tokenAMinuteLater()).not.toBe(cached);
});
