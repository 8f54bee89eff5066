import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseConfig } from '../../agent/config.ts';
import { TTL_MAX_SECONDS } from '../../agent/credentials/credential-source.ts';
import { HeldCredentials } from '../../agent/credentials/held-credentials.ts';
import { machine, type System } from '../../agent/system.ts';
import { redact } from '../../lambdas/agents/redact.ts';
import { openWire, temporaryFolder, type Wire } from '../local/cloud/wire.ts';
import { openWorld, type World } from '../local/simulators/world.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const secretIdFile = join(folder.path, 'secret-id');

let world: World;
let slept: number[];
let system: System;
const released: HeldCredentials[] = [];

beforeEach(async () => {
  world = await openWorld();
  writeFileSync(secretIdFile, 'local-secret-id\n');
  chmodSync(secretIdFile, 0o600);
  slept = [];
  // Each renewal comes as soon as the test lets it.
  system = {
    ...machine,
    sleep: (ms, until) => {
      slept.push(ms);
      return machine.sleep(slept.length <= 2 ? 0 : 3_600_000, until);
    },
  };
});
afterEach(async () => {
  for (const each of released.splice(0)) await each.release();
  await world.close();
});

const ROLE = { appRole: { roleId: 'agent', secretIdFile } };

function credentials(places: Record<string, object>, auth: object = ROLE): HeldCredentials {
  const config = parseConfig(
    { vault: { address: `${world.url}/_sim/vault`, auth }, credentials: places },
    'agent.yaml',
  );
  const held = new HeldCredentials(config, system, 5);
  released.push(held);
  return held;
}

const asRoot = (method: string, path: string, body?: unknown) =>
  world.ask(method, `/vault/v1${path}`, body, { 'x-vault-token': 'local-root' });
const store = (data: object) => asRoot('POST', '/secret/data/test', { data });
const paths = async () => (await world.calls()).map(({ method, path }) => `${method} ${path}`);
const audited = async () =>
  (await asRoot('GET', '/_audit')).body.entries.map((each: { request: { id: string } }) => each.request.id);

describe('credentials from Vault', () => {
  it('of the key-value store are handed over by variable and by descriptor, and named with the id of the audit log', async () => {
    const place = { vault: { kv: 'payments/database' } };
    const held = credentials({ db: { ...place, env: { username: 'PGUSER' }, fd: { password: 'PASSWORD_FD' } } });
    await held.fetch(['db']);
    expect(held.environment).toEqual({ PGUSER: 'payments', PASSWORD_FD: '5' });
    expect(held.inputs.map(String)).toEqual(['local-database-password']);
    expect(held.secrets).toContain('local-database-password');
    const [input] = held.inputs;
    const used = await held.release();
    expect(used).toMatchObject([{ id: 'db', source: 'vault', ttl_seconds: 0, revoked: true }]);
    expect(await audited()).toContain(used[0]?.audit_id);
    expect([held.environment, held.secrets, input?.every((byte) => byte === 0)]).toEqual([{}, [], true]);
  });

  it('of a database role live for at most 5 minutes, are renewed while the command runs, and revoked after it', async () => {
    const held = credentials({
      db: { vault: { database: 'readonly' }, env: { username: 'PGUSER', password: 'PGPASSWORD' } },
    });
    await held.fetch(['db']);
    const { PGUSER = '' } = held.environment;
    expect(PGUSER).toMatch(/^v-approle-readonly-/);
    const renewals = async () => (await paths()).filter((each) => each === 'PUT /v1/sys/leases/renew').length;
    while ((await renewals()) < 3) await new Promise((resolve) => setImmediate(resolve));
    expect(slept.every((ms) => ms <= TTL_MAX_SECONDS * 500)).toBe(true);
    const used = await held.release();
    expect(used).toMatchObject([{ ttl_seconds: TTL_MAX_SECONDS, revoked: true }]);
    expect((await paths()).slice(-2)).toEqual(['PUT /v1/sys/leases/revoke', 'POST /v1/auth/token/revoke-self']);
    const leases = (await world.calls('?system=vault')).filter(({ path }) => path === '/v1/sys/leases/revoke');
    const { lease_id } = (leases[0]?.body ?? {}) as { lease_id?: string };
    expect(lease_id).toBeDefined();
    expect((await asRoot('PUT', '/sys/leases/lookup', { lease_id })).status).toBe(400);
  });

  it('that live longer and cannot be renewed are refused, and revoked at once', async () => {
    const held = credentials({ db: { vault: { database: 'one-hour' }, env: { username: 'PGUSER' } } });
    await expect(held.fetch(['db'])).rejects.toThrow(
      /one-hour live for 3600 s; set default_ttl of the role to 300 s or less/,
    );
    await held.release();
    expect((await paths()).at(-1)).toBe('POST /v1/auth/token/revoke-self');
  });

  it('that no variable can have are refused without showing them', async () => {
    await store({ password: 'before\0after-nul' });
    const held = credentials({ db: { vault: { kv: 'test' }, env: { password: 'PGPASSWORD' } } });
    const message = await held.fetch(['db']).catch((error: Error) => error.message);
    expect(message).toBe(
      'credential db has a NUL character in password, which no variable can have; hand it over with fd',
    );
  });

  it('that are JSON are hidden as a whole and in parts', async () => {
    const account = { type: 'service', private_key: '-----BEGIN KEY-----\nabcdefgh\n', pins: [482_915] };
    await store({ account: JSON.stringify(account), nested: { token: 'nested-token' } });
    const held = credentials({ db: { vault: { kv: 'test' }, env: { account: 'ACCOUNT' } } });
    await held.fetch(['db']);
    const printed = `${JSON.stringify(account)} ${account.private_key} 482915 nested-token`;
    expect(redact(printed, held.secrets)).not.toMatch(/BEGIN|abcdefgh|482915|nested-token/);
  });

  it('are fetched with one login for all credentials of a command', async () => {
    const env = { env: { password: 'ONE' } };
    const held = credentials({
      one: { vault: { kv: 'payments/database' }, ...env },
      two: { vault: { kv: 'servicenow' }, env: { password: 'TWO' } },
    });
    await held.fetch(['one', 'two']);
    expect(Object.keys(held.environment)).toEqual(['ONE', 'TWO']);
    expect((await paths()).filter((each) => each.endsWith('/login'))).toHaveLength(1);
  });

  it('are fetched with the AWS role of the host: a signed request to STS that only says who it is', async () => {
    const before = { ...process.env };
    Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'AKIATEST', AWS_SECRET_ACCESS_KEY: 'secret' });
    try {
      const auth = { aws: { role: 'agent', region: 'eu-central-1', serverId: 'vault.example' } };
      const held = credentials({ db: { vault: { kv: 'payments/database' }, env: { password: 'PGPASSWORD' } } }, auth);
      await held.fetch(['db']);
      expect(held.environment.PGPASSWORD).toBe('local-database-password');
    } finally {
      for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) restore(name, before[name]);
    }
  });

  it.each([
    ['a wrong secret id', { secret: 'guess' }, /refused auth\/approle\/login \(400\)/],
    ['a secret id that others can read', { mode: 0o644 }, /chmod 600/],
    ['a path without a secret', { kv: 'nothing' }, /404.*check the path/],
    ['a field that the secret lacks', { field: 'pasword' }, /has no field pasword; it has: host, username, password/],
  ])(
    'are not available with %s, which the message says',
    async (_name, { secret, mode, kv, field }: Wrong, message) => {
      if (secret !== undefined) writeFileSync(secretIdFile, secret);
      if (mode !== undefined) chmodSync(secretIdFile, mode);
      const held = credentials({
        db: { vault: { kv: kv ?? 'payments/database' }, env: { [field ?? 'password']: 'X' } },
      });
      await expect(held.fetch(['db'])).rejects.toThrow(message);
    },
  );
});

interface Wrong {
  secret?: string;
  mode?: number;
  kv?: string;
  field?: string;
}

function restore(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
}

describe('credentials from Secrets Manager', () => {
  let wire: Wire;
  afterEach(() => wire.close());

  it('are read with the role of the host, and named with the id of the request', async () => {
    const arn = 'arn:aws:secretsmanager:us-east-1:123456789012:secret:orders-abc';
    const call = async () => ({ ARN: arn, SecretString: JSON.stringify({ token: 'local-token' }) });
    wire = await openWire({ json: { secretsmanager: { call } } });
    const before = { ...process.env };
    const names = {
      AWS_ENDPOINT_URL_SECRETS_MANAGER: wire.client.endpoint,
      AWS_ACCESS_KEY_ID: 'A',
      AWS_SECRET_ACCESS_KEY: 'B',
    };
    Object.assign(process.env, names);
    try {
      const held = credentials({ api: { secretsManager: { arn }, env: { token: 'API_TOKEN' } } });
      await held.fetch(['api']);
      expect(held.environment).toEqual({ API_TOKEN: 'local-token' });
      expect(await held.release()).toMatchObject([
        { id: 'api', source: 'secrets_manager', revoked: false, ttl_seconds: 0 },
      ]);
    } finally {
      for (const name of Object.keys(names)) restore(name, before[name]);
    }
  });
});
