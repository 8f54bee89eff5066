import type { TriggerSource } from '../run/run.ts';

/** A webhook after its signature held: who sent what about which thing, in the words every source shares. */
export interface Delivery {
  source: TriggerSource;
  /** What happened, `issues.opened` or `incident.insert`. */
  event: string;
  /** The idempotency key: the same delivery again has the same. */
  key: string;
  /** Set where one change may come as several deliveries within seconds: only the first of a burst starts a run. */
  burstKey?: string;
  /** What it is about, `github:octo-org/payments#7`; runs about one thing are found by it. */
  subject?: string;
  /** Fields that workflows ask for by name, `trigger.sysId`. */
  fields: Record<string, unknown>;
  payload: unknown;
  /** Whoever created or changed what it is about: none of them may approve what follows from it. */
  makers: string[];
}
