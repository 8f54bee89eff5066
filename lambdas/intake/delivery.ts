import type { TriggerSource } from '../run/run.ts';

/** A webhook with a valid signature, in the form that all sources share. */
export interface Delivery {
  source: TriggerSource;
  /** `issues.opened` or `incident.insert`. */
  event: string;
  /** The idempotency key: a repeated delivery has the same key. */
  key: string;
  /** The sender's webhook. The same key from another webhook is the same event, not a conflict. */
  hook?: string;
  /** The signature covers neither id nor time, so the body is a second key: a copy with a new id starts no runs. */
  bodyIsKey?: boolean;
  /** Identifies the event by its content, where several deliveries of it may arrive within seconds. */
  burstKey?: string;
  /** The external record, `github:octo-org/payments#7`. */
  subject?: string;
  /** Fields that workflows read by name, `trigger.sysId`. */
  fields: Record<string, unknown>;
  payload: unknown;
  /** The people who created or changed the subject. They may not approve the writes of its runs. */
  makers: string[];
  /** W3C trace context of the request, if it is valid. The signature does not cover it. */
  traceparent?: string;
  /** People of the tenant who define how the event is read. They may not approve the writes either. */
  authors?: string[];
}
