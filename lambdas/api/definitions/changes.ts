import { Problem } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import type { Person } from '../../people/people.ts';
import {
  changeSortKey,
  type PendingChange,
  type PendingPerson,
  type PendingPolicies,
} from '../../pipeline/definition-changes.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { findChange } from '../../pipeline/find-change.ts';
import { hashOf } from '../../run/canonical-json.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { changeRoutes } from '../contract/definitions/people.ts';
import { type Paged, pageByPlace, readPage } from '../paging.ts';
import { cutToFit } from '../response-size.ts';
import type { Handlers } from '../router.ts';
import {
  assertValid,
  authorOf,
  currentCaller,
  type PeopleChanger,
  remainingOwner,
  withProvenance,
} from './change-person.ts';
import { assertIndependent } from './second-owner.ts';

export interface ChangesPorts extends PeopleChanger, Paged {
  definitions: PeopleChanger['definitions'] &
    Pick<Definitions, 'changes' | 'pendingChange' | 'dismissChange' | 'policies' | 'savePolicies'>;
}

/** A time or a day as the history spells times. */
const instantOf = (time: string | undefined): string | undefined =>
  time === undefined ? undefined : new Date(time).toISOString();

export const changeHandlers: Handlers<ChangesPorts, typeof changeRoutes> = {
  async listChanges(ports, { caller: { tenant }, query }) {
    const { kind, name, actor } = query;
    const filter = { kind, name, actor, since: instantOf(query.since), until: instantOf(query.until) };
    if (filter.since !== undefined && filter.until !== undefined && filter.since > filter.until) {
      throw new Problem(
        400,
        'BAD_REQUEST',
        `since (${query.since}) is later than until (${query.until}); exchange them`,
      );
    }
    const page = await readPage(ports, `${tenant}/changes ${JSON.stringify(filter)}`, query, (place) =>
      ports.definitions.changes(tenant, place, filter).then((found) => cutToFit(found, changeSortKey)),
    );
    return { status: 200, body: { changes: page.items, nextCursor: page.nextCursor } };
  },

  async getChange({ definitions }, { caller: { tenant }, params: { id: changeId } }) {
    const change = await findChange(definitions, tenant, changeId);
    if (!change)
      throw new Problem(404, 'NOT_FOUND', `there is no change ${changeId}; countersign changes list shows them`);
    return { status: 200, body: change };
  },

  async listPendingChanges(ports, { caller: { tenant }, query }) {
    const page = await readPage(ports, `${tenant}/changes/pending`, query, ({ after, limit }) =>
      pageByPlace(
        limit,
        (count) => ports.definitions.pendingChanges(tenant, { after, limit: count }),
        ({ changeId }) => changeId,
      ).then((found) => cutToFit(found, ({ changeId }) => changeId)),
    );
    const now = isoNow(ports.clock);
    const pending = page.items.map((change) => ({ ...change, expired: change.expiresAt <= now }));
    return { status: 200, body: { pending, nextCursor: page.nextCursor } };
  },

  /** Two people make the change: the one who requested it, and an owner who is independent of them. */
  async confirmChange(ports, { caller, params }) {
    const { people, current } = await currentCaller(ports, caller, 'changes:decide');
    const pending = await mustBePending(ports, current, params.id);
    assertIndependent(people, current.person, pending, ports.clock);
    return pending.kind === 'person'
      ? { status: 200, body: await confirmPerson(ports, current, people, pending) }
      : { status: 200, body: await confirmPolicies(ports, current, pending) };
  },

  /** Any owner may reject, also the one who requested the change. */
  async rejectChange(ports, { caller, params, body: { reason } }) {
    const { current } = await currentCaller(ports, caller, 'changes:decide');
    const pending = await mustBePending(ports, current, params.id);
    await ports.definitions.dismissChange(current.tenant, pending, authorOf(ports, current), {
      action: 'rejected',
      reason,
    });
    return { status: 200, body: { rejected: pending.changeId } };
  },
};

async function confirmPerson(
  ports: ChangesPorts,
  current: Caller,
  people: readonly Person[],
  pending: PendingPerson,
): Promise<Person> {
  const { requestedBy, after } = pending;
  const before = people.find(({ id }) => id === pending.person);
  if (hashOf(before ?? null) !== hashOf(pending.before)) throw changedSince(pending.person, 'has');
  await assertValid(ports, current.tenant, people, after);
  const by = authorOf(ports, current);
  const { coolDownMs } = ports.peopleRules;
  const grant = { changedBy: requestedBy, confirmedBy: current.person, at: by.at, coolDownMs };
  const person = withProvenance(people, before, after, grant);
  await ports.definitions.savePerson(current.tenant, person, by, {
    replaces: before ?? null,
    confirms: pending,
    ...remainingOwner(people, before, person),
  });
  return person;
}

/** The policies were checked when they were requested. */
async function confirmPolicies(ports: ChangesPorts, current: Caller, pending: PendingPolicies) {
  const { tenant } = current;
  const before = await ports.definitions.policies(tenant);
  // A forbid that was published since then must not be lost.
  if (hashOf(before) !== pending.replaces) throw changedSince('the policies', 'have');
  const how = { replaces: before, confirms: pending };
  await ports.definitions.savePolicies(tenant, pending.after, authorOf(ports, current), how);
  return { confirmed: pending.changeId, kind: pending.kind };
}

const changedSince = (what: string, has: 'has' | 'have') =>
  new Problem(
    409,
    'CONFLICT',
    `${what} ${has} changed since this was requested; reject it, and request the change again`,
  );

/** An expired change is removed, and the removal recorded, when somebody tries to decide it. */
async function mustBePending(ports: ChangesPorts, current: Caller, changeId: string): Promise<PendingChange> {
  const pending = await ports.definitions.pendingChange(current.tenant, changeId);
  if (!pending) throw new Problem(404, 'NOT_FOUND', `there is no pending change ${changeId}`);
  const by = authorOf(ports, current);
  if (pending.expiresAt > by.at) return pending;
  await ports.definitions.dismissChange(current.tenant, pending, by, { action: 'expired' });
  throw new Problem(409, 'CONFLICT', `this change expired at ${pending.expiresAt}; request it again`);
}
