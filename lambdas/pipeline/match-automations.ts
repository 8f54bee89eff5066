import type { Trigger } from '../run/run.ts';
import { render } from '../workflow/expressions.ts';
import type { Automation } from './definitions.ts';

/** The automations an event starts: enabled, for its source and event, and with a filter that says exactly `true`. */
export async function matchAutomations(
  automations: Automation[],
  trigger: Trigger,
  onBrokenFilter: (automation: Automation, error: unknown) => void,
): Promise<Automation[]> {
  const verdicts = await Promise.all(
    automations.map((automation) =>
      matches(automation, trigger).catch((error: unknown) => {
        // One automation's broken filter must not keep the others from running.
        onBrokenFilter(automation, error);
        return false;
      }),
    ),
  );
  return automations.filter((_, index) => verdicts[index]);
}

async function matches({ enabled, trigger: wanted }: Automation, trigger: Trigger): Promise<boolean> {
  if (!enabled || wanted.source !== trigger.source) return false;
  if (trigger.event !== wanted.event && !trigger.event.startsWith(`${wanted.event}.`)) return false;
  if (wanted.filter === undefined) return true;
  return (await render(wanted.filter, { trigger: triggerView(trigger) })) === true;
}

/** A trigger as expressions see it: `trigger.title`, and the whole body under `trigger.payload`. */
export function triggerView(trigger: Trigger): Record<string, unknown> {
  return { ...trigger.fields, source: trigger.source, event: trigger.event, payload: trigger.payload };
}
