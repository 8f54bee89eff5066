import * as z from 'zod';
import { Person as PersonDefinition } from '../../../people/people.ts';
import { ROLES } from '../../../people/rights.ts';
import { CHANGE_ACTIONS, CHANGE_KINDS } from '../../../pipeline/definition-changes.ts';
import { route } from '../route.ts';
import { json, PageQuery, PointInTime, page, Timestamp } from '../schemas.ts';

const Provenance = z.object({
  changedBy: z.string(),
  confirmedBy: z.string().optional(),
  changedAt: Timestamp,
  countsFrom: Timestamp,
  dependsOn: z.array(z.string()),
});
Provenance.register(z.globalRegistry, { id: 'Provenance' });

const Person = z.object({
  id: z.string(),
  name: z.string(),
  role: z.enum(ROLES),
  tier: z.enum(['low', 'medium', 'high']),
  groups: z.array(z.string()),
  identities: z.array(z.string()).meta({ example: ['github:ana-dev', 'slack:T0ACME/U0ANA'] }),
  away: z.object({ until: Timestamp, delegate: z.string() }).optional(),
  delegates: z.array(z.object({ person: z.string(), rights: Provenance })).optional(),
  rights: Provenance.optional(),
});
Person.register(z.globalRegistry, { id: 'Person' });

const requested = {
  changeId: z.string(),
  widens: z.array(z.string()).meta({ description: 'Why the change needs a second owner' }),
  requestedBy: z.string(),
  requestedAt: Timestamp,
  expiresAt: Timestamp,
};

const PendingPerson = z.object({
  kind: z.literal('person'),
  person: z.string(),
  before: Person.nullable(),
  after: Person,
  ...requested,
});
PendingPerson.register(z.globalRegistry, { id: 'PendingPerson' });

export const PendingPolicies = z.object({
  kind: z.literal('policies'),
  replaces: z.string().meta({ description: 'SHA-256 of the policies that the change replaces' }),
  after: z.union([
    z.object({ engine: z.literal('cedar'), files: z.record(z.string(), z.string()) }),
    z.object({ engine: z.literal('rego'), wasmGzipBase64: z.string() }),
  ]),
  ...requested,
});
PendingPolicies.register(z.globalRegistry, { id: 'PendingPolicies' });

const expired = { expired: z.boolean() };
const PendingChange = z.discriminatedUnion('kind', [PendingPerson.extend(expired), PendingPolicies.extend(expired)]);
PendingChange.register(z.globalRegistry, { id: 'PendingChange' });

/** 202: the change widens who may approve, so a second owner must confirm it. */
const changedOrPending = { 200: Person, 202: z.object({ pending: PendingPerson, next: z.string() }) };

const DELEGATES_MAX = 20;
const personParams = z.object({ id: z.string() });

export const peopleRoutes = {
  listPeople: route({
    method: 'GET',
    path: '/api/v1/people',
    right: 'people:read',
    summary: 'Lists people, by ID',
    query: PageQuery,
    responses: { 200: page('people', Person) },
  }),
  getPerson: route({
    method: 'GET',
    path: '/api/v1/people/{id}',
    right: 'people:read',
    summary: 'Returns a person',
    params: personParams,
    responses: { 200: Person },
  }),
  savePerson: route({
    method: 'PUT',
    path: '/api/v1/people/{id}',
    right: 'people:write',
    summary: 'Creates or replaces a person',
    description:
      '202: the change widens who may approve, and in a prod stage a second owner must confirm it. Until then nothing changes.',
    params: z.object({ id: PersonDefinition.shape.id }),
    // Delegates and the confirmation of rights have their own routes.
    body: PersonDefinition.omit({ id: true, delegates: true, rights: true }),
    example: {
      name: 'Ana Ortiz',
      role: 'approver',
      tier: 'high',
      groups: ['network'],
      identities: ['slack:T0ACME/U0ANA', 'github:ana-dev'],
    },
    responses: changedOrPending,
  }),
  deletePerson: route({
    method: 'DELETE',
    path: '/api/v1/people/{id}',
    right: 'people:write',
    summary: 'Deletes a person; their API keys stop working',
    params: personParams,
    responses: { 200: z.object({ deleted: z.string() }) },
  }),
  setAway: route({
    method: 'PUT',
    path: '/api/v1/people/{id}/away',
    right: 'people:set-away',
    summary: 'Names who decides for a person until a date; null ends the absence. For others it requires people:write',
    params: personParams,
    body: z.strictObject({ away: PersonDefinition.shape.away.unwrap().nullable() }),
    responses: changedOrPending,
  }),
  setDelegates: route({
    method: 'PUT',
    path: '/api/v1/people/{id}/delegates',
    right: 'people:delegate',
    summary: 'Allows others to decide for a person, with all rights of that person',
    params: personParams,
    body: z.strictObject({ delegates: z.array(PersonDefinition.shape.id).max(DELEGATES_MAX) }),
    responses: changedOrPending,
  }),
  confirmPerson: route({
    method: 'POST',
    path: '/api/v1/people/{id}/confirm',
    right: 'people:write',
    peopleOnly: true,
    summary: 'Confirms the rights of a person independently of those who granted them',
    params: personParams,
    responses: { 200: Person },
  }),
};

const Change = z.object({
  kind: z.enum(CHANGE_KINDS),
  name: z.string(),
  action: z.enum(CHANGE_ACTIONS),
  before: json('The definition before the change, or null'),
  after: json('The definition after the change, or null'),
  secretsSet: z.array(z.string()).optional(),
  requestedBy: z.string().optional(),
  reason: z.string().optional(),
  actor: z.string(),
  at: Timestamp,
  changeId: z.string(),
  salt: z
    .string()
    .optional()
    .meta({ description: 'Random. The digest in the signed file of the day is the SHA-256 of the change with it' }),
});
Change.register(z.globalRegistry, { id: 'Change' });

const REASON_MAX_CHARACTERS = 500;
const changeParams = z.object({ id: z.string().meta({ description: 'ID of the pending change' }) });

export const changeRoutes = {
  listChanges: route({
    method: 'GET',
    path: '/api/v1/changes',
    right: 'changes:read',
    summary:
      'Lists who changed which definition, the newest change first. A filtered page can be short and have a next page',
    query: PageQuery.extend({
      kind: z.enum(CHANGE_KINDS).optional(),
      name: z.string().min(1).max(200).optional(),
      actor: z.string().min(1).max(200).optional(),
      since: PointInTime.optional(),
      until: PointInTime.optional(),
    }),
    responses: { 200: page('changes', Change) },
  }),
  getChange: route({
    method: 'GET',
    path: '/api/v1/changes/{id}',
    right: 'changes:read',
    summary: 'Returns one change with the definition before and after it',
    params: z.object({ id: z.string().max(200).meta({ description: 'ID of the change' }) }),
    responses: { 200: Change },
  }),
  listPendingChanges: route({
    method: 'GET',
    path: '/api/v1/changes/pending',
    right: 'changes:read',
    summary: 'Lists the changes that wait for a second owner',
    query: PageQuery,
    responses: { 200: page('pending', PendingChange) },
  }),
  confirmChange: route({
    method: 'POST',
    path: '/api/v1/changes/pending/{id}/confirm',
    right: 'changes:decide',
    peopleOnly: true,
    summary: 'Confirms a pending change of a person or of policies',
    description: 'An owner confirms who is independent of the person who requested the change.',
    params: changeParams,
    responses: { 200: z.union([Person, z.object({ confirmed: z.string(), kind: z.literal('policies') })]) },
  }),
  rejectChange: route({
    method: 'POST',
    path: '/api/v1/changes/pending/{id}/reject',
    right: 'changes:decide',
    summary: 'Rejects a pending change',
    params: changeParams,
    body: z.strictObject({ reason: z.string().trim().min(1, 'give a reason').max(REASON_MAX_CHARACTERS) }),
    responses: { 200: z.object({ rejected: z.string() }) },
  }),
};
