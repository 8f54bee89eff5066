import { runCommand } from '../../connectors/agent/command.ts';
import { closeNameOr, didYouMean } from '../../entry/did-you-mean.ts';
import { Problem } from '../../entry/http.ts';
import type { Clock, Ids } from '../../entry/ports.ts';
import type { Automation } from '../../pipeline/automation.ts';
import { type Configuration, decidedIn, type StoredConfiguration } from '../../pipeline/configuration.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { hashOf } from '../../run/canonical-json.ts';
import { CountersignError } from '../../run/errors.ts';
import { automationsWithSessionIn } from '../../setup/used-connections.ts';
import type { configurationRoutes } from '../contract/definitions/configurations.ts';
import { type Paged, pageOf, readPage } from '../paging.ts';
import type { Handlers } from '../router.ts';
import { authorOf } from './change-person.ts';

export interface ConfigurationsPorts extends Paged {
  definitions: Pick<
    Definitions,
    | 'automations'
    | 'workflow'
    | 'configuration'
    | 'configurations'
    | 'connections'
    | 'saveConfiguration'
    | 'deleteConfiguration'
  >;
  clock: Clock;
  ids: Ids;
}

export const configurationHandlers: Handlers<ConfigurationsPorts, typeof configurationRoutes> = {
  async listConfigurations(ports, { caller: { tenant }, query }) {
    const all = await ports.definitions.configurations(tenant);
    const page = await readPage(ports, `${tenant}/configurations`, query, (place) =>
      pageOf(all, place, ({ name }) => name),
    );
    return { status: 200, body: { configurations: page.items, nextCursor: page.nextCursor } };
  },

  async getConfiguration(ports, { caller: { tenant }, params: { name } }) {
    return { status: 200, body: await mustFind(ports, tenant, name) };
  },

  async saveConfiguration(ports, { caller, params: { name }, body: { revision, author: _shown, ...body } }) {
    if (body.name !== undefined && body.name !== name) {
      throw new Problem(400, 'BAD_REQUEST', `the body has the name ${body.name}, the path has ${name}`);
    }
    const before = await ports.definitions.configuration(caller.tenant, name);
    assertRevision(name, before, revision);
    const changed = { ...body, name };
    await assertPlace(ports, caller.tenant, changed);
    const author = authorAfter(before, changed, caller.person);
    const configuration = { ...changed, ...author, revision: revisionAfter(before, changed) };
    const how = { replaces: before ?? null };
    await ports.definitions.saveConfiguration(caller.tenant, configuration, authorOf(ports, caller), how);
    return { status: 200, body: configuration };
  },

  async deleteConfiguration(ports, { caller, params: { name }, query: { revision } }) {
    const { tenant } = caller;
    const found = await mustFind(ports, tenant, name);
    assertRevision(name, found, revision === undefined ? undefined : Number(revision));
    const users = (await ports.definitions.automations(tenant)).filter((each) => namedBy(each).includes(name));
    if (users.length > 0) {
      const names = users.map((each) => each.name).join(', ');
      throw new Problem(409, 'CONFLICT', `these automations name ${name}: ${names}; change them first`);
    }
    const starters = (await automationsWithSessionIn(ports.definitions, tenant, name)).map((each) => each.name);
    if (starters.length > 0) {
      const detail = `these automations start workflows whose sessions name the configuration ${name}: ${starters.join(', ')}; disable them first: countersign automations disable NAME`;
      throw new Problem(409, 'CONFLICT', detail);
    }
    await ports.definitions.deleteConfiguration(tenant, found, authorOf(ports, caller));
    return { status: 200, body: { deleted: name } };
  },
};

/** The configurations that an automation names. */
export function namedBy({ configuration }: Pick<Automation, 'configuration'>): string[] {
  if (!configuration) return [];
  const { default: preset } = configuration;
  const others = configuration.strategy === 'fixed' ? [] : [...configuration.allow, configuration.fallback];
  return [...new Set([...others, preset].flatMap((name) => name ?? []))];
}

function assertRevision(name: string, stored: StoredConfiguration | undefined, expected: number | undefined): void {
  if (expected === undefined || expected === stored?.revision) return;
  const now = stored ? `is at revision ${stored.revision}` : 'does not exist';
  throw new Problem(
    409,
    'CONFLICT',
    `the configuration ${name} ${now}, not at ${expected}; read it again, then repeat your change`,
  );
}

/** Saving the same content again is no change. */
function revisionAfter(before: StoredConfiguration | undefined, changed: Configuration): number {
  if (!before) return 1;
  const { revision, author: _author, ...content } = before;
  return hashOf(content) === hashOf(changed) ? revision : revision + 1;
}

/** Who changes only a description or the routing does not replace the author. */
function authorAfter(before: StoredConfiguration | undefined, changed: Configuration, person: string) {
  const decided = (each: Configuration) => hashOf(decidedIn(each));
  if (!before || decided(before) !== decided(changed)) return { author: person };
  return before.author === undefined ? {} : { author: before.author };
}

/** Without its connection or its command, every session of the configuration would fail. */
async function assertPlace({ definitions }: ConfigurationsPorts, tenant: string, { session }: Configuration) {
  if (session.provider === 'agent') return assertCommand(session);
  const connections = await definitions.connections(tenant);
  const connection = connections.find(({ name }) => name === session.connection);
  if (connection) return assertOrigin(session.url, connection);
  const names = connections.map(({ name }) => name);
  const known = didYouMean(session.connection, names) || '; add it with countersign connections add';
  throw new Problem(
    422,
    'CONFIGURATION_INVALID',
    `session.connection: there is no connection ${session.connection}${known}`,
  );
}

/** The credential of a connection goes to its address only, which was checked when the connection was saved. */
function assertOrigin(url: string, { name, baseUrl }: { name: string; baseUrl: string }): void {
  const { origin } = new URL(baseUrl);
  if (new URL(url).origin === origin) return;
  const detail = `session.url: the connection ${name} is for ${origin}; use an address there, or another connection`;
  throw new Problem(422, 'CONFIGURATION_INVALID', detail);
}

/** The rules of commands, e.g. that a profile fits its environment. */
function assertCommand({
  provider: _agent,
  ...command
}: Extract<Configuration['session'], { provider: 'agent' }>): void {
  try {
    runCommand.parse(command);
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    throw new Problem(422, 'CONFIGURATION_INVALID', `session: ${error.message}`);
  }
}

async function mustFind({ definitions }: ConfigurationsPorts, tenant: string, name: string) {
  const found = await definitions.configuration(tenant, name);
  if (found) return found;
  const names = (await definitions.configurations(tenant)).map((each) => each.name);
  throw new Problem(
    404,
    'NOT_FOUND',
    `there is no configuration ${name}${closeNameOr('configurations list', name, names)}`,
  );
}
