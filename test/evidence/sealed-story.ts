import type { Receipt } from '../../lambdas/run/receipt.ts';
import { isTerminal, type TerminalRun } from '../../lambdas/run/run.ts';
import type { LoadedRun } from '../../lambdas/run/run-store.ts';
import type { StepMessage } from '../../lambdas/worker/step-queue.ts';
import type { Workshop } from '../worker/workshop.ts';

/** Texts that people and systems wrote; none of them may be found in evidence. */
export const CANARIES = [
  'CANARY-title',
  'CANARY-payload',
  'CANARY-note',
  'CANARY-group',
  'CANARY-label',
  'CANARY-actor',
];

/** A trigger full of canaries, for a workflow that carries them on into inputs, outputs and writes. */
export const TELLING_TRIGGER = {
  fields: { title: 'CANARY-title', actor: 'CANARY-actor', number: 7 },
  payload: { text: 'CANARY-payload' },
};

export const TELLING = `
name: telling
steps:
  - { id: route, tool: transform, with: { group: "CANARY-group", text: "{% trigger.payload.text %}" } }
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${'1'.repeat(32)}", fields: { assignment_group: "CANARY-group" } } }
  - { id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${'1'.repeat(32)}", note: "CANARY-note {% trigger.title %}" } }
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [CANARY-label] } }
`;

export interface Ended extends LoadedRun {
  run: TerminalRun;
  receipts: Receipt[];
}

/** What a sealer reads of a run that has ended. */
export async function ended(shop: Workshop, message: StepMessage): Promise<Ended> {
  const loaded = await shop.runs.load(message.tenant, message.runId);
  if (!loaded || !isTerminal(loaded.run)) throw new Error('the run has not ended');
  const { receipts } = await shop.now(message);
  return { ...loaded, run: loaded.run, receipts };
}
