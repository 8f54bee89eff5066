import { createHmac, generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { authenticate } from '../../../lambdas/api/authorizer/authenticate.ts';
import { configuredIssuers } from '../../../lambdas/api/authorizer/configured-issuers.ts';
import { IssuerKeys } from '../../../lambdas/api/authorizer/issuer-keys.ts';
import { Unauthenticated } from '../../../lambdas/api/authorizer/unauthenticated.ts';
import { NO_SETTINGS } from '../../../lambdas/run/settings/caps.ts';
import { ANA, BEN, OLIVIA } from '../../approval/people.ts';
import { byTest } from '../../fakes/by-test.ts';
import { MemoryApiKeys } from '../../fakes/memory/memory-api-keys.ts';
import { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';
import { encoded, TestIssuer } from './oidc-issuer.ts';

const URL_OF_ISSUER = 'https://login.example.com';
const ISSUER = { name: 'okta', issuer: URL_OF_ISSUER, audience: 'countersign', tenant: 'acme' };
const GLOBEX = { ...ISSUER, name: 'globex', audience: 'countersign-globex', tenant: 'globex' };
const SUBJECT = `oidc:${URL_OF_ISSUER}#sub-1`;
const MINUTE_MS = 60_000;

let issuer: TestIssuer;
let definitions: MemoryDefinitions;
let keys: MemoryApiKeys;
let failures: string[];
let stageKind: 'prod' | 'dev';

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  issuer = await new TestIssuer(URL_OF_ISSUER).addKey('key-1');
  definitions = new MemoryDefinitions();
  keys = new MemoryApiKeys();
  failures = [];
  stageKind = 'dev';
  await definitions.savePerson('acme', { ...ANA, identities: [SUBJECT] });
  authenticator = undefined;
});
afterEach(() => vi.useRealTimers());

let authenticator: Parameters<typeof authenticate>[0] | undefined;
const fetchFrom =
  (...issuers: TestIssuer[]) =>
  (url: string) => {
    const found = issuers.find((each) => url.startsWith(`${each.url}/`));
    return found ? found.fetch(url) : Promise.reject(new Error(`nothing at ${url}`));
  };

function call(token: string, further: TestIssuer[] = []) {
  const clock = { now: () => Date.now() };
  authenticator ??= {
    keys,
    definitions,
    clock,
    issuers: {
      find: configuredIssuers([ISSUER, GLOBEX], stageKind, definitions),
      keys: new IssuerKeys(fetchFrom(issuer, ...further), clock.now, (_issuer, error) => failures.push(String(error))),
    },
  };
  return authenticate(authenticator, { authorization: `Bearer ${token}` });
}
const refusal = (token: string) =>
  call(token).then(
    () => 'allowed',
    (error) => {
      if (!(error instanceof Unauthenticated)) throw error;
      return error.message;
    },
  );
const wait = (ms: number) => vi.setSystemTime(Date.now() + ms);

describe('a token', () => {
  it('is the person with its issuer and subject, with all rights of their role', async () => {
    const exp = Math.floor(Date.now() / 1000) + 60;
    expect(await call(await issuer.token({ exp }))).toEqual({
      tenant: 'acme',
      person: 'ana',
      role: ANA.role,
      credential: { kind: 'oidc', name: 'okta', expiresAt: new Date(exp * 1000).toISOString() },
    });
  });

  it.each([true, 'true'])(
    'is the person with its email address if the issuer has verified it (%j)',
    async (verified) => {
      await definitions.savePerson('acme', { ...BEN, identities: ['email:ben@example.com'] });
      const claims = { sub: 'sub-2', email: 'Ben@Example.com', email_verified: verified };
      expect(await call(await issuer.token(claims))).toMatchObject({ tenant: 'acme', person: 'ben' });
    },
  );

  it.each([undefined, false, 'false', 1, 'yes'])(
    'is nobody by an email address that is not verified (%j)',
    async (verified) => {
      await definitions.savePerson('acme', { ...BEN, identities: ['email:ben@example.com'] });
      const claims = { sub: 'sub-2', email: 'ben@example.com', email_verified: verified };
      expect(await refusal(await issuer.token(claims))).toContain('has not verified your email address');
    },
  );

  it('is the person with the subject, if another has the email address', async () => {
    await definitions.savePerson('acme', { ...BEN, identities: ['email:ben@example.com'] });
    const claims = { email: 'ben@example.com', email_verified: true };
    expect(await call(await issuer.token(claims))).toMatchObject({ person: 'ana' });
  });

  it('is a person of the tenant of its audience only, also if one email address is in two tenants', async () => {
    for (const tenant of ['acme', 'globex']) {
      await definitions.savePerson(tenant, { ...BEN, identities: ['email:ben@example.com'] });
    }
    const claims = { sub: 'sub-2', email: 'ben@example.com', email_verified: true };
    expect(await call(await issuer.token(claims))).toMatchObject({ tenant: 'acme', person: 'ben' });
    expect(await call(await issuer.token({ ...claims, aud: GLOBEX.audience }))).toMatchObject({ tenant: 'globex' });
    const both = await issuer.token({ ...claims, aud: [ISSUER.audience, GLOBEX.audience] });
    expect(await refusal(both)).toContain('for several audiences of this stage');
    await definitions.deletePerson('globex', { ...BEN, identities: ['email:ben@example.com'] }, byTest());
    expect(await refusal(await issuer.token({ ...claims, aud: GLOBEX.audience }))).toContain(
      'no person of this tenant',
    );
  });

  it('of a person who was deleted, or who lost the identity or a right, is refused at once', async () => {
    const token = await issuer.token();
    const ana = { ...ANA, identities: [SUBJECT] };
    await definitions.savePerson('acme', { ...ana, role: 'member' });
    expect(await call(token)).toMatchObject({ role: 'member' });
    await definitions.savePerson('acme', { ...ana, identities: [] });
    expect(await refusal(token)).toContain(`no person of this tenant has the identity ${SUBJECT}`);
    await definitions.savePerson('acme', ana);
    await definitions.deletePerson('acme', ana, byTest());
    expect(await refusal(token)).toContain('no person of this tenant');
  });
});

describe('a token is refused', () => {
  const [, payload] = ['', encoded({ iss: URL_OF_ISSUER, aud: 'countersign', sub: 'sub-1', exp: 9_999_999_999 })];

  it.each(['none', 'None', 'HS256', 'PS256', 'constructor', ''])('with the algorithm "%s"', async (alg) => {
    const header = encoded({ alg, kid: 'key-1' });
    const signature = createHmac('sha256', JSON.stringify((await issuer.publicKeys())[0])).update(
      `${header}.${payload}`,
    );
    expect(await refusal(`${header}.${payload}.${signature.digest('base64url')}`)).toContain('allowed are RS256');
    expect(issuer.requests).toEqual([]);
  });

  it.each(['', 'a', 'a.b', 'a.b.c', '..', `${encoded({ alg: 'ES256' })}..`, `${encoded([])}.${encoded(1)}.c`])(
    'that is malformed: "%s"',
    async (token) => {
      expect(await refusal(token)).toMatch(/malformed|Authorization/);
      expect(issuer.requests).toEqual([]);
    },
  );

  it('that is huge, before it is decoded', async () => {
    const token = await issuer.token({ filler: 'x'.repeat(100_000) });
    expect(await refusal(token)).toMatch(/^the token has \d+ characters; at most 8192 are accepted$/);
  });

  it.each([
    ['another audience', { aud: 'other' }],
    ['no audience', { aud: undefined }],
    ['an empty list of audiences', { aud: [] }],
    ['too many audiences', { aud: Array.from({ length: 11 }, (_, index) => `a${index}`) }],
    ['another issuer', { iss: 'https://login.example.org' }],
    ['its issuer spelled differently', { iss: `${URL_OF_ISSUER}/` }],
    ['no issuer', { iss: undefined }],
  ])('with %s, without asking any issuer', async (_what, claims) => {
    expect(await refusal(await issuer.token(claims))).toMatch(/accepts no tokens|no issuer/);
    expect(issuer.requests).toEqual([]);
  });

  it.each([
    ['has expired', { exp: -31 }, 'has expired'],
    ['is not valid yet', { nbf: 31 }, 'not valid yet'],
  ])('that %s, allowing for clocks that differ by 30 s', async (_what, claims, expected) => {
    const now = Math.floor(Date.now() / 1000);
    const [[name, seconds]] = Object.entries(claims) as [[string, number]];
    expect(await refusal(await issuer.token({ [name]: now + seconds }))).toContain(expected);
    expect(await refusal(await issuer.token({ [name]: now + seconds - 2 * Math.sign(seconds) }))).toBe('allowed');
  });

  it('that never expires', async () => {
    expect(await refusal(await issuer.token({ exp: undefined }))).toContain('never expires');
  });

  it.each([undefined, '', 's'.repeat(256)])('without a usable subject (%s)', async (sub) => {
    expect(await refusal(await issuer.token({ sub }))).toContain('no valid subject');
  });

  it('with an extension that it requires', async () => {
    const header = { alg: 'ES256', kid: 'key-1', crit: ['b64'] };
    expect(await refusal(`${encoded(header)}.${payload}.AAAA`)).toContain('requires an extension');
  });

  it('whose payload was changed after it was signed', async () => {
    const [header, , signature] = (await issuer.token()).split('.');
    expect(await refusal(`${header}.${payload}.${signature}`)).toContain('signature or a claim is wrong');
  });

  it('that another issuer signed with a key of the same id', async () => {
    const other = await new TestIssuer('https://evil.example').addKey('key-1');
    const forged = await other.token({ iss: URL_OF_ISSUER });
    expect(await refusal(forged)).toContain('signature or a claim is wrong');
    await definitions.saveSettings('globex', {
      ...NO_SETTINGS,
      issuers: [{ name: 'evil', issuer: other.url, audience: 'countersign' }],
    });
    await call(await other.token({ sub: 'x' }), [other]).catch(() => {});
    expect(await refusal(forged)).toContain('signature or a claim is wrong');
  });

  it('with a key of another kind than its algorithm, or an RSA key that is too short', async () => {
    await issuer.addKey('rsa', 'RS256');
    expect(await refusal(await issuer.token({}, { kid: 'rsa' }))).toBe('allowed');
    const header = encoded({ alg: 'RS256', kid: 'key-1' });
    expect(await refusal(`${header}.${payload}.AAAA`)).toContain('cannot be used with RS256');
    const short = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' });
    issuer.jwks = () => ({ keys: [{ ...short, kid: 'short' }] });
    wait(MINUTE_MS);
    expect(await refusal(`${encoded({ alg: 'RS256', kid: 'short' })}.${payload}.AAAA`)).toContain('cannot be used');
  });
});

describe('an issuer', () => {
  it('is asked for its keys once in ten minutes; after that a removed key is refused', async () => {
    await issuer.addKey('key-2');
    const token = await issuer.token({ exp: 9_999_999_999 });
    for (let count = 0; count < 5; count += 1) await call(token);
    expect(issuer.requests).toHaveLength(2);
    issuer.removeKey('key-1');
    wait(10 * MINUTE_MS - 1);
    expect(await refusal(token)).toBe('allowed');
    wait(1);
    expect(await refusal(token)).toContain('no key with the id of this token');
  });

  it('that rotates its key is asked again, but for invented key ids not more than twice a minute', async () => {
    await call(await issuer.token());
    const [known] = issuer.requests.splice(0);
    expect(known).toBe(`${URL_OF_ISSUER}/.well-known/openid-configuration`);
    wait(MINUTE_MS);
    await issuer.addKey('key-2');
    expect(await refusal(await issuer.token({}, { kid: 'key-2' }))).toBe('allowed');
    issuer.requests.splice(0);
    await issuer.addKey('invented');
    const invented = await issuer.token({}, { kid: 'invented' });
    issuer.removeKey('invented');
    for (let second = 0; second < 60; second += 1) {
      expect(await refusal(invented)).toContain('no key with the id');
      wait(1_000);
    }
    expect(issuer.requests.length).toBeLessThanOrEqual(2 * 2);
  });

  it('that does not answer fails closed with a clear error, and is asked again after ten seconds', async () => {
    issuer.discovery = () => {
      throw new Error('connect ECONNREFUSED');
    };
    const token = await issuer.token();
    const expected = `the keys of the issuer ${URL_OF_ISSUER} could not be read, so its tokens cannot be verified`;
    expect(await refusal(token)).toContain(expected);
    expect(await refusal(token)).toContain(expected);
    expect(issuer.requests).toHaveLength(1);
    expect(failures).toEqual(['Error: connect ECONNREFUSED']);
    issuer.discovery = undefined;
    wait(9_999);
    expect(await refusal(token)).toContain(expected);
    wait(1);
    expect(await refusal(token)).toBe('allowed');
  });

  it('whose cached keys are too old fails closed too', async () => {
    const token = await issuer.token({ exp: 9_999_999_999 });
    await call(token);
    issuer.jwks = () => {
      throw new Error('timeout');
    };
    wait(10 * MINUTE_MS);
    expect(await refusal(token)).toContain('could not be read');
  });

  it.each([
    ['thousands of keys', () => ({ keys: Array.from({ length: 5_000 }, (_, kid) => ({ kty: 'EC', kid: `${kid}` })) })],
    ['no list of keys', () => ({ keys: 'none' })],
    ['no JSON object', () => null],
  ])('with %s as its key set fails closed', async (_what, jwks) => {
    issuer.jwks = jwks;
    expect(await refusal(await issuer.token())).toContain('could not be read');
  });

  it('with two keys of one id fails closed', async () => {
    const [key] = await issuer.publicKeys();
    issuer.jwks = () => ({ keys: [key, key] });
    expect(await refusal(await issuer.token())).toContain('could not be read');
  });

  it('whose discovery document names another issuer fails closed', async () => {
    issuer.discovery = () => ({ issuer: 'https://login.example.org', jwks_uri: `${URL_OF_ISSUER}/keys` });
    expect(await refusal(await issuer.token())).toContain('could not be read');
    expect(failures[0]).toContain('the discovery document is of https://login.example.org');
  });

  it('may have keys that are of no use to us', async () => {
    const [key] = await issuer.publicKeys();
    issuer.jwks = () => ({ keys: [{ kty: 'oct', kid: 'a' }, { kty: 'RSA', kid: 'b', use: 'enc' }, key, 7] });
    expect(await refusal(await issuer.token())).toBe('allowed');
  });

  it('that a tenant names is accepted for that tenant, and in a prod stage not at all', async () => {
    const own = await new TestIssuer('https://id.globex.example').addKey('key-1');
    const settings = { ...NO_SETTINGS, issuers: [{ name: 'own', issuer: own.url, audience: 'countersign' }] };
    await definitions.saveSettings('globex', settings);
    await definitions.savePerson('globex', { ...OLIVIA, identities: [`oidc:${own.url}#sub-1`] });
    expect(await call(await own.token(), [own])).toMatchObject({ tenant: 'globex', person: 'olivia' });
    await definitions.saveSettings('globex', NO_SETTINGS);
    await expect(call(await own.token())).rejects.toThrow('accepts no tokens of the issuer');
    await definitions.saveSettings('globex', settings);
    [stageKind, authenticator] = ['prod', undefined];
    await expect(call(await own.token(), [own])).rejects.toThrow('accepts no tokens of the issuer');
  });
});

describe('a request', () => {
  const ask = (headers: Record<string, string>) => {
    call('').catch(() => {});
    return authenticate(authenticator as never, headers);
  };

  it('needs one credential', async () => {
    await expect(ask({})).rejects.toThrow('send a token of your issuer in the header Authorization');
    await expect(ask({ authorization: 'Basic b2xpdmlh' })).rejects.toThrow('send a token');
    await expect(ask({ authorization: `Bearer ${await issuer.token()} x` })).rejects.toThrow('send a token');
    const both = { authorization: `Bearer ${await issuer.token()}`, 'x-api-key': 'key' };
    await expect(ask(both)).rejects.toThrow('send one credential');
  });

  it('takes a key or a token for the same person', async () => {
    await keys.save('key', { tenant: 'acme', person: 'ana', role: ANA.role, name: 'mine' });
    expect(await ask({ 'x-api-key': 'key' })).toMatchObject({ person: 'ana', credential: { kind: 'api_key' } });
    expect(await ask({ authorization: `bearer ${await issuer.token()}` })).toMatchObject({ person: 'ana' });
  });
});
