import { LOCAL_CREDENTIAL_PREFIX } from './credentials.ts';
import { fieldsOf, type SimCall, type SimResponse, textOf } from './exchange.ts';
import { router, type SimulatedSystem, type SystemContext } from './system.ts';
import { isCallerIdentityRequest, VaultLeases } from './vault-leases.ts';

interface Secret {
  /** Index 0 is version 1. Vault's key-value store has all versions. */
  versions: { data: Record<string, unknown>; created_time: string }[];
}

/** An entry as a file audit device of Vault writes it, without the hashed values. */
interface AuditEntry {
  time: string;
  type: 'response';
  auth: { accessor: string };
  request: { id: string; operation: string; path: string };
}

const SEEDED_SECRETS: Record<string, Record<string, string>> = {
  'secret/servicenow': { username: 'countersign', password: 'local-servicenow-password' },
  'secret/github': { token: 'local-github-token' },
  'secret/payments/database': {
    host: 'payments-db-1.acme.example',
    username: 'payments',
    password: 'local-database-password',
  },
};

const OPERATIONS: Record<string, string> = { GET: 'read', LIST: 'list', DELETE: 'delete' };

export function openVault(context: SystemContext): SimulatedSystem {
  const { store, now } = context;
  const secrets = store.collection<Secret>('vault.secret');
  const audit = store.collection<AuditEntry>('vault.audit');
  const leases = new VaultLeases(store, now);

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

  const appRoleLogin = (call: SimCall): SimResponse => {
    const { role_id, secret_id } = fieldsOf(call.body);
    const known = textOf(role_id) !== '' && textOf(secret_id).startsWith(LOCAL_CREDENTIAL_PREFIX);
    return known ? envelope({ auth: leases.newToken() }) : errors(400, 'invalid role or secret ID');
  };

  /** AWS would check the signature. Here the form of the request must be right. */
  const awsLogin = (call: SimCall): SimResponse => {
    const fields = fieldsOf(call.body);
    if (textOf(fields.role) === '') return errors(400, 'missing role');
    return isCallerIdentityRequest(fields)
      ? envelope({ auth: leases.newToken() })
      : errors(400, 'error making upstream request: received error code 403 from STS');
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

  const databaseCredentials = (call: SimCall, param: (name: string) => string): SimResponse => {
    const secret = store.nextId('vault.database', 48);
    const { id, ttlSeconds, renewable } = leases.newLease(`database/creds/${param('role')}`, secret, tokenOf(call));
    const username = `v-approle-${param('role')}-${secret.slice(0, 12)}`;
    const data = { username, password: secret.slice(12) };
    return envelope({ lease_id: id, lease_duration: ttlSeconds, renewable, data });
  };

  const leaseIn = (call: SimCall) => leases.live(textOf(fieldsOf(call.body).lease_id));

  const renew = (call: SimCall): SimResponse => {
    const lease = leaseIn(call);
    if (!lease) return errors(400, 'lease not found');
    if (!lease.renewable) return errors(400, 'lease is not renewable');
    const lease_duration = leases.renew(lease, fieldsOf(call.body).increment);
    return envelope({ lease_id: lease.id, lease_duration, renewable: true });
  };

  const lookup = (call: SimCall): SimResponse => {
    const lease = leaseIn(call);
    if (!lease) return errors(400, 'invalid lease');
    const ttl = Math.ceil((lease.expiresAtMs - now()) / 1000);
    const expire_time = new Date(lease.expiresAtMs).toISOString();
    return envelope({ data: { id: lease.id, expire_time, renewable: lease.renewable, ttl } });
  };

  /** Revoking a lease that does not exist succeeds. */
  const revoke = (call: SimCall): SimResponse => {
    leases.revoke(textOf(fieldsOf(call.body).lease_id));
    return { status: 204 };
  };

  const renewSelf = (call: SimCall): SimResponse =>
    envelope({ auth: leases.renewToken(tokenOf(call), fieldsOf(call.body).increment) });

  /** With a token, Vault revokes all leases that were created with it. */
  const revokeSelf = (call: SimCall): SimResponse => {
    leases.revokeToken(tokenOf(call));
    return { status: 204 };
  };

  const route = router({
    'POST /v1/sys/leases/renew': renew,
    'PUT /v1/sys/leases/renew': renew,
    'POST /v1/sys/leases/revoke': revoke,
    'PUT /v1/sys/leases/revoke': revoke,
    'POST /v1/sys/leases/lookup': lookup,
    'PUT /v1/sys/leases/lookup': lookup,
    'GET /v1/auth/token/lookup-self': (call) => envelope({ data: leases.describeToken(tokenOf(call)) }),
    'POST /v1/auth/token/renew-self': renewSelf,
    'PUT /v1/auth/token/renew-self': renewSelf,
    'POST /v1/auth/token/revoke-self': revokeSelf,
    'PUT /v1/auth/token/revoke-self': revokeSelf,
    'GET /v1/database/creds/:role': databaseCredentials,
    'GET /v1/:mount/data/*path': readSecret,
    'POST /v1/:mount/data/*path': writeSecret,
    'PUT /v1/:mount/data/*path': writeSecret,
  });

  const answer = (call: SimCall): SimResponse => {
    if (call.bodyIsMalformed) return errors(400, 'failed to parse JSON input');
    if (call.method !== 'GET' && call.path === '/v1/auth/approle/login') return appRoleLogin(call);
    if (call.method !== 'GET' && call.path === '/v1/auth/aws/login') return awsLogin(call);
    if (!leases.accepts(tokenOf(call))) return errors(403, 'permission denied');
    // Not part of Vault: the file that an audit device would write.
    if (call.path === '/v1/_audit') return { status: 200, body: { entries: audit.list() } };
    return route(call) ?? errors(404, `no handler for route "${call.segments.slice(1).join('/')}"`);
  };

  return {
    answer: (call) => {
      const { accessor } = leases.describeToken(tokenOf(call));
      const answered = answer(call);
      const id = textOf(fieldsOf(answered.body).request_id) || store.nextId('vault.request', 32);
      const operation = OPERATIONS[call.method] ?? 'update';
      const request = { id, operation, path: call.segments.slice(1).join('/') };
      audit.put(id, { time: new Date(now()).toISOString(), type: 'response', auth: { accessor }, request });
      return answered;
    },
    refuse: (status) => errors(status, status === 503 ? 'Vault is sealed' : `simulated failure ${status}`),
  };
}

const tokenOf = (call: SimCall): string => call.header('x-vault-token') ?? '';

const metadata = (version: number, created_time: string): Record<string, unknown> => ({
  created_time,
  custom_metadata: null,
  deletion_time: '',
  destroyed: false,
  version,
});

const errors = (status: number, ...messages: string[]): SimResponse => ({ status, body: { errors: messages } });
