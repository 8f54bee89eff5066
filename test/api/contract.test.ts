import type { Context } from 'aws-lambda';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Approval as ApprovalView } from '../../lambdas/api/contract/approvals.ts';
import { githubRoutes } from '../../lambdas/api/contract/inbound.ts';
import { type Routes, route, routeKey } from '../../lambdas/api/contract/route.ts';
import { Receipt as ReceiptView, Step as StepView } from '../../lambdas/api/contract/runs/steps.ts';
import { PageQuery, PointInTime, page, runParams } from '../../lambdas/api/contract/schemas.ts';
import { router } from '../../lambdas/api/router.ts';
import { type HttpResponse, httpHandler } from '../../lambdas/entry/http.ts';
import type { Accepted } from '../../lambdas/intake/accept-delivery.ts';
import type { Approval } from '../../lambdas/run/approval.ts';
import type { Receipt } from '../../lambdas/run/receipt.ts';
import type { Step } from '../../lambdas/run/step.ts';
import { allRoutes, eventFor } from './every-route.ts';

type KeysOf<Union> = Union extends unknown ? keyof Union : never;

/**
 * The compiler checks that a response shows every field of a stored row except these: a new field is either added to the
 * contract or listed here.
 */
const HIDDEN: {
  step: Exclude<KeysOf<Step>, KeysOf<StepView>>;
  receipt: Exclude<KeysOf<Receipt>, KeysOf<ReceiptView>>;
  approval: Exclude<KeysOf<Approval>, KeysOf<ApprovalView>>;
} extends {
  step: 'schemaVersion';
  receipt: 'schemaVersion' | 'tenant';
  approval: 'schemaVersion' | 'tenant' | 'revision';
}
  ? string[]
  : never = ['schemaVersion', 'tenant', 'revision'];

/** The compiler checks that webhooks return what the contract says. They verify signatures, so they have no router. */
const accepted = ({ runIds, deduplicated }: Accepted): z.input<(typeof githubRoutes.receiveGithub.responses)[202]> => ({
  runIds,
  deduplicated,
});

const AS = { tenant: 'acme', person: 'olivia', role: 'owner' as const };

describe('the contract', () => {
  it('describes the response of webhooks', () => {
    const body = { runIds: ['run_1'], deduplicated: false };
    expect(githubRoutes.receiveGithub.responses[202].parse(accepted(body))).toEqual(body);
  });

  it('hides what only the storage of a row needs', () => {
    for (const schema of [...StepView.options, ...ReceiptView.options, ApprovalView]) {
      expect(Object.keys(schema.shape).filter((field) => HIDDEN.includes(field))).toEqual([]);
    }
  });

  it('has each route and each operation name once', () => {
    const keys = allRoutes.map(({ route }) => routeKey(route));
    expect(new Set(keys).size).toBe(keys.length);
    const names = allRoutes.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it.each(allRoutes)('$name describes exactly the placeholders of its path', ({ route: { path, params } }) => {
    const placeholders = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    expect(Object.keys(params?.shape ?? {}).sort()).toEqual(placeholders.sort());
  });

  it.each(allRoutes)('$name has a summary and a successful response', ({ route: { summary, responses } }) => {
    expect(summary).toMatch(/^[A-Z][a-z]+s,? /);
    expect(Object.keys(responses).every((status) => status.startsWith('2'))).toBe(true);
    expect(Object.keys(responses).length).toBeGreaterThan(0);
  });

  it.each(allRoutes)(
    '$name can be written as JSON Schema, as OpenAPI needs',
    ({ route: { body, query, responses } }) => {
      const unrepresentable = { unrepresentable: 'any' } as const;
      for (const schema of [body, query]) if (schema) z.toJSONSchema(schema, { ...unrepresentable, io: 'input' });
      for (const schema of Object.values(responses)) z.toJSONSchema(schema, { ...unrepresentable, io: 'output' });
    },
  );

  it.each(allRoutes.filter(({ route: { body } }) => body instanceof z.ZodObject))(
    '$name refuses a body with an unknown field',
    ({ route: { body } }) => {
      const { error } = (body as z.ZodObject).safeParse({ colour: 1 });
      expect(error?.issues).toContainEqual(expect.objectContaining({ code: 'unrecognized_keys', keys: ['colour'] }));
    },
  );
});

const handleWith = (definition: Routes[string], returned: { status: number; body: unknown }) =>
  router<undefined, Routes>({ operation: definition }, { operation: async () => returned as never });

describe('a response', () => {
  const listThings = route({
    method: 'GET',
    path: '/api/v1/things',
    right: 'runs:read',
    summary: 'Lists things',
    responses: { 200: page('things', z.object({ id: z.string() })) },
  });
  const send = (status: number, body: unknown) =>
    handleWith(listThings, { status, body })(undefined, eventFor(listThings, AS));

  it('has only the fields that the contract lists, not the other fields of a stored row', async () => {
    const row = { id: 'a', tenant: 'acme', schemaVersion: 1, taskToken: 'secret' };
    const { statusCode, body } = await send(200, { things: [row], nextCursor: null, pk: 'TENANT#acme' });
    expect([statusCode, JSON.parse(body ?? '')]).toEqual([200, { things: [{ id: 'a' }], nextCursor: null }]);
  });

  it.each([
    ['lacks a field', 200, { things: [] }],
    ['has a field of another type', 200, { things: [{ id: 1 }], nextCursor: null }],
    ['has a status that the contract does not list', 201, { things: [], nextCursor: null }],
  ])('that %s is a fault, not a response', async (_what, status, body) => {
    await expect(send(status, body)).rejects.toThrow('GET /api/v1/things, response 20');
  });

  it.each([
    ['GET', 'an internal error occurred; try again, or report request r1'],
    [
      'POST',
      'the request was executed, but its response could not be sent; check the result before you repeat it, and report request r1',
    ],
  ] as const)(
    'that does not match the contract is a 500 that says whether a %s took effect',
    async (method, detail) => {
      const changeThing = { ...listThings, method };
      const handle = handleWith(changeThing, { status: 200, body: { things: [{ id: 1 }] } });
      const event = eventFor(changeThing, AS);
      Object.assign(event.requestContext, { requestId: 'r1', http: { method } });
      const response = await httpHandler((received) => handle(undefined, received))(event, {} as Context);
      expect(response).toMatchObject({ statusCode: 500 });
      expect(JSON.parse((response as HttpResponse).body ?? '')).toMatchObject({ code: 'INTERNAL', detail });
    },
  );
});

describe('a request', () => {
  const saveThing = route({
    method: 'PUT',
    path: '/api/v1/things/{id}',
    right: 'runs:control',
    summary: 'Saves a thing',
    params: runParams,
    body: z.strictObject({
      needs: z.array(z.strictObject({ step: z.string() })).optional(),
      action: z
        .discriminatedUnion('kind', [
          z.strictObject({ kind: z.literal('stop'), reason: z.string() }),
          z.strictObject({ kind: z.literal('go') }),
        ])
        .optional(),
      limit: z.int().max(5).default(1),
      colors: z.strictObject({ first: z.enum(['red', 'blue']) }).optional(),
      until: PointInTime.optional(),
    }),
    responses: { 200: z.object({}) },
  });
  const send = (body: unknown, params: Record<string, string> = { id: 'a' }) =>
    handleWith(saveThing, { status: 200, body: {} })(undefined, eventFor(saveThing, AS, { params, body }));

  it.each<[string, unknown, string]>([
    ['a misspelled field', { need: [] }, 'unknown field `need`; did you mean `needs`?'],
    ['a nested one', { needs: [{ stepp: 'a' }] }, 'needs.0: unknown field `stepp`; did you mean `step`?'],
    ['a field of another variant', { action: { kind: 'go', reason: 'x' } }, 'field `reason` is not allowed here'],
    ['a field like no other', { shape: 1 }, 'unknown field `shape`; known: needs, action, limit, colors, until'],
    ['a missing field', { needs: [{}] }, 'needs.0.step: is required'],
    ['a missing choice', { colors: {} }, 'colors.first: is required; use red, blue'],
    ['no time', { until: 'yesterday' }, 'until: use a time like 2026-11-17T09:30:00Z or a day like 2026-11-17'],
    ['a wrong type', { limit: 'x' }, 'limit: expected number, got string'],
    ['a value out of range', { limit: 6 }, 'limit: must be at most 5'],
    ['text that is not JSON', 'x', 'the body is not JSON'],
  ])('with %s is refused with a sentence that says what to correct', async (_what, body, message) => {
    await expect(send(body)).rejects.toMatchObject({
      status: 400,
      code: 'BAD_REQUEST',
      message: expect.stringContaining(message),
    });
  });

  it('with a parameter that its route does not have is refused', async () => {
    const event = eventFor(saveThing, AS, { params: { id: 'a' }, body: {} });
    Object.assign(event, { queryStringParameters: { verbose: '1' } });
    const handled = handleWith(saveThing, { status: 200, body: {} })(undefined, event);
    await expect(handled).rejects.toMatchObject({ status: 400, message: 'unknown field `verbose`' });
  });

  it('with text for a number of the query is refused', async () => {
    const listThings = route({
      method: 'GET',
      path: '/api/v1/things',
      right: 'runs:read',
      summary: 'Lists things',
      query: PageQuery,
      responses: { 200: z.object({}) },
    });
    const event = eventFor(listThings, AS);
    Object.assign(event, { queryStringParameters: { limit: 'abc' } });
    const handled = handleWith(listThings, { status: 200, body: {} })(undefined, event);
    await expect(handled).rejects.toMatchObject({ status: 400, message: 'limit: must be a number' });
  });

  it('with thousands of unknown fields is refused in a short text', async () => {
    const body = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`field${index}`, 0]));
    const error = await send(body).catch((each: Error) => each);
    expect((error as Error).message.length).toBeLessThan(2_100);
  });
});
