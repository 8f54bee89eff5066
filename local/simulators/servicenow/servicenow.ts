import { credentialOf, IssuedTokens } from '../credentials.ts';
import { BadRequest, fieldsOf, type SimCall, type SimResponse, textOf } from '../exchange.ts';
import { router, type SimulatedSystem, type Surprise, type SystemContext } from '../system.ts';
import { parseEncodedQuery } from './query.ts';
import { type Row, SEEDED_GROUPS, SEEDED_INCIDENTS, SEEDED_PROBLEMS, SEEDED_USERS, seededSysId } from './seed.ts';
import { type Reader, ServiceNowTables } from './tables.ts';

const TOKEN_LIFETIME_SECONDS = 1_799;
const DEFAULT_LIMIT = 10_000;
const HOUR_MS = 3_600_000;
const CALLS_PER_HOUR = 5_000;

export interface ServiceNow extends SimulatedSystem {
  readonly tables: ServiceNowTables;
}

export function openServiceNow(context: SystemContext): ServiceNow {
  const tables = new ServiceNowTables(context);
  const tokens = new IssuedTokens(context.store, 'servicenow', context.now);
  seed(tables);

  const read = (call: SimCall, table: string, sysId: string): SimResponse => {
    const row = tables.get(table, sysId);
    return row ? result(200, tables.show(table, row, readerOf(call))) : noRecord();
  };

  const route = router({
    'GET /api/now/table/:table': (call, param) => list(tables, param('table'), call),
    'GET /api/now/table/:table/:sysId': (call, param) => read(call, param('table'), param('sysId')),
    'POST /api/now/table/:table': (call, param) => {
      const table = param('table');
      if (!tables.isWritable(table)) return notWritable(table);
      const row = tables.create(table, fieldsOf(call.body), readerOf(call));
      if (!row)
        return failure(403, 'Operation Failed', `Error during insert of ${table}: sys_id or number exists already`);
      const location = `${context.baseUrl()}/api/now/table/${table}/${row.sys_id}`;
      return { ...result(201, tables.show(table, row, readerOf(call))), headers: { location } };
    },
    'PATCH /api/now/table/:table/:sysId': (call, param) => {
      const table = param('table');
      if (!tables.isWritable(table)) return notWritable(table);
      const row = tables.change(table, param('sysId'), fieldsOf(call.body), readerOf(call));
      if (!row) return noRecord();
      if (call.header('x-no-response-body') === 'true') return { status: 204 };
      return result(200, tables.show(table, row, readerOf(call)));
    },
  });

  return {
    tables,
    answer: (asked, surprise) => {
      const call = surprised(asked, surprise);
      if (call.method === 'POST' && call.path === '/oauth_token.do') return grantToken(context, tokens, call);
      if (!userOf(call, tokens)) return notAuthenticated();
      const table = call.segments[3];
      if (table !== undefined && !tables.has(table)) return failure(400, `Invalid table ${table}`, null);
      if (call.bodyIsMalformed) return failure(400, 'Exception while reading request', 'The payload is not valid JSON');
      try {
        const answer = route(call) ?? failure(405, 'Method not supported', `${call.method} ${call.path}`);
        return hidden(answer, surprise);
      } catch (error) {
        if (error instanceof BadRequest) return failure(400, 'Invalid query', error.message);
        throw error;
      }
    },
    refuse: (status, retryAfterSeconds) => refuse(context.now(), status, retryAfterSeconds),
  };
}

/** The call as the simulator handles it: without its last clause, or without the fields that an ACL forbids to write. */
function surprised(call: SimCall, surprise: Surprise | undefined): SimCall {
  if (surprise === 'fields_dropped') return { ...call, body: {} };
  if (surprise !== 'clause_ignored') return call;
  const query = new URLSearchParams(call.query);
  query.set('sysparm_query', (query.get('sysparm_query') ?? '').split('^').slice(0, -1).join('^'));
  return { ...call, query };
}

/** The response without the rows or fields that an ACL forbids to read. The count of a list includes all rows. */
function hidden(answer: SimResponse, surprise: Surprise | undefined): SimResponse {
  const { result: shown } = fieldsOf(answer.body);
  if (surprise === 'rows_hidden' && Array.isArray(shown)) return { ...answer, body: { result: [] } };
  if (surprise === 'fields_hidden' && shown !== undefined) return { ...answer, body: { result: {} } };
  return answer;
}

function seed(tables: ServiceNowTables): void {
  if (tables.get('sys_user_group', seededSysId('Database'))) return;
  for (const row of SEEDED_GROUPS) tables.seed('sys_user_group', row);
  for (const row of SEEDED_USERS) tables.seed('sys_user', row);
  for (const row of SEEDED_INCIDENTS)
    tables.create('incident', { ...row, sys_id: seededSysId(row.number ?? '') }, SEEDER);
  for (const row of SEEDED_PROBLEMS)
    tables.create('problem', { ...row, sys_id: seededSysId(row.number ?? '') }, SEEDER);
}

const SEEDER: Reader = { user: 'admin', display: 'false', fields: [], plainReferences: false, inputIsDisplay: false };

function readerOf(call: SimCall): Reader {
  const display = call.query.get('sysparm_display_value');
  return {
    user: basicUser(call) ?? 'countersign',
    display: display === 'true' || display === 'all' ? display : 'false',
    fields: (call.query.get('sysparm_fields') ?? '')
      .split(',')
      .map((field) => field.trim())
      .filter(Boolean),
    plainReferences: call.query.get('sysparm_exclude_reference_link') === 'true',
    inputIsDisplay: call.query.get('sysparm_input_display_value') === 'true',
  };
}

function list(tables: ServiceNowTables, table: string, call: SimCall): SimResponse {
  const query = parseEncodedQuery(call.query.get('sysparm_query') ?? '');
  // Journals are always read by their record, so an index is used.
  const candidates: Row[] = tables.rows(table, query.equals('element_id'));
  const rows = query.apply(candidates);
  const offset = Number(call.query.get('sysparm_offset') ?? 0) || 0;
  const limit = Number(call.query.get('sysparm_limit') ?? DEFAULT_LIMIT) || DEFAULT_LIMIT;
  const page = rows.slice(offset, offset + limit).map((row) => tables.show(table, row, readerOf(call)));
  return { ...result(200, page), headers: { 'x-total-count': String(rows.length) } };
}

function grantToken(context: SystemContext, tokens: IssuedTokens, call: SimCall): SimResponse {
  const { grant_type, client_id, client_secret } = fieldsOf(call.body);
  if (grant_type !== 'client_credentials') {
    return { status: 400, body: { error: 'unsupported_grant_type', error_description: 'use client_credentials' } };
  }
  if (!textOf(client_id) || !textOf(client_secret)) {
    return { status: 401, body: { error: 'access_denied', error_description: 'invalid client' } };
  }
  const access_token = tokens.issue(context.store.nextId('servicenow.token', 40), TOKEN_LIFETIME_SECONDS);
  return {
    status: 200,
    body: { access_token, scope: 'useraccount', token_type: 'Bearer', expires_in: TOKEN_LIFETIME_SECONDS },
  };
}

function userOf(call: SimCall, tokens: IssuedTokens): string | undefined {
  const token = credentialOf(call.header('authorization'), 'bearer');
  return token && tokens.accepts(token) ? 'countersign' : basicUser(call);
}

/** Accepts any name with any password. */
function basicUser(call: SimCall): string | undefined {
  const decoded = Buffer.from(credentialOf(call.header('authorization'), 'basic'), 'base64').toString('utf8');
  const [, user, password] = /^([^:]+):(.+)$/s.exec(decoded) ?? [];
  return password ? user : undefined;
}

const result = (status: number, body: unknown): SimResponse => ({ status, body: { result: body } });

const failure = (status: number, message: string, detail: string | null): SimResponse => ({
  status,
  body: { error: { message, detail }, status: 'failure' },
});

const noRecord = (): SimResponse =>
  failure(404, 'No Record found', "Record doesn't exist or ACL restricts the record retrieval");

const notWritable = (table: string): SimResponse => failure(403, 'Operation Failed', `ACL restricts writing ${table}`);

const notAuthenticated = (): SimResponse => ({
  ...failure(401, 'User is not authenticated', 'Required to provide Auth information'),
  headers: { 'www-authenticate': 'Basic realm="Service-now"' },
});

function refuse(nowMs: number, status: number, retryAfterSeconds: number | undefined): SimResponse {
  if (status !== 429) return failure(status, `Simulated failure ${status}`, 'Added with POST /_sim/faults');
  const retryAfter = retryAfterSeconds ?? 30;
  return {
    ...failure(429, 'Rate limit exceeded', `Retry after ${retryAfter} seconds`),
    headers: {
      'retry-after': String(retryAfter),
      'x-ratelimit-limit': String(CALLS_PER_HOUR),
      'x-ratelimit-reset': String(((Math.floor(nowMs / HOUR_MS) + 1) * HOUR_MS) / 1000),
      'x-ratelimit-rule': seededSysId('rate limit rule'),
    },
  };
}
