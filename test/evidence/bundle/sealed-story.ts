/** Texts that people and systems wrote; none of them may be found in evidence. */
export const CANARIES = [
  'CANARY-title',
  'CANARY-payload',
  'CANARY-note',
  'CANARY-group',
  'CANARY-label',
  'CANARY-actor',
  'CANARY-property',
  'CANARY-alert',
  'CANARY-context',
  'CANARY-signal',
];

/** A trigger with canaries in all texts, for a workflow that passes them to inputs, outputs and writes. */
export const TRIGGER_WITH_TEXTS = {
  fields: { title: 'CANARY-title', actor: 'CANARY-actor', number: 7 },
  payload: { text: 'CANARY-payload', 'CANARY-property of a person': 'CANARY-payload' },
};

export const WORKFLOW_WITH_TEXTS = `
name: with-texts
steps:
  - { id: route, tool: transform, with: { group: "CANARY-group", text: "{% trigger.payload.text %}" } }
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${'1'.repeat(32)}", fields: { category: "CANARY-group" } } }
  - { id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${'1'.repeat(32)}", note: "CANARY-note {% trigger.title %}" } }
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [CANARY-label] } }
  - { id: page, tool: pagerduty.event, with: { action: resolve, dedupKey: "CANARY-alert" } }
  - { id: gate, tool: github.status.set, with: { owner: octo-org, repo: payments, sha: "${'a'.repeat(40)}", context: "CANARY-context", state: success } }
`;
