import { nameProblem } from '../../connectors/credential-form.ts';
import { didYouMean } from '../../entry/did-you-mean.ts';
import { Problem } from '../../entry/http.ts';
import type { Clock, Ids } from '../../entry/ports.ts';
import { CHANGES_SEEN_WITHIN_MS } from '../../pipeline/cached-definitions.ts';
import type { Connection, Definitions } from '../../pipeline/definitions.ts';
import { connectionProblem, plainAddress } from '../../setup/check-connection.ts';
import type { Credentials, DescribedCredentials } from '../../setup/credentials.ts';
import { automationsUsing } from '../../setup/used-connections.ts';
import type { connectionRoutes } from '../contract/setup/connections.ts';
import { authorOf } from '../definitions/change-person.ts';
import { type Paged, pageOf, readPage } from '../paging.ts';
import type { Handlers } from '../router.ts';

export interface ConnectionsPorts extends Paged {
  definitions: Pick<
    Definitions,
    'connection' | 'connections' | 'configurations' | 'saveConnection' | 'deleteConnection' | 'automations' | 'workflow'
  >;
  credentials: Credentials;
  clock: Clock;
  ids: Ids;
  /** The URL of the stage. */
  ownUrl: string;
}

export const connectionHandlers: Handlers<ConnectionsPorts, typeof connectionRoutes> = {
  async listConnections(ports, { caller: { tenant }, query }) {
    const [all, described] = await Promise.all([
      ports.definitions.connections(tenant),
      ports.credentials.describe({ tenant }),
    ]);
    const page = await readPage(ports, `${tenant}/connections`, query, (place) =>
      pageOf(all, place, ({ name }) => name),
    );
    return {
      status: 200,
      body: { connections: page.items.map((each) => view(each, described)), nextCursor: page.nextCursor },
    };
  },

  async getConnection({ definitions, credentials }, { caller: { tenant }, params: { name } }) {
    const connection = await mustExist(definitions, tenant, name);
    return { status: 200, body: view(connection, await credentials.describe({ tenant })) };
  },

  /** The credentials come first: a new address never gets a credential that was meant for another one. */
  async saveConnection(ports, { caller, params, body }) {
    const { definitions, credentials, ownUrl } = ports;
    const { tenant, person: actor } = caller;
    const { credential, planCredential, ...fields } = body;
    const name = knownName(params.name);
    const connection: Connection = { ...fields, name, baseUrl: plainAddress(fields.baseUrl) };
    const problem = connectionProblem(name, connection, ownUrl);
    if (problem !== undefined) throw invalid(problem);
    const [before, described] = await Promise.all([
      definitions.connection(tenant, name),
      credentials.describe({ tenant }),
    ]);
    assertCredentialsForAddress(before, connection, view(connection, described), body);
    if (credential !== undefined || planCredential !== undefined) {
      await credentials.store({
        tenant,
        actor,
        connection: name,
        baseUrl: connection.baseUrl,
        ...(credential !== undefined && { credential }),
        ...(planCredential !== undefined && { planCredential }),
      });
    }
    await definitions.saveConnection(tenant, connection, authorOf(ports, caller));
    const saved = view(connection, await credentials.describe({ tenant }));
    return { status: 200, body: { ...saved, effectiveWithinSeconds: CHANGES_SEEN_WITHIN_MS / 1000 } };
  },

  async deleteConnection(ports, { caller, params: { name } }) {
    const { definitions, credentials } = ports;
    const { tenant, person: actor } = caller;
    const connection = await mustExist(definitions, tenant, name);
    const users = (await automationsUsing(definitions, tenant, name)).map((automation) => automation.name);
    if (users.length > 0) {
      const detail = `these automations use the connection ${name}: ${users.join(', ')}; disable them first: countersign automations disable NAME`;
      throw new Problem(409, 'CONFLICT', detail);
    }
    const configurations = (await definitions.configurations(tenant)).filter(
      ({ session }) => session.provider === 'a2a' && session.connection === name,
    );
    if (configurations.length > 0) {
      const names = configurations.map((each) => each.name).join(', ');
      throw new Problem(
        409,
        'CONFLICT',
        `these configurations use the connection ${name}: ${names}; change them first`,
      );
    }
    const { baseUrl } = connection;
    const nothing = { credential: null, planCredential: null };
    await credentials.store({ tenant, actor, connection: knownName(name), baseUrl, ...nothing });
    await definitions.deleteConnection(tenant, connection, authorOf(ports, caller));
    return { status: 200, body: { deleted: name } };
  },

  async testConnection({ definitions, credentials }, { caller: { tenant }, params: { name } }) {
    await mustExist(definitions, tenant, name);
    const { findings } = await credentials.test({ tenant, connection: knownName(name) });
    return { status: 200, body: { name, ok: findings.every(({ level }) => level !== 'error'), findings } };
  },
};

function view(connection: Connection, described: DescribedCredentials) {
  const missing = { state: 'missing' as const };
  const { credential = missing, planCredential = missing } =
    described.connections.find((each) => each.connection === connection.name) ?? {};
  return { ...connection, credential, planCredential };
}

/** The person who changes the address must know the credentials, which could otherwise be sent to a host of their own. */
function assertCredentialsForAddress(
  before: Connection | undefined,
  after: Connection,
  stored: Pick<ReturnType<typeof view>, 'credential' | 'planCredential'>,
  body: { credential?: unknown; planCredential?: unknown },
): void {
  if (after.name === 'http' || (before && new URL(before.baseUrl).origin === new URL(after.baseUrl).origin)) return;
  const why = before ? 'the address changes' : 'a credential is stored, and the connection is new';
  for (const each of ['credential', 'planCredential'] as const) {
    const { state } = stored[each];
    if (body[each] !== undefined || state === 'missing' || (!before && state === 'malformed')) continue;
    const remove = each === 'planCredential' ? ', or null to remove it' : '';
    throw invalid(`${why}, so send ${each} again${remove}: a stored one is only for the address it was sent with`);
  }
}

async function mustExist(
  definitions: Pick<Definitions, 'connection' | 'connections'>,
  tenant: string,
  name: string,
): Promise<Connection> {
  const found = await definitions.connection(tenant, name);
  if (found) return found;
  const names = (await definitions.connections(tenant)).map((each) => each.name);
  const known = didYouMean(name, names) || `; there are: ${names.join(', ') || 'none'}`;
  throw new Problem(404, 'NOT_FOUND', `there is no connection ${name}${known}`);
}

function knownName(name: string): string {
  const problem = nameProblem(name);
  if (problem === undefined) return name;
  throw invalid(problem);
}

const invalid = (detail: string) => new Problem(422, 'CONNECTION_INVALID', detail);
