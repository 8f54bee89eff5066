import { SYS_ID } from './workshop.ts';

/** Small workflows for the tests of the worker. */
export const LABEL = `
name: label-new-issue
steps:
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: "{% trigger.number %}", labels: [triage] } }
`;

export const NOTE = `
name: note
steps:
  - { id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: "seen" } }
`;

export const POST = `
name: post
steps:
  - { id: post, tool: slack.message.post, with: { channel: "#incidents", text: "hello" } }
`;

/** A step of each effect: inner, natural, probed in the journal, natural again. */
export const TRIAGE = `
name: triage
steps:
  - { id: route, tool: transform, with: { group: "{% trigger.number = 7 ? 'database' : 'desk' %}" } }
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: "{% steps.route.output.group %}" } } }
  - { id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: "To {% steps.route.output.group %}, run {% run.id %}" } }
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: "{% trigger.number %}", labels: [triage] } }
`;
