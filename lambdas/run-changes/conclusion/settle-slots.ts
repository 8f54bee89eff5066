import { isTerminal } from '../../run/run.ts';
import type { RunDraft } from '../../run/run-draft.ts';
import { automationCounter } from '../../run/run-terms.ts';
import { takeSlot } from '../../run/settings/caps.ts';
import type { RunState } from '../run-changer.ts';

/**
 * A run has its slots exactly while it is `running`; the commits that begin and end that status take and return them.
 * The cap of the tenant counts all its runs, the caps of a workflow and of an
 * automation count their runs.
 */
export function settleSlots({ settings, workflow }: RunState, draft: RunDraft): void {
  const { run, before } = draft;
  const { counterShards, caps } = settings;
  const ofTenant = caps.maxConcurrency;
  const ofWorkflow = workflow.caps?.maxConcurrency;
  const ofAutomation = run.terms?.caps?.maxConcurrency;
  if (run.status === 'running' && before.status !== 'running') {
    if (ofTenant !== undefined) {
      const taken = takeSlot(run, ofTenant, counterShards);
      draft.note({ slot: taken.slot }).cap(taken);
    }
    if (ofWorkflow !== undefined) {
      const taken = takeSlot(run, ofWorkflow, counterShards, workflow.name);
      draft.note({ workflowSlot: taken.slot }).cap(taken);
    }
    if (ofAutomation !== undefined) {
      const taken = takeSlot(run, ofAutomation, counterShards, automationCounter(run.automation));
      draft.note({ automationSlot: taken.slot }).cap(taken);
    }
  }
  if (run.status !== 'running' && before.automationSlot !== undefined) {
    draft.note({ automationSlot: undefined }).cap({ kind: 'return_slot', slot: before.automationSlot });
  }
  if (run.status !== 'running' && before.slot !== undefined) {
    draft.note({ slot: undefined }).cap({ kind: 'return_slot', slot: before.slot });
  }
  if (run.status !== 'running' && before.workflowSlot !== undefined) {
    draft.note({ workflowSlot: undefined }).cap({ kind: 'return_slot', slot: before.workflowSlot });
  }
  if (isTerminal(run) && run.concurrencyKey !== undefined) {
    // A run that ends in the commit that would take the key does not take it.
    if (before.concurrencyKey === undefined) draft.waiveCap('take_key');
    else draft.cap({ kind: 'release_key', key: run.concurrencyKey, runId: run.runId });
  }
}
