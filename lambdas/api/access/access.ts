import { closeNameOr } from '../../entry/did-you-mean.ts';
import { Problem } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import { issueTicket, type TicketOffice } from '../../live/tickets.ts';
import type { Person } from '../../people/people.ts';
import { includesRole, may, rightsOf } from '../../people/rights.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import type { ApiKeys, StoredKey } from '../authorizer/api-keys.ts';
import { type Caller, requireRight } from '../authorizer/caller.ts';
import { accessRoutes, liveRoutes } from '../contract/access.ts';
import type { Contract } from '../contract/index.ts';
import { authorOf, currentCaller } from '../definitions/change-person.ts';
import { type Paged, pageOf, readPage } from '../paging.ts';
import { router } from '../router.ts';
import { type KeyMaker, newKey } from './new-key.ts';

export interface AccessPorts extends Paged, KeyMaker, TicketOffice {
  /** The URL of the WebSocket API; undefined if the stage has no live feed. */
  liveUrl: string | undefined;
  keys: Pick<ApiKeys, 'list' | 'create' | 'named' | 'revoke'>;
  definitions: Pick<Definitions, 'people' | 'person'>;
}

/** Enough for every program of a tenant, and few enough to review. */
const KEYS_MAX = 200;

const routes = { ...accessRoutes, ...liveRoutes };

export const handleAccess = router<AccessPorts, Contract['access']>(routes, {
  async createLiveTicket(ports, { caller }) {
    const { liveUrl: url } = ports;
    if (url === undefined) {
      throw new Problem(404, 'NOT_FOUND', 'this stage has no live feed; poll GET /api/v1/runs/{id}/events instead');
    }
    return { status: 201, body: { url, ...(await issueTicket(ports, caller)) } };
  },

  async getMe({ definitions }, { caller }) {
    const { tenant, person: id, role, machine = false, credential = { kind: 'api_key' as const } } = caller;
    const person = await definitions.person(tenant, id);
    const { name, tier, groups = [] } = person ?? {};
    const rights = [...rightsOf(role)].sort();
    return { status: 200, body: { tenant, person: id, name, machine, role, tier, groups, rights, credential } };
  },

  async listApiKeys(ports, { caller, query }) {
    const all = await ports.keys.list(caller.tenant);
    const visible = all.filter(
      ({ key }) =>
        (may(caller.role, 'api-keys:read') || isOwn(caller, key)) &&
        (query.person === undefined || key.person === query.person),
    );
    const page = await readPage(ports, `${caller.tenant}/api-keys`, query, (place) =>
      pageOf(visible, place, ({ key }) => key.name),
    );
    const now = isoNow(ports.clock);
    const people = await ports.definitions.people(caller.tenant);
    const apiKeys = page.items.map((each) => viewOf(each, people, now));
    return { status: 200, body: { apiKeys, nextCursor: page.nextCursor } };
  },

  async createApiKey(ports, { caller, body }) {
    const { people, current } = await currentCaller(ports, caller, 'api-keys:own');
    const by = authorOf(ports, current);
    const key = newKey(current, people, body, by);
    const all = await ports.keys.list(current.tenant);
    if (all.length >= KEYS_MAX) {
      throw new Problem(409, 'CONFLICT', `the tenant has ${KEYS_MAX} API keys; revoke some: countersign keys list`);
    }
    const apiKey = ports.newApiKey();
    if (!(await ports.keys.create(apiKey, key, by))) {
      throw new Problem(409, 'CONFLICT', `there is an API key ${key.name}; choose another name, or revoke it first`);
    }
    return { status: 201, body: { ...viewOf({ key }, people, by.at), key: apiKey } };
  },

  async revokeApiKey(ports, { caller, params: { name } }) {
    const { people, current } = await currentCaller(ports, caller, 'api-keys:own');
    const stored = await ports.keys.named(current.tenant, name);
    if (!stored) throw await noSuchKey(ports, current, name);
    if (!isOwn(current, stored.key)) {
      requireRight(current, 'api-keys:write');
      const holder = people.find(({ id }) => id === stored.key.person);
      if (holder && !includesRole(current.role, holder.role)) {
        throw new Problem(403, 'FORBIDDEN', `only an owner may revoke a key of ${holder.id}, who is ${holder.role}`);
      }
    }
    if (!(await ports.keys.revoke(stored, authorOf(ports, current)))) throw await noSuchKey(ports, current, name);
    return { status: 200, body: { revoked: name } };
  },
});

const isOwn = ({ person }: Caller, key: { person: string }): boolean => key.person === person;

function viewOf({ key, lastUsedAt }: Omit<StoredKey, 'hash'>, people: readonly Person[], now: string) {
  const { name, person, machine = false, role, createdBy, createdAt, expiresAt } = key;
  const expired = expiresAt !== undefined && expiresAt <= now;
  const isPerson = people.some(({ id }) => id === person);
  const holder = machine ? ('machine' as const) : isPerson ? ('person' as const) : ('none' as const);
  return { name, person, machine, holder, role, createdBy, createdAt, expiresAt, expired, lastUsedAt };
}

/** Names only keys that the caller may see. */
async function noSuchKey({ keys }: AccessPorts, caller: Caller, name: string): Promise<Problem> {
  const all = await keys.list(caller.tenant);
  const visible = all.filter(({ key }) => may(caller.role, 'api-keys:read') || isOwn(caller, key));
  const names = visible.map(({ key }) => key.name);
  return new Problem(404, 'NOT_FOUND', `there is no API key ${name}${closeNameOr('keys list', name, names)}`);
}
