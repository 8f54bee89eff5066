import type { Trigger } from '../run/run.ts';
import { type Expressions, render, type Scope } from '../workflow/expressions/expressions.ts';
import type { Automation } from './definitions.ts';

/** The time for all filters of a delivery, because its sender waits for the response. */
const FILTERS_MAX_MS = 3_000;
/** The time for one filter, so that filters that never end leave time for the others. */
const FILTER_MAX_MS = 250;

/** The enabled automations for this source and event whose filter gives exactly `true`. */
export async function matchAutomations(
  expressions: Expressions,
  tenant: string,
  automations: Automation[],
  trigger: Trigger,
  onBrokenFilter: (automation: Automation, error: unknown) => void,
): Promise<Automation[]> {
  const budget = { leftMs: FILTERS_MAX_MS, eachMs: FILTER_MAX_MS };
  const scope = { expressions, tenant, context: { trigger: triggerView(trigger) }, budget };
  const verdicts = await Promise.all(
    automations.map((automation) =>
      matches(scope, automation, trigger).catch((error: unknown) => {
        // A broken filter must not stop the other automations.
        onBrokenFilter(automation, error);
        return false;
      }),
    ),
  );
  return automations.filter((_, index) => verdicts[index]);
}

async function matches(scope: Scope, { enabled, trigger: wanted }: Automation, trigger: Trigger): Promise<boolean> {
  if (!enabled || wanted.source === 'manual' || wanted.source !== trigger.source) return false;
  if (trigger.event !== wanted.event && !trigger.event.startsWith(`${wanted.event}.`)) return false;
  if (wanted.filter === undefined) return true;
  return (await render(scope, wanted.filter)) === true;
}

/** The trigger in expressions: `trigger.title`, and the full body as `trigger.payload`. */
export function triggerView(trigger: Trigger): Record<string, unknown> {
  return { ...trigger.fields, source: trigger.source, event: trigger.event, payload: trigger.payload };
}
