import type { TriggerSource } from '../run/run.ts';

/** A webhook after its signature held: who sent what about which thing, in the words every source shares. */
export interface Delivery {
  source: TriggerSource;
  /** What happened, `issues.opened` or `incident.insert`. */
  event: string;
  /** The idempotency key: the same delivery again has the same. */
  key: string;
  /** Which of the sender's subscriptions delivered it. The same key through another one is the same event, not a conflict. */
  hook?: string;
  /** The signature covers neither id nor time: the body is remembered too, or a copy under a new id would start runs again. */
  bodyIsKey?: boolean;
  /** Set where the same event may come under several ids within seconds; it names the event by its content. */
  burstKey?: string;
  /** What it is about, `github:octo-org/payments#7`; runs about one thing are found by it. */
  subject?: string;
  /** Fields that workflows ask for by name, `trigger.sysId`. */
  fields: Record<string, unknown>;
  payload: unknown;
  /** Whoever created or changed what it is about: none of them may approve what follows from it. */
  makers: string[];
}
