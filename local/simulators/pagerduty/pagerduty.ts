import * as z from 'zod';
import type { SimCall, SimResponse } from '../exchange.ts';
import type { Collection } from '../store.ts';
import { router, type SimulatedSystem, type SystemContext } from '../system.ts';

export interface Alert {
  id: string;
  dedup_key: string;
  status: 'triggered' | 'acknowledged' | 'resolved';
  summary: string;
  source: string;
  severity: string;
  /** How many triggers were merged into this alert. */
  triggers: number;
  created_at: string;
  updated_at: string;
}

export interface PagerDuty extends SimulatedSystem {
  latestAlerts(limit: number): Alert[];
}

const MAX_EVENT_BYTES = 512 * 1024;

const target = {
  routing_key: z
    .string("'routing_key' is missing or blank")
    .length(32, "Length of 'routing_key' is incorrect (should be 32 characters)"),
  dedup_key: z.string().max(255, "'dedup_key' is too long (maximum is 255 characters)"),
};

const eventSchema = z.discriminatedUnion(
  'event_action',
  [
    z.object({
      ...target,
      event_action: z.literal('trigger'),
      dedup_key: target.dedup_key.optional(),
      payload: z.object(
        {
          summary: z
            .string("'payload.summary' is missing or blank")
            .min(1, "'payload.summary' is missing or blank")
            .max(1024),
          source: z.string("'payload.source' is missing or blank").min(1, "'payload.source' is missing or blank"),
          severity: z.enum(
            ['critical', 'error', 'warning', 'info'],
            "'payload.severity' is invalid (must be one of critical, error, warning, info)",
          ),
        },
        "'payload' is missing or blank",
      ),
    }),
    z.object({ ...target, event_action: z.literal('acknowledge') }),
    z.object({ ...target, event_action: z.literal('resolve') }),
  ],
  "'event_action' is invalid (must be one of trigger, acknowledge, resolve)",
);

type PagerEvent = z.infer<typeof eventSchema>;

export function openPagerDuty(context: SystemContext): PagerDuty {
  const alerts = context.store.collection<Alert>('pagerduty.alert');
  /** The open alert of a routing key and dedup key. After it is resolved, the key can open a new alert. */
  const open = context.store.collection<{ id: string }>('pagerduty.open');

  const enqueue = (call: SimCall): SimResponse => {
    if (JSON.stringify(call.body).length > MAX_EVENT_BYTES) return invalid(['The event is larger than 512 KB']);
    const event = eventSchema.safeParse(call.bodyIsMalformed ? undefined : call.body);
    if (!event.success) return invalid(event.error.issues.map((issue) => issue.message));
    const dedup_key = event.data.dedup_key ?? context.store.nextId('pagerduty.dedup_key', 32);
    process(context, alerts, open, event.data, dedup_key);
    return { status: 202, body: { status: 'success', message: 'Event processed', dedup_key } };
  };

  const route = router({ 'POST /v2/enqueue': enqueue });
  return {
    answer: (call) =>
      route(call) ?? { status: 404, body: { status: 'not found', message: `no ${call.method} ${call.path}` } },
    refuse,
    latestAlerts: (limit) => alerts.latest(limit),
  };
}

/** A trigger merges into the open alert of its key or opens a new one. Other events without an open alert are ignored. */
function process(
  context: SystemContext,
  alerts: Collection<Alert>,
  open: Collection<{ id: string }>,
  event: PagerEvent,
  dedup_key: string,
): void {
  const openKey = `${event.routing_key}:${dedup_key}`;
  const at = new Date(context.now()).toISOString();
  const current = alerts.get(open.get(openKey)?.id ?? '');
  if (current) {
    if (event.event_action === 'trigger') current.triggers++;
    else current.status = event.event_action === 'resolve' ? 'resolved' : 'acknowledged';
    if (current.status === 'resolved') open.delete(openKey);
    alerts.put(current.id, { ...current, updated_at: at });
    return;
  }
  if (event.event_action !== 'trigger') return;
  const { summary, source, severity } = event.payload;
  const id = `Q${context.store.nextId('pagerduty.alert', 13).toUpperCase()}`;
  alerts.put(id, {
    id,
    dedup_key,
    status: 'triggered',
    summary,
    source,
    severity,
    triggers: 1,
    created_at: at,
    updated_at: at,
  });
  open.put(openKey, { id });
}

const invalid = (errors: string[]): SimResponse => ({
  status: 400,
  body: { status: 'invalid event', message: 'Event object is invalid', errors },
});

function refuse(status: number): SimResponse {
  if (status !== 429) return { status, body: { status: 'error', message: `Simulated failure ${status}` } };
  const message = 'Requests for this service are arriving too quickly. Please retry later.';
  return { status, body: { status: 'throttle exceeded', message } };
}
