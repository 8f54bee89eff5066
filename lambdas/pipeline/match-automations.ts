import type { Trigger } from '../run/run.ts';
import { type Expressions, render, type Scope } from '../workflow/expressions/expressions.ts';
import { type Automation, type AutomationTrigger, triggersOf } from './automation.ts';

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

/** Several triggers may match: the automation starts once for an event. */
async function matches(scope: Scope, automation: Automation, trigger: Trigger): Promise<boolean> {
  if (!automation.enabled) return false;
  const failures: unknown[] = [];
  for (const wanted of triggersOf(automation)) {
    try {
      if (await triggers(scope, wanted, trigger)) return true;
    } catch (error) {
      // A broken filter must not stop the other triggers.
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return false;
}

async function triggers(scope: Scope, wanted: AutomationTrigger, trigger: Trigger): Promise<boolean> {
  if (wanted.source === 'manual' || wanted.source !== trigger.source) return false;
  if (trigger.event !== wanted.event && !trigger.event.startsWith(`${wanted.event}.`)) return false;
  if (wanted.filter === undefined) return true;
  return (await render(scope, wanted.filter)) === true;
}

/** The trigger in expressions: `trigger.title`, and the full body as `trigger.payload`. */
export function triggerView(trigger: Trigger): Record<string, unknown> {
  return { ...trigger.fields, source: trigger.source, event: trigger.event, payload: trigger.payload };
}
