import { Problem } from '../entry/http.ts';
import { type Clock, isoNow } from '../entry/ports.ts';
import type { Commit } from '../run/commit.ts';
import type { Run, TriggerSource } from '../run/run.ts';
import { counted, METRICS } from '../telemetry/metrics.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';

interface Observing {
  telemetry?: Telemetry;
  clock: Clock;
}

/** The path of a request that is not signed has any text. */
const TENANT_NAME = /^[a-z0-9-]{1,64}$/;
const EVENT_NAME = /^[\w.-]{1,100}$/;

/** A webhook or a request started these runs. */
export function observeStarted(
  { telemetry }: Observing,
  source: TriggerSource,
  runs: readonly { run: Run; commit: Commit }[],
  isWebhook: boolean,
): void {
  const also = [
    counted(METRICS.idempotencyHits, { source, result: 'miss' }),
    ...(isWebhook ? [counted(METRICS.deliveries, { status: 'started' })] : []),
  ];
  for (const [index, started] of runs.entries()) telemetry?.committed(started, index === 0 ? also : []);
}

/** A webhook or a request is known: it started the runs before. */
export function observeDuplicate(
  { telemetry, clock }: Observing,
  { tenant, source, runIds }: { tenant: string; source: TriggerSource; runIds: readonly string[] },
  isWebhook: boolean,
): void {
  telemetry?.note({
    level: 'INFO',
    fields: {
      ...{ timestamp: isoNow(clock), event_type: 'idempotency.hit', tenant_id: tenant, source },
      session_id: runIds[0],
    },
    measurements: [
      counted(METRICS.idempotencyHits, { source, result: 'hit' }),
      ...(isWebhook ? [counted(METRICS.deliveries, { status: 'duplicate' })] : []),
    ],
  });
}

/** No automation matches. */
export function observeIgnored(
  { telemetry, clock }: Observing,
  { tenant, source, event }: { tenant: string; source: TriggerSource; event: string },
): void {
  telemetry?.note({
    level: 'INFO',
    fields: {
      ...{ timestamp: isoNow(clock), event_type: 'webhook.ignored', tenant_id: tenant, source },
      webhook_event: EVENT_NAME.test(event) ? event : undefined,
    },
    measurements: [counted(METRICS.deliveries, { status: 'ignored' })],
  });
}

/** A webhook was not accepted: because of the request, or because of an error of ours. */
export function observeRefused(
  { telemetry, clock }: Observing,
  { tenant, source, error }: { tenant: string; source: TriggerSource; error: unknown },
): void {
  const isOurs = !(error instanceof Problem) || error.status >= 500;
  const isConflict = error instanceof Problem && error.status === 409;
  telemetry?.note({
    level: isOurs ? 'ERROR' : 'WARN',
    fields: {
      ...{ timestamp: isoNow(clock), event_type: 'webhook.refused', source },
      tenant_id: TENANT_NAME.test(tenant) ? tenant : undefined,
      error_code: error instanceof Problem ? error.code : 'INTERNAL',
    },
    measurements: [
      counted(METRICS.deliveries, { status: isOurs ? 'failed' : isConflict ? 'conflict' : 'refused' }),
      ...(isConflict ? [counted(METRICS.idempotencyHits, { source, result: 'conflict' })] : []),
    ],
  });
}
