import * as z from 'zod';
import { Problem } from '../entry/http.ts';
import { SERVICENOW_OPERATIONS } from '../pipeline/check-event-name.ts';
import { deliveryKey } from '../run/idempotency.ts';
import type { Delivery } from './delivery.ts';
import { servicenowMakers } from './delivery-makers.ts';

/** What the business rule in docs/servicenow.md sends: the record and which change of it this is. */
const Payload = z.strictObject({
  instance: z.string().regex(/^[a-z0-9-]{1,60}$/, 'the instance name, as in https://<instance>.service-now.com'),
  table: z.string().regex(/^[a-z0-9_]{1,80}$/),
  operation: z.enum(SERVICENOW_OPERATIONS),
  sys_id: z.string().regex(/^[0-9a-f]{32}$/, 'a sys_id is 32 hexadecimal digits'),
  sys_mod_count: z.coerce.number().int().nonnegative(),
  record: z.record(z.string(), z.string().nullable()),
});

/** ServiceNow's own numbers have 10 to 40; a longer one is no number that anybody looks for. */
const NUMBER_MAX_CHARACTERS = 200;

export function servicenowDelivery(payload: unknown): Delivery {
  const parsed = Payload.safeParse(payload);
  if (!parsed.success) {
    throw new Problem(400, 'BAD_REQUEST', `not what the business rule sends: ${z.prettifyError(parsed.error)}`);
  }
  const { instance, table, operation, sys_id: sysId, sys_mod_count: modCount, record } = parsed.data;
  const makers = servicenowMakers(record);
  return {
    source: 'servicenow',
    event: `${table}.${operation}`,
    key: deliveryKey.servicenow({ instance, table, sysId, modCount }),
    subject: `servicenow:${instance}:${(record.number ?? '').length <= NUMBER_MAX_CHARACTERS ? (record.number ?? sysId) : sysId}`,
    fields: {
      title: record.short_description,
      actor: makers[0],
      severity: record.priority,
      url: `https://${instance}.service-now.com/nav_to.do?uri=${table}.do?sys_id=${sysId}`,
      instance,
      table,
      sysId,
      number: record.number,
      priority: record.priority,
    },
    payload,
    makers,
  };
}
