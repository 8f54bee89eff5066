import { describe, expect, it } from 'vitest';
import { findOperation, toolNames } from '../../lambdas/connectors/registry.ts';
import { cedarQuestion } from '../../lambdas/policy/cedar-request.ts';
import { policyRequest, proposedAction } from '../../lambdas/policy/proposed-action.ts';

const SYS_ID = '0123456789abcdef0123456789abcdef';
const ISSUE = { owner: 'octo-org', repo: 'payments', number: 7 };
/** Longer than anybody would read. */
const PADDED = `${' '.repeat(300)}HIDDEN${'x'.repeat(300)}`;

/** For every tool, an input in which each part that takes free text ends in something a policy must see. */
const INPUTS: Readonly<Record<string, readonly Record<string, unknown>[]>> = {
  'servicenow.incident.get': [{ sysId: SYS_ID, fields: ['state', 'u_hidden'] }],
  'servicenow.incident.update': [
    { sysId: SYS_ID, fields: { state: '2', short_description: PADDED } },
    { sysId: SYS_ID, fields: Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`u_${at}`, `HIDDEN${at}`])) },
  ],
  'servicenow.incident.add_work_note': [{ sysId: SYS_ID, note: PADDED }],
  'servicenow.incident.find': [{ where: [{ field: 'state', is: 'HIDDEN' }], fields: ['u_hidden'], orderBy: 'u_by' }],
  'servicenow.record.get': [{ table: 'problem', sysId: SYS_ID, fields: ['state', 'u_hidden'] }],
  'servicenow.record.find': [
    { table: 'problem', where: [{ field: 'state', in: ['a', 'HIDDEN'] }], fields: ['u_hidden'] },
  ],
  'servicenow.record.update': [{ table: 'problem', sysId: SYS_ID, fields: { short_description: PADDED } }],
  'servicenow.record.create': [
    { table: 'problem', fields: { short_description: PADDED }, correlationField: 'u_hidden' },
  ],
  'github.labels.add': [{ ...ISSUE, labels: Array.from({ length: 20 }, (_, at) => `label-${at}`) }],
  'github.labels.remove': [{ ...ISSUE, labels: ['a', 'hidden'] }],
  'github.assignees.add': [{ ...ISSUE, assignees: ['octocat', 'hidden'] }],
  'github.assignees.remove': [{ ...ISSUE, assignees: ['octocat', 'hidden'] }],
  'github.comment.create': [{ ...ISSUE, body: PADDED }],
  'github.comment.update': [{ owner: 'octo-org', repo: 'payments', commentId: 12_345, body: PADDED }],
  'github.issue.create': [
    {
      owner: 'octo-org',
      repo: 'payments',
      title: PADDED.slice(250, 400),
      body: `HIDDEN2${PADDED}`,
      labels: ['hidden'],
    },
  ],
  'github.issue.close': [{ ...ISSUE, reason: 'not_planned' }],
  'github.issue.reopen': [ISSUE],
  'github.workflow.dispatch': [
    { owner: 'octo-org', repo: 'payments', workflow: 'deploy.yml', ref: 'hidden', inputs: { a: PADDED } },
  ],
  'github.comment.delete': [{ owner: 'octo-org', repo: 'payments', commentId: 12_345 }],
  'github.status.set': [
    {
      owner: 'octo-org',
      repo: 'payments',
      sha: 'a'.repeat(40),
      context: 'ci/hidden',
      state: 'success',
      description: `${'x'.repeat(100)}HIDDEN`,
      targetUrl: `https://ci.example.com/${'x'.repeat(300)}/HIDDEN`,
    },
  ],
  'slack.message.post': [{ channel: '#incidents', text: PADDED, threadTs: '1700000000.000100' }],
  'slack.message.update': [{ channel: '#incidents', ts: '1700000000.000100', text: PADDED }],
  'pagerduty.event': [
    {
      action: 'trigger',
      summary: `${'x'.repeat(800)}HIDDEN`,
      source: 'HIDDEN source',
      severity: 'info',
      dedupKey: 'HIDDEN-key',
    },
    { action: 'resolve', dedupKey: 'HIDDEN-key' },
  ],
  'http.get': [
    { url: `https://api.example.com/${'x'.repeat(300)}/HIDDEN?q=HIDDEN2`, headers: { 'x-a': PADDED.trim() } },
  ],
  'http.request': [
    {
      url: `https://api.example.com/${'x'.repeat(300)}/HIDDEN?q=HIDDEN2`,
      method: 'POST',
      headers: { 'x-a': PADDED.trim() },
      body: { a: { b: { c: [{ d: PADDED }, { e: 'HIDDEN3' }] } } },
    },
  ],
  'agent.command': [
    {
      command: '/usr/bin/HIDDEN',
      args: [PADDED, 'HIDDEN2'],
      environment: 'prod',
      capabilities: ['hidden3'],
      segment: 'HIDDEN4',
      credentials: ['HIDDEN5'],
      rollback: { command: '/usr/bin/HIDDEN6', args: ['HIDDEN7'] },
    },
  ],
  'agent.session': [
    {
      configuration: 'hidden',
      prompt: PADDED,
      context: { a: [{ b: `HIDDEN2${PADDED}` }] },
      actions: [{ tool: 'github.labels.add', with: { repo: 'HIDDEN3' } }],
    },
  ],
  'model.invoke': [{ prompt: PADDED, system: `HIDDEN2${PADDED}`, input: { a: [{ b: `HIDDEN3${PADDED}` }] } }],
};

function textsOf(value: unknown): string[] {
  if (value === null || typeof value !== 'object') return [String(value)];
  return Object.values(value).flatMap(textsOf);
}

const RUN = {
  tenant: 'acme',
  automation: 'triage',
  workspace: 'default',
  workflow: { name: 'w', version: 1 },
  trigger: { source: 'github', event: 'issues.opened', key: 'k' },
  writes: 0,
} as const;

describe('the request to policy', () => {
  it('is tested for every tool', () => {
    expect(Object.keys(INPUTS).sort()).toEqual(toolNames().sort());
  });

  it.each(Object.entries(INPUTS).flatMap(([tool, inputs]) => inputs.map((input) => [tool, input] as const)))(
    'of %s has every value of the input in full, however long, many or deep',
    (tool, given) => {
      const operation = findOperation(tool);
      if (!operation) throw new Error(`there is no ${tool}`);
      const parsed = operation.parse(given);
      const proposal = operation.propose(parsed, 'acme');
      const workflow = { name: 'w', blastRadius: 'low', steps: [] } as never;
      const action = proposedAction({
        operation,
        proposal,
        instance: 'acme',
        definition: undefined,
        workflow,
        environment: 'dev',
        makers: [],
      });
      const request = policyRequest(RUN as never, action, {
        at: '2026-01-07T12:00:00.000Z',
        trigger: { event: 'issues.opened', fields: {}, payload: null } as never,
      });
      const { context } = cedarQuestion(request, 'execute') as unknown as {
        context: { target: string; values: string[] };
      };
      const seen = [context.target, ...context.values];
      const hidden = textsOf(parsed).filter((text) => !seen.some((each) => each.includes(text.trim())));
      expect(hidden).toEqual([]);
      // A Rego policy is given the request itself.
      const asked = textsOf(request);
      expect(textsOf(parsed).filter((text) => !asked.some((each) => each.includes(text.trim())))).toEqual([]);
    },
  );
});
