import * as z from 'zod';
import { type HttpEvent, type HttpResponse, json, Problem } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import { whyNotCounted } from '../../people/provenance.ts';
import { changeSortKey, type PendingChange } from '../../pipeline/definition-changes.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { hashOf } from '../../run/canonical-json.ts';
import type { Caller } from '../authorizer/api-keys.ts';
import { mayOrRefuse } from '../authorizer/caller.ts';
import { type Paged, PageQuery, pageByPlace, readPage } from '../paging/paging.ts';
import { parseBody, parseQuery } from '../request.ts';
import { cutToFit } from '../response-size.ts';
import type { Handlers } from '../router.ts';
import { acting, assertNoMachine, assertValid, authorOf, type PeopleChanger, vouchedFor } from './change-person.ts';

const REASON_MAX_CHARACTERS = 500;
const RejectBody = z.strictObject({ reason: z.string().trim().min(1, 'say why').max(REASON_MAX_CHARACTERS) });

export interface ChangesApi extends PeopleChanger, Paged {
  definitions: PeopleChanger['definitions'] & Pick<Definitions, 'changes' | 'pendingChange' | 'dismissChange'>;
}

export const CHANGE_HANDLERS: Handlers<ChangesApi, 'changes'> = {
  'GET /api/v1/changes': list,
  'GET /api/v1/changes/pending': listPending,
  'POST /api/v1/changes/pending/{id}/confirm': confirm,
  'POST /api/v1/changes/pending/{id}/reject': reject,
};

/** Who changed what, newest first. */
async function list(api: ChangesApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  mayOrRefuse(caller, 'audit', 'read the history of changes');
  const { tenant } = caller;
  const page = await readPage(api, `${tenant}/changes`, parseQuery(PageQuery, event), (place) =>
    api.definitions.changes(tenant, place).then((found) => cutToFit(found, changeSortKey)),
  );
  return json(200, { changes: page.items, nextCursor: page.nextCursor });
}

async function listPending(api: ChangesApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  mayOrRefuse(caller, 'audit', 'read the changes that wait for a second owner');
  const { tenant } = caller;
  const page = await readPage(api, `${tenant}/changes/pending`, parseQuery(PageQuery, event), ({ after, limit }) =>
    pageByPlace(
      limit,
      (count) => api.definitions.pendingChanges(tenant, { after, limit: count }),
      ({ changeId }) => changeId,
    ),
  );
  const now = isoNow(api.clock);
  const pending = page.items.map((change) => ({ ...change, expired: change.expiresAt <= now }));
  return json(200, { pending, nextCursor: page.nextCursor });
}

/** The change is made, by two people: who asked for it, and an owner who did not. */
async function confirm(api: ChangesApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  const people = await api.definitions.people(caller.tenant);
  const as = acting(people, caller);
  mayOrRefuse(as, 'own', 'confirm a change of people');
  assertNoMachine(as, 'confirm a change of people');
  const pending = await mustBePending(api, as, event);
  const { requestedBy, after } = pending;
  const confirmer = people.find(({ id }) => id === as.person);
  if (!confirmer || as.person === requestedBy) {
    throw new Problem(403, 'FORBIDDEN', `${requestedBy} asked for this; another owner must confirm it`);
  }
  const uncounted = whyNotCounted(confirmer, [requestedBy], isoNow(api.clock));
  if (uncounted !== undefined) throw new Problem(403, 'FORBIDDEN', uncounted);
  const requester = people.find(({ id }) => id === requestedBy);
  if (requester?.rights?.dependsOn.includes(as.person)) {
    throw new Problem(403, 'FORBIDDEN', `you gave ${requestedBy} their rights; an owner who did not must confirm this`);
  }
  const before = people.find(({ id }) => id === pending.person);
  if (hashOf(before ?? null) !== hashOf(pending.before)) {
    throw new Problem(
      409,
      'CONFLICT',
      `${pending.person} was changed after this was asked for; reject it, and ask for the change again`,
    );
  }
  await assertValid(api, as.tenant, people, after);
  const by = authorOf(api, as);
  const { coolDownMs } = api.peopleRules;
  const vouching = { changedBy: requestedBy, confirmedBy: as.person, at: by.at, coolDownMs };
  const person = vouchedFor(people, before, after, vouching);
  await api.definitions.savePerson(as.tenant, person, by, { replaces: before ?? null, confirms: pending });
  return json(200, person);
}

/** Any owner may: who asked for it as well. */
async function reject(api: ChangesApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  const as = acting(await api.definitions.people(caller.tenant), caller);
  mayOrRefuse(as, 'own', 'reject a change of people');
  const { reason } = parseBody(RejectBody, event);
  const pending = await mustBePending(api, as, event);
  await api.definitions.dismissChange(as.tenant, pending, authorOf(api, as), { action: 'rejected', reason });
  return json(200, { rejected: pending.changeId });
}

/** One that expired is removed, which the history records, as soon as somebody wants to decide on it. */
async function mustBePending(api: ChangesApi, as: Caller, event: HttpEvent): Promise<PendingChange> {
  const changeId = event.pathParameters?.id ?? '';
  const pending = await api.definitions.pendingChange(as.tenant, changeId);
  if (!pending) throw new Problem(404, 'NOT_FOUND', `no change ${changeId} waits for a second owner`);
  const by = authorOf(api, as);
  if (pending.expiresAt > by.at) return pending;
  await api.definitions.dismissChange(as.tenant, pending, by, { action: 'expired' });
  throw new Problem(409, 'CONFLICT', `this expired at ${pending.expiresAt}; ask for the change again`);
}
