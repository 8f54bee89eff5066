import type { Trigger } from '../run/run.ts';
import { type Expressions, render, type Scope } from '../workflow/expressions/expressions.ts';
import type { Automation } from './definitions.ts';

/** All filters of one delivery together: its sender waits for the answer. */
export const FILTERS_MAX_MS = 3_000;
/** Of which one takes at most this, so that several that never end keep no other from its turn. */
const FILTER_MAX_MS = 250;

/** The automations an event starts: enabled, for its source and event, and with a filter that says exactly `true`. */
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
        // One automation's broken filter must not keep the others from running.
        onBrokenFilter(automation, error);
        return false;
      }),
    ),
  );
  return automations.filter((_, index) => verdicts[index]);
}

async function matches(scope: Scope, { enabled, trigger: wanted }: Automation, trigger: Trigger): Promise<boolean> {
  if (!enabled || wanted.source !== trigger.source) return false;
  if (trigger.event !== wanted.event && !trigger.event.startsWith(`${wanted.event}.`)) return false;
  if (wanted.filter === undefined) return true;
  return (await render(scope, wanted.filter)) === true;
}

/** A trigger as expressions see it: `trigger.title`, and the whole body under `trigger.payload`. */
export function triggerView(trigger: Trigger): Record<string, unknown> {
  return { ...trigger.fields, source: trigger.source, event: trigger.event, payload: trigger.payload };
}
