import { IssuedTokens, LOCAL_CREDENTIAL_PREFIX } from './credentials.ts';
import { fieldsOf, type SimCall, type SimResponse, textOf } from './exchange.ts';
import { router, type SimulatedSystem, type SystemContext } from './system.ts';

interface Lease {
  id: string;
  expiresAtMs: number;
  ttlSeconds: number;
}

interface Secret {
  /** Index 0 is version 1. Vault's key-value store has all versions. */
  versions: { data: Record<string, unknown>; created_time: string }[];
}

const TOKEN_LIFETIME_SECONDS = 3_600;
const LEASE_SECONDS = 3_600;
/** A renewal extends a lease by at most this time, as with Vault's default max TTL. */
const LONGEST_LEASE_SECONDS = 86_400;

const SEEDED_SECRETS: Record<string, Record<string, string>> = {
  'secret/servicenow': { username: 'countersign', password: 'local-servicenow-password' },
  'secret/github': { token: 'local-github-token' },
  'secret/payments/database': {
    host: 'payments-db-1.acme.example',
    username: 'payments',
    password: 'local-database-password',
  },
};

export function openVault(context: SystemContext): SimulatedSystem {
  const { store, now } = context;
  const secrets = store.collection<Secret>('vault.secret');
  const leases = store.collection<Lease>('vault.lease');
  const tokens = new IssuedTokens(store, 'vault', now);

  const write = (path: string, data: Record<string, unknown>): Record<string, unknown> => {
    const created_time = new Date(now()).toISOString();
    const versions = [...(secrets.get(path)?.versions ?? []), { data, created_time }];
    secrets.put(path, { versions });
    return metadata(versions.length, created_time);
  };
  for (const [path, data] of Object.entries(SEEDED_SECRETS)) if (!secrets.get(path)) write(path, data);

  const envelope = (fields: Record<string, unknown>): SimResponse => ({
    status: 200,
    body: {
      request_id: store.nextId('vault.request', 32),
      lease_id: '',
      renewable: false,
      lease_duration: 0,
      data: null,
      wrap_info: null,
      warnings: null,
      auth: null,
      ...fields,
    },
  });

  const login = (call: SimCall): SimResponse => {
    const { role_id, secret_id } = fieldsOf(call.body);
    const known = textOf(role_id) !== '' && textOf(secret_id).startsWith(LOCAL_CREDENTIAL_PREFIX);
    if (!known) return errors(400, 'invalid role or secret ID');
    const client_token = tokens.issue(`hvs.${store.nextId('vault.token', 40)}`, TOKEN_LIFETIME_SECONDS);
    const accessor = store.nextId('vault.accessor', 24);
    return envelope({
      auth: {
        client_token,
        accessor,
        policies: ['default'],
        token_policies: ['default'],
        lease_duration: TOKEN_LIFETIME_SECONDS,
        renewable: true,
        token_type: 'service',
      },
    });
  };

  const readSecret = (call: SimCall, param: (name: string) => string): SimResponse => {
    const versions = secrets.get(`${param('mount')}/${param('path')}`)?.versions ?? [];
    const version = Number(call.query.get('version') ?? 0) || versions.length;
    const found = versions[version - 1];
    return found
      ? envelope({ data: { data: found.data, metadata: metadata(version, found.created_time) } })
      : errors(404);
  };

  const writeSecret = (call: SimCall, param: (name: string) => string): SimResponse => {
    const data = fieldsOf(call.body).data;
    if (typeof data !== 'object' || data === null) return errors(400, 'no data provided');
    return envelope({ data: write(`${param('mount')}/${param('path')}`, fieldsOf(data)) });
  };

  const databaseCredentials = (_call: SimCall, param: (name: string) => string): SimResponse => {
    const secret = store.nextId('vault.database', 48);
    const id = `database/creds/${param('role')}/${secret.slice(0, 24)}`;
    leases.put(id, { id, ttlSeconds: LEASE_SECONDS, expiresAtMs: now() + LEASE_SECONDS * 1000 });
    const username = `v-approle-${param('role')}-${secret.slice(0, 12)}`;
    return envelope({
      lease_id: id,
      lease_duration: LEASE_SECONDS,
      renewable: true,
      data: { username, password: secret.slice(12) },
    });
  };

  const liveLease = (call: SimCall): Lease | undefined => {
    const lease = leases.get(textOf(fieldsOf(call.body).lease_id));
    return lease && now() < lease.expiresAtMs ? lease : undefined;
  };

  const renew = (call: SimCall): SimResponse => {
    const lease = liveLease(call);
    if (!lease) return errors(400, 'lease not found');
    const increment = Number(fieldsOf(call.body).increment ?? lease.ttlSeconds) || lease.ttlSeconds;
    const seconds = Math.min(Math.max(increment, 1), LONGEST_LEASE_SECONDS);
    leases.put(lease.id, { ...lease, expiresAtMs: now() + seconds * 1000 });
    return envelope({ lease_id: lease.id, lease_duration: seconds, renewable: true });
  };

  const lookup = (call: SimCall): SimResponse => {
    const lease = liveLease(call);
    if (!lease) return errors(400, 'invalid lease');
    const ttl = Math.ceil((lease.expiresAtMs - now()) / 1000);
    return envelope({
      data: { id: lease.id, expire_time: new Date(lease.expiresAtMs).toISOString(), renewable: true, ttl },
    });
  };

  /** Revoking a lease that does not exist succeeds. */
  const revoke = (call: SimCall): SimResponse => {
    leases.delete(textOf(fieldsOf(call.body).lease_id));
    return { status: 204 };
  };

  const route = router({
    'POST /v1/sys/leases/renew': renew,
    'PUT /v1/sys/leases/renew': renew,
    'POST /v1/sys/leases/revoke': revoke,
    'PUT /v1/sys/leases/revoke': revoke,
    'POST /v1/sys/leases/lookup': lookup,
    'PUT /v1/sys/leases/lookup': lookup,
    'GET /v1/database/creds/:role': databaseCredentials,
    'GET /v1/:mount/data/*path': readSecret,
    'POST /v1/:mount/data/*path': writeSecret,
    'PUT /v1/:mount/data/*path': writeSecret,
  });

  return {
    answer: (call) => {
      if (call.bodyIsMalformed) return errors(400, 'failed to parse JSON input');
      if (call.method !== 'GET' && call.path === '/v1/auth/approle/login') return login(call);
      if (!tokens.accepts(call.header('x-vault-token') ?? '')) return errors(403, 'permission denied');
      return route(call) ?? errors(404, `no handler for route "${call.segments.slice(1).join('/')}"`);
    },
    refuse: (status) => errors(status, status === 503 ? 'Vault is sealed' : `simulated failure ${status}`),
  };
}

const metadata = (version: number, created_time: string): Record<string, unknown> => ({
  created_time,
  custom_metadata: null,
  deletion_time: '',
  destroyed: false,
  version,
});

const errors = (status: number, ...messages: string[]): SimResponse => ({ status, body: { errors: messages } });
