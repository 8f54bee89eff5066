import { Ajv } from 'ajv';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { updateIncident } from '../../lambdas/connectors/servicenow/incidents.ts';
import { perform, performance, readBefore } from '../contracts/connectors/connectors-contract.ts';
import { EXAMPLES } from '../contracts/connectors/connectors-examples.ts';
import { type Outside, openSimulatedOutside, SYS_ID } from '../contracts/connectors/connectors-outside.ts';
import { type RecordedExchange, type Recording, recordExchanges } from './recorded-exchanges.ts';

/**
 * The Table API as ServiceNow documents it (REST API reference, "Table API"): it publishes no machine-readable description.
 * Values are text; a reference is a link and a value; a requested field that does not exist is omitted.
 */
const TABLE = /^\/_sim\/servicenow\/api\/now\/table\/([a-z0-9_]+)(?:\/([0-9a-f]{32}))?$/;
const PARAMETERS = {
  list: ['sysparm_query', 'sysparm_fields', 'sysparm_limit', 'sysparm_offset', 'sysparm_display_value'],
  one: ['sysparm_fields', 'sysparm_display_value', 'sysparm_input_display_value', 'sysparm_exclude_reference_link'],
};
const VALUE = {
  anyOf: [
    { type: 'string' },
    {
      type: 'object',
      required: ['link', 'value'],
      properties: { link: { type: 'string' }, value: { type: 'string' } },
      additionalProperties: false,
    },
  ],
};
const RECORD = { type: 'object', additionalProperties: VALUE };
const result = (schema: object) => ({ type: 'object', required: ['result'], properties: { result: schema } });
const ERROR = {
  type: 'object',
  required: ['error', 'status'],
  properties: {
    error: {
      type: 'object',
      required: ['message', 'detail'],
      properties: { message: { type: 'string' }, detail: { type: ['string', 'null'] } },
      additionalProperties: false,
    },
    status: { const: 'failure' },
  },
  additionalProperties: false,
};

const ajv = new Ajv({ allErrors: true, allowUnionTypes: true });

function problems({ method, url, headers, body, status, answer, answerHeaders }: RecordedExchange): string[] {
  const [, table, sysId] = TABLE.exec(url.pathname) ?? [];
  if (table === undefined) return [`there is no ${url.pathname}`];
  const isList = sysId === undefined && method === 'GET';
  const known = isList ? PARAMETERS.list : PARAMETERS.one;
  const unknown = [...url.searchParams.keys()].filter((name) => !known.includes(name));
  const schema = status >= 400 ? ERROR : result(isList ? { type: 'array', items: RECORD } : RECORD);
  const fields = url.searchParams.get('sysparm_fields')?.split(',') ?? [];
  const rows = [(answer as { result?: unknown }).result].flat();
  const extra = status < 400 && fields.length > 0 ? rows.flatMap((row) => Object.keys(row as object)) : [];
  const counted = answerHeaders.get('x-total-count');
  return [
    ...unknown.map((name) => `${name} is not a parameter`),
    ...(headers.get('accept') === 'application/json' ? [] : ['it does not ask for JSON']),
    ...((method === 'PATCH' || method === 'POST') === (body !== undefined)
      ? []
      : [`${method} with a body, or without`]),
    ...Object.values((body ?? {}) as object).flatMap((value) =>
      typeof value === 'object' ? ['a value is no text'] : [],
    ),
    ...(ajv.validate(schema, answer) ? [] : [ajv.errorsText()]),
    ...extra.filter((name) => !fields.includes(name)).map((name) => `${name} was not asked for`),
    ...(isList && status < 400 && !/^\d+$/.test(counted ?? '') ? ['a list has no X-Total-Count'] : []),
  ];
}

let outside: Outside;
let recording: Recording;
beforeEach(async () => {
  recording = recordExchanges();
  outside = await openSimulatedOutside();
  recording.exchanges.length = 0;
});
afterEach(async () => {
  recording.stop();
  await outside.close();
});

const ofServicenow = () => recording.exchanges.filter(({ url }) => url.pathname.startsWith('/_sim/servicenow/'));

describe('according to the documentation of the Table API', () => {
  const examples = EXAMPLES.filter(({ operation }) => operation.connection === 'servicenow');

  it.each(examples.map((example) => [example.operation.tool, example] as const))(
    'every request of %s and every answer of the simulator is as documented',
    async (_tool, { operation, input }) => {
      const given = await input(outside);
      await perform(outside, operation, given, { before: await readBefore(outside, operation, given) });
      await operation.probe?.(operation.parse(given), performance(outside, operation));
      expect(ofServicenow().length).toBeGreaterThan(0);
      expect(ofServicenow().flatMap(problems)).toEqual([]);
    },
  );

  it.each([401, 403, 404, 429, 503])('a %i of the simulator is an error as documented', async (status) => {
    await outside.fault('servicenow', 'PATCH', { status });
    await expect(perform(outside, updateIncident, { sysId: SYS_ID, fields: { state: '2' } })).rejects.toThrow();
    expect(ofServicenow().at(-1)).toMatchObject({ status });
    expect(ofServicenow().flatMap(problems)).toEqual([]);
  });

  it('a missing incident gets the documented response', async () => {
    await expect(
      readBefore(outside, updateIncident, { sysId: '0'.repeat(32), fields: { state: '2' } }),
    ).rejects.toThrow();
    expect(ofServicenow().at(-1)).toMatchObject({ status: 404 });
    expect(ofServicenow().flatMap(problems)).toEqual([]);
  });
});
