import { type HttpEvent, Problem } from '../entry/http.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { type GenericSource, readBy } from '../pipeline/generic-source.ts';
import { sha256Hex } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import { deliveryKey } from '../run/idempotency.ts';
import { type Expressions, render } from '../workflow/expressions/expressions.ts';
import type { Delivery } from './delivery.ts';

/** The sender waits for the response, and filters of automations need time too. */
const READING_MAX_MS = 2_000;
const EXPRESSION_MAX_MS = 250;
const EVENT = /^[A-Za-z0-9_.:/-]{1,100}$/;
const TEXT_MAX_CHARACTERS = 300;
/** Longer ids are replaced by their hash, because they are part of a key. */
const ID_MAX_CHARACTERS = 200;

export interface GenericReader {
  definitions: Pick<Definitions, 'sources'>;
  expressions: Expressions;
}

/** A verified webhook of a tenant's own source, as its definition reads it. */
export async function genericDelivery(
  reader: GenericReader,
  { tenant, name }: { tenant: string; name: string },
  headers: HttpEvent['headers'],
  payload: unknown,
): Promise<Delivery> {
  const source = (await reader.definitions.sources(tenant)).find((each) => each.name === name);
  if (!source?.enabled) {
    const what = source ? `the webhook source ${name} is disabled` : `there is no webhook source ${name}`;
    throw new Problem(404, 'NOT_FOUND', `${what}; nothing was started`);
  }
  return readGenericDelivery({ tenant, expressions: reader.expressions }, source, headers, payload);
}

export async function readGenericDelivery(
  scope: { tenant: string; expressions: Expressions },
  source: GenericSource,
  headers: HttpEvent['headers'],
  payload: unknown,
): Promise<Delivery> {
  const { name } = source;
  const read = await readFields(scope, source, payload);
  const event = textOf(read.event);
  if (event !== undefined && !EVENT.test(event)) {
    throw new Problem(422, 'SOURCE_INVALID', 'event: its value must have 1 to 100 letters, digits and . _ : / -');
  }
  const [title, subject, actor] = [textOf(read.title), textOf(read.subject), textOf(read.actor)];
  const id = textOf(read.id) ?? headers['webhook-id'] ?? '';
  return {
    source: 'generic',
    event: event === undefined ? name : `${name}.${event}`,
    key: deliveryKey.generic({ name, id: id.length <= ID_MAX_CHARACTERS ? id : sha256Hex(id) }),
    ...(subject !== undefined && { subject: `generic:${name}:${subject.slice(0, TEXT_MAX_CHARACTERS)}` }),
    fields: { title, actor, subject },
    payload,
    // Two sources may use the same name for different people.
    makers: actor === undefined ? [] : [`${name}/${actor}`],
    ...(source.author !== undefined && { authors: [source.author] }),
  };
}

async function readFields(
  scope: { tenant: string; expressions: Expressions },
  source: GenericSource,
  payload: unknown,
): Promise<Record<string, unknown>> {
  const context = { trigger: { payload } };
  const budget = { leftMs: READING_MAX_MS, eachMs: EXPRESSION_MAX_MS };
  const read: Record<string, unknown> = {};
  for (const [field, template] of Object.entries(readBy(source))) {
    if (template === undefined) continue;
    try {
      read[field] = await render({ ...scope, context, budget }, template);
    } catch (error) {
      if (!(error instanceof CountersignError)) throw error;
      throw new Problem(422, error.code, `${field} of the webhook source ${source.name}: ${error.message}`);
    }
  }
  return read;
}

/** A missing or empty value counts as none, and so does a list or an object. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined;
}
