import { Problem } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import { whyNotCounted } from '../../people/provenance.ts';
import { changeSortKey, type PendingChange } from '../../pipeline/definition-changes.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { findChange } from '../../pipeline/find-change.ts';
import { hashOf } from '../../run/canonical-json.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { changeRoutes } from '../contract/people.ts';
import { type Paged, pageByPlace, readPage } from '../paging/paging.ts';
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

export interface ChangesPorts extends PeopleChanger, Paged {
  definitions: PeopleChanger['definitions'] & Pick<Definitions, 'changes' | 'pendingChange' | 'dismissChange'>;
}

/** A time or a day as the history spells times. */
const instantOf = (time: string | undefined): string | undefined =>
  time === undefined ? undefined : new Date(time).toISOString();

export const changeHandlers: Handlers<ChangesPorts, typeof changeRoutes> = {
  async listChanges(ports, { caller: { tenant }, query }) {
    const { kind, name, actor } = query;
    const filter = { kind, name, actor, since: instantOf(query.since), until: instantOf(query.until) };
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
      ),
    );
    const now = isoNow(ports.clock);
    const pending = page.items.map((change) => ({ ...change, expired: change.expiresAt <= now }));
    return { status: 200, body: { pending, nextCursor: page.nextCursor } };
  },

  /** Two people make the change: the one who requested it, and an owner who is independent of them. */
  async confirmChange(ports, { caller, params }) {
    const { people, current } = await currentCaller(ports, caller, 'changes:decide');
    const pending = await mustBePending(ports, current, params.id);
    const { requestedBy, after } = pending;
    const confirmer = people.find(({ id }) => id === current.person);
    if (!confirmer || current.person === requestedBy) {
      throw new Problem(403, 'FORBIDDEN', `${requestedBy} requested this change; another owner must confirm it`);
    }
    const uncounted = whyNotCounted(confirmer, [requestedBy], isoNow(ports.clock));
    if (uncounted !== undefined) throw new Problem(403, 'FORBIDDEN', uncounted);
    const requester = people.find(({ id }) => id === requestedBy);
    if (requester?.rights?.dependsOn.includes(current.person)) {
      throw new Problem(
        403,
        'FORBIDDEN',
        `you gave ${requestedBy} their rights; an owner who did not must confirm this change`,
      );
    }
    const before = people.find(({ id }) => id === pending.person);
    if (hashOf(before ?? null) !== hashOf(pending.before)) {
      throw new Problem(
        409,
        'CONFLICT',
        `${pending.person} has changed since this was requested; reject it, and request the change again`,
      );
    }
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
    return { status: 200, body: person };
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

/** An expired change is removed, and the removal recorded, when somebody tries to decide it. */
async function mustBePending(ports: ChangesPorts, current: Caller, changeId: string): Promise<PendingChange> {
  const pending = await ports.definitions.pendingChange(current.tenant, changeId);
  if (!pending) throw new Problem(404, 'NOT_FOUND', `there is no pending change ${changeId}`);
  const by = authorOf(ports, current);
  if (pending.expiresAt > by.at) return pending;
  await ports.definitions.dismissChange(current.tenant, pending, by, { action: 'expired' });
  throw new Problem(409, 'CONFLICT', `this change expired at ${pending.expiresAt}; request it again`);
}
