import * as z from 'zod';
import { Problem } from '../entry/http.ts';
import { SERVICENOW_OPERATIONS } from '../pipeline/check-event-name.ts';
import { deliveryKey } from '../run/idempotency.ts';
import type { Delivery } from './delivery.ts';
import { servicenowMakers } from './delivery-makers.ts';

/** The payload of the business rule in docs/servicenow.md: the record and the number of its change. */
const Payload = z.strictObject({
  instance: z.string().regex(/^[a-z0-9-]{1,60}$/, 'the instance name, as in https://<instance>.service-now.com'),
  table: z.string().regex(/^[a-z0-9_]{1,80}$/),
  operation: z.enum(SERVICENOW_OPERATIONS),
  sys_id: z.string().regex(/^[0-9a-f]{32}$/, 'a sys_id is 32 hexadecimal digits'),
  sys_mod_count: z.coerce.number().int().nonnegative(),
  record: z.record(z.string(), z.string().nullable()),
});

/** ServiceNow's numbers have 10 to 40 characters. A longer one is not used as the subject. */
const NUMBER_MAX_CHARACTERS = 200;

export function servicenowDelivery(payload: unknown): Delivery {
  const parsed = Payload.safeParse(payload);
  if (!parsed.success) {
    const detail = `the body is not a payload of the business rule: ${z.prettifyError(parsed.error)}`;
    throw new Problem(400, 'BAD_REQUEST', detail);
  }
  const { instance, table, operation, sys_id: sysId, sys_mod_count: modCount, record } = parsed.data;
  const makers = servicenowMakers(record);
  const number = (record.number ?? '').length <= NUMBER_MAX_CHARACTERS ? record.number : undefined;
  return {
    source: 'servicenow',
    event: `${table}.${operation}`,
    key: deliveryKey.servicenow({ instance, table, sysId, modCount }),
    subject: `servicenow:${instance}:${number ?? sysId}`,
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
