import { expect } from 'vitest';
import type { Operation } from '../../../lambdas/connectors/connector.ts';
import { addAssignees, removeAssignees } from '../../../lambdas/connectors/github/assignees.ts';
import { createComment, deleteComment, updateComment } from '../../../lambdas/connectors/github/comments.ts';
import { closeIssue, createIssue, reopenIssue } from '../../../lambdas/connectors/github/issues.ts';
import { addLabels, removeLabels } from '../../../lambdas/connectors/github/labels.ts';
import { setStatus } from '../../../lambdas/connectors/github/status.ts';
import { dispatchWorkflow } from '../../../lambdas/connectors/github/workflows.ts';
import { sendEvent } from '../../../lambdas/connectors/pagerduty/events.ts';
import {
  addWorkNote,
  findIncidents,
  getIncident,
  updateIncident,
} from '../../../lambdas/connectors/servicenow/incidents.ts';
import {
  createRecord,
  findRecord,
  getRecord,
  updateAnyRecord,
} from '../../../lambdas/connectors/servicenow/records.ts';
import { postMessage, updateMessage } from '../../../lambdas/connectors/slack/messages.ts';
import type { VendorJson } from '../../local/simulators/world.ts';
import { ISSUE, type Outside, PROBLEM, SYS_ID } from './connectors-outside.ts';

export const MARK = 'countersign:0123456789abcdef0123';

/** One example of an operation, from which all tests of the contract are derived. */
export interface Example {
  operation: Operation;
  /** Creates what the operation needs, and returns its input. */
  input(outside: Outside): Promise<unknown>;
  /** The method of the request that writes. */
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Reads the affected part of the target. */
  look(outside: Outside): Promise<unknown>;
  /** What the target shows after the write. */
  shows: unknown;
  output: unknown;
  /** The response has no body that could be truncated. */
  answersNothing?: true;
}

const GROUP = '7db8c0366047d2b436c8dcd13dde2bf8';
const { owner, repo } = ISSUE;
const SHA = 'a'.repeat(40);
const issue = '/repos/octo-org/payments/issues/7';

const group = async (outside: Outside) => {
  const { result } = await outside.ask('servicenow', 'GET', `/api/now/table/incident/${SYS_ID}`);
  return result.assignment_group.value ?? result.assignment_group;
};
const problems = async (outside: Outside) => {
  const { result } = await outside.ask('servicenow', 'GET', '/api/now/table/problem');
  return result
    .map(({ number, assignment_group: to }: VendorJson) => `${number}: ${to?.value ?? to ?? ''}`)
    .sort((a: string, b: string) => a.length - b.length);
};
const workNotes = async (outside: Outside) => {
  const query = encodeURIComponent(`element_id=${SYS_ID}^element=work_notes`);
  const path = `/api/now/table/sys_journal_field?sysparm_query=${query}`;
  const { result } = await outside.ask('servicenow', 'GET', path);
  return result.map(({ value }: { value: string }) => value);
};
const labels = async (outside: Outside) => {
  const there = await outside.ask('github', 'GET', `${issue}/labels`);
  return there.map(({ name }: { name: string }) => name);
};
const assignees = async (outside: Outside) => {
  const shown = await outside.ask('github', 'GET', issue);
  return shown.assignees.map(({ login }: { login: string }) => login);
};
const comments = async (outside: Outside) => {
  const there = await outside.ask('github', 'GET', `${issue}/comments`);
  return there.map(({ body }: { body: string }) => body);
};
/** Without the issues that the tenant has anyway. */
const openedIssues = async (outside: Outside) => {
  const there = await outside.ask('github', 'GET', '/repos/octo-org/payments/issues?state=open');
  const opened = there.filter(({ body }: { body: string | null }) => body?.includes('countersign:'));
  return opened.map(({ title, body }: Record<string, string>) => `${title}: ${body}`);
};
const issueState = async (outside: Outside) => {
  const { state, state_reason } = await outside.ask('github', 'GET', issue);
  return state === 'closed' ? `closed as ${state_reason}` : state;
};
const dispatches = async (outside: Outside) => {
  const { workflow_runs: runs } = await outside.ask('github', 'GET', '/repos/octo-org/payments/actions/runs');
  return runs.map(({ workflow, ref }: Record<string, string>) => `${workflow} at ${ref}`);
};
const status = async (outside: Outside) => {
  const { statuses } = await outside.ask('github', 'GET', `/repos/octo-org/payments/commits/${SHA}/status`);
  return statuses.map(({ context, state }: Record<string, string>) => `${context}: ${state}`);
};
const channel = async (outside: Outside): Promise<string> =>
  (await outside.ask('slack', 'GET', '/api/conversations.list')).channels[0].id;
const messages = async (outside: Outside) => {
  const shown = await outside.ask('slack', 'GET', `/api/conversations.history?channel=${await channel(outside)}`);
  const texts = shown.messages.map(({ text }: { text: string }) => text);
  return texts.filter((text: string) => text !== 'a first message');
};
const openAlerts = (outside: Outside) => outside.openAlerts();

export const EXAMPLES: readonly Example[] = [
  {
    operation: getIncident,
    input: async () => ({ sysId: SYS_ID, fields: ['number', 'state'] }),
    method: 'GET',
    look: group,
    shows: '',
    output: { sysId: SYS_ID, fields: { number: 'INC0010001', state: '1' } },
  },
  {
    operation: updateIncident,
    input: async () => ({ sysId: SYS_ID, fields: { assignment_group: GROUP } }),
    method: 'PATCH',
    look: group,
    shows: GROUP,
    output: { sysId: SYS_ID, number: 'INC0010001', modCount: expect.any(String), fields: { assignment_group: GROUP } },
  },
  {
    operation: addWorkNote,
    input: async () => ({ sysId: SYS_ID, note: 'Routed to [code]Database[/code].' }),
    method: 'PATCH',
    look: workNotes,
    shows: [`Routed to [ code]Database[ /code].\n[${MARK}]`],
    output: { sysId: SYS_ID },
  },
  {
    operation: findIncidents,
    input: async () => ({ where: [{ field: 'number', is: 'INC0010001' }], fields: ['number', 'state'] }),
    method: 'GET',
    look: group,
    shows: '',
    output: {
      records: [{ sysId: SYS_ID, fields: { number: 'INC0010001', state: '1' } }],
      total: 1,
      truncated: false,
    },
  },
  {
    operation: getRecord,
    input: async () => ({ table: 'problem', sysId: PROBLEM, fields: ['number', 'priority'] }),
    method: 'GET',
    look: problems,
    shows: ['PRB0040001: '],
    output: { sysId: PROBLEM, fields: { number: 'PRB0040001', priority: '2' } },
  },
  {
    operation: findRecord,
    input: async () => ({ table: 'problem', where: [{ field: 'priority', is: 2 }], fields: ['number'], limit: 5 }),
    method: 'GET',
    look: problems,
    shows: ['PRB0040001: '],
    output: { records: [{ sysId: PROBLEM, fields: { number: 'PRB0040001' } }], total: 1, truncated: false },
  },
  {
    operation: updateAnyRecord,
    input: async () => ({ table: 'problem', sysId: PROBLEM, fields: { assignment_group: GROUP } }),
    method: 'PATCH',
    look: problems,
    shows: [`PRB0040001: ${GROUP}`],
    output: { sysId: PROBLEM, number: 'PRB0040001', modCount: expect.any(String), fields: { assignment_group: GROUP } },
  },
  {
    operation: createRecord,
    input: async () => ({ table: 'problem', fields: { short_description: 'Refunds fail', assignment_group: GROUP } }),
    method: 'POST',
    look: problems,
    shows: ['PRB0040001: ', expect.stringMatching(/^PRB.*: 7db8/)],
    output: {
      sysId: expect.stringMatching(/^[0-9a-f]{32}$/),
      number: expect.stringMatching(/^PRB/),
      fields: { short_description: 'Refunds fail', assignment_group: GROUP },
    },
  },
  {
    operation: addLabels,
    input: async () => ({ ...ISSUE, labels: ['bug', 'area/api'] }),
    method: 'POST',
    look: labels,
    shows: ['bug', 'area/api'],
    output: { labels: ['bug', 'area/api'] },
  },
  {
    operation: removeLabels,
    input: async (outside) => {
      await outside.ask('github', 'POST', `${issue}/labels`, { labels: ['area/api'] });
      return { ...ISSUE, labels: ['Area/API', 'never-there'] };
    },
    method: 'DELETE',
    look: async (outside) => (await labels(outside)).map((label: string) => label.toLowerCase()),
    shows: ['bug'],
    output: { removed: ['Area/API'] },
  },
  {
    operation: addAssignees,
    input: async (outside) => {
      await outside.ask('github', 'POST', `${issue}/assignees`, { assignees: ['ana'] });
      return { ...ISSUE, assignees: ['Ana', 'ben'] };
    },
    method: 'POST',
    look: assignees,
    shows: ['ana', 'ben'],
    output: { assignees: ['ana', 'ben'] },
  },
  {
    operation: removeAssignees,
    input: async (outside) => {
      await outside.ask('github', 'POST', `${issue}/assignees`, { assignees: ['ana', 'ben'] });
      return { ...ISSUE, assignees: ['ben', 'chloe'] };
    },
    method: 'DELETE',
    look: assignees,
    shows: ['ana'],
    output: { assignees: ['ana'] },
  },
  {
    operation: createComment,
    input: async () => ({ ...ISSUE, body: 'Is it **still** so, @octocat?' }),
    method: 'POST',
    look: comments,
    shows: [`Is it \\*\\*still\\*\\* so, @&#8203;octocat?\n\n<!-- ${MARK} -->`],
    output: { commentId: expect.any(Number) },
  },
  {
    operation: updateComment,
    input: async (outside) => {
      const { id } = await outside.ask('github', 'POST', `${issue}/comments`, { body: 'being looked at' });
      return { owner, repo, commentId: id, body: 'fixed by @octocat' };
    },
    method: 'PATCH',
    look: comments,
    shows: ['fixed by @&#8203;octocat'],
    output: { commentId: expect.any(Number) },
  },
  {
    operation: createIssue,
    input: async () => ({ owner, repo, title: 'Refunds fail', body: 'Since *today*, see #1', labels: ['bug'] }),
    method: 'POST',
    look: openedIssues,
    shows: [`Refunds fail: Since \\*today\\*, see #&#8203;1\n\n<!-- ${MARK} -->`],
    output: { number: expect.any(Number), url: expect.stringMatching(/^https:.*issues\/\d+$/) },
  },
  {
    operation: closeIssue,
    input: async () => ({ ...ISSUE, reason: 'not_planned' }),
    method: 'PATCH',
    look: issueState,
    shows: 'closed as not_planned',
    output: { state: 'closed' },
  },
  {
    operation: reopenIssue,
    input: async (outside) => {
      await outside.ask('github', 'PATCH', issue, { state: 'closed', state_reason: 'not_planned' });
      return ISSUE;
    },
    method: 'PATCH',
    look: issueState,
    shows: 'open',
    output: { state: 'open' },
  },
  {
    operation: dispatchWorkflow,
    input: async () => ({ owner, repo, workflow: 'deploy.yml', ref: 'main', inputs: { environment: 'staging' } }),
    method: 'POST',
    look: dispatches,
    shows: ['deploy.yml at main'],
    output: { workflow: 'deploy.yml', ref: 'main' },
    answersNothing: true,
  },
  {
    operation: deleteComment,
    input: async (outside) => {
      const { id } = await outside.ask('github', 'POST', `${issue}/comments`, { body: 'of no use' });
      return { owner, repo, commentId: id };
    },
    method: 'DELETE',
    look: comments,
    shows: [],
    output: { commentId: expect.any(Number) },
    answersNothing: true,
  },
  {
    operation: setStatus,
    input: async (outside) => {
      const before = { context: 'countersign', state: 'pending' };
      await outside.ask('github', 'POST', `/repos/octo-org/payments/statuses/${SHA}`, before);
      return { owner, repo, sha: SHA, context: 'countersign', state: 'success', targetUrl: 'https://example.com/run' };
    },
    method: 'POST',
    look: status,
    shows: ['countersign: success'],
    output: { sha: SHA, context: 'countersign', state: 'success' },
  },
  {
    operation: postMessage,
    input: async () => ({ channel: '#incidents', text: 'INC0010001 → Database' }),
    method: 'POST',
    look: messages,
    shows: ['INC0010001 → Database'],
    output: { channel: expect.any(String), ts: expect.stringMatching(/^\d+\.\d{6}$/) },
  },
  {
    operation: updateMessage,
    input: async (outside) => {
      const posted = { channel: '#incidents', text: 'being looked at' };
      const { ts } = await outside.ask('slack', 'POST', '/api/chat.postMessage', posted);
      return { channel: '#incidents', ts, text: 'resolved' };
    },
    method: 'POST',
    look: messages,
    shows: ['resolved'],
    output: { channel: expect.any(String), ts: expect.any(String) },
  },
  {
    operation: sendEvent,
    input: async () => ({ action: 'trigger', summary: 'Refunds fail', source: 'payments', severity: 'error' }),
    method: 'POST',
    look: openAlerts,
    shows: [MARK],
    output: { dedupKey: MARK },
  },
];
