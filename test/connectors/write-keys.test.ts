import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { findOperation, toolNames } from '../../lambdas/connectors/registry.ts';

const ISSUE = { owner: 'octo-org', repo: 'payments', number: 7 };
const SYS_ID = '9d385017c611228701d22104cc95c371';
const SHA = '6dcb09b5b57875f334f61aebed695e2e4193db5e';

/**
 * Receipts are found by these keys, and marks at targets contain them: another key for the same write would repeat it
 * after an upgrade. Change a key only on purpose, with a line in the changelog.
 */
const KEYS: [tool: string, input: object, key: string, fields: string][] = [
  [
    'servicenow.incident.get',
    { sysId: SYS_ID, fields: ['state', 'number'] },
    'sn:incident:get:acme:9d385017c611228701d22104cc95c371',
    '["number","state"]',
  ],
  [
    'servicenow.incident.update',
    { sysId: SYS_ID, fields: { state: '2', priority: 1 } },
    'sn:incident:update:acme:9d385017c611228701d22104cc95c371',
    '{"priority":1,"state":"2"}',
  ],
  [
    'servicenow.incident.add_work_note',
    { sysId: SYS_ID, note: 'seen' },
    'sn:incident:work_note:acme:9d385017c611228701d22104cc95c371',
    '{"note":"seen"}',
  ],
  [
    'servicenow.incident.find',
    { where: [{ field: 'state', is: 1 }], fields: ['number'] },
    'sn:incident:find:acme',
    '{"descending":false,"fields":["number"],"limit":10,"where":[{"field":"state","is":"1"}]}',
  ],
  [
    'servicenow.record.get',
    { table: 'problem', sysId: SYS_ID, fields: ['state', 'number'] },
    'sn:record:get:acme:problem:9d385017c611228701d22104cc95c371',
    '["number","state"]',
  ],
  [
    'servicenow.record.find',
    { table: 'problem', where: [{ field: 'state', in: ['1', '2'] }], fields: ['number'] },
    'sn:record:find:acme:problem',
    '{"descending":false,"fields":["number"],"limit":10,"where":[{"field":"state","in":["1","2"]}]}',
  ],
  [
    'servicenow.record.create',
    { table: 'problem', fields: { state: '101' } },
    'sn:record:create:acme:problem',
    '{"state":"101"}',
  ],
  [
    'servicenow.record.update',
    { table: 'problem', sysId: SYS_ID, fields: { state: '102' } },
    'sn:record:update:acme:problem:9d385017c611228701d22104cc95c371',
    '{"state":"102"}',
  ],
  ['github.labels.add', { ...ISSUE, labels: ['b', 'a'] }, 'gh:labels:add:acme:octo-org/payments#7', '["a","b"]'],
  ['github.labels.remove', { ...ISSUE, labels: ['a'] }, 'gh:labels:remove:acme:octo-org/payments#7', '["a"]'],
  [
    'github.assignees.add',
    { ...ISSUE, assignees: ['ben', 'ana'] },
    'gh:assignees:add:acme:octo-org/payments#7',
    '["ana","ben"]',
  ],
  [
    'github.assignees.remove',
    { ...ISSUE, assignees: ['ana'] },
    'gh:assignees:remove:acme:octo-org/payments#7',
    '["ana"]',
  ],
  [
    'github.comment.create',
    { ...ISSUE, body: 'seen' },
    'gh:comment:create:acme:octo-org/payments#7',
    '{"body":"seen"}',
  ],
  [
    'github.comment.delete',
    { owner: 'octo-org', repo: 'payments', commentId: 12 },
    'gh:comment:delete:acme:octo-org/payments',
    '{"commentId":12}',
  ],
  [
    'github.comment.update',
    { owner: 'octo-org', repo: 'payments', commentId: 12, body: 'seen' },
    'gh:comment:update:acme:github:octo-org/payments:comment:12',
    '{"body":"seen"}',
  ],
  [
    'github.issue.create',
    { owner: 'octo-org', repo: 'payments', title: 'Down', labels: ['bug'] },
    'gh:issue:create:acme:octo-org/payments',
    '{"body":"","labels":["bug"],"title":"Down"}',
  ],
  ['github.issue.close', ISSUE, 'gh:issue:close:acme:octo-org/payments#7', '{"reason":"completed"}'],
  ['github.issue.reopen', ISSUE, 'gh:issue:reopen:acme:octo-org/payments#7', '{}'],
  [
    'github.workflow.dispatch',
    { owner: 'octo-org', repo: 'payments', workflow: 'deploy.yml', ref: 'main', inputs: { dry: true } },
    'gh:workflow:dispatch:acme:octo-org/payments:deploy.yml',
    '{"inputs":{"dry":true},"ref":"main"}',
  ],
  [
    'github.status.set',
    { owner: 'octo-org', repo: 'payments', sha: SHA, context: 'gate', state: 'success' },
    'gh:status:acme:octo-org/payments@6dcb09b5b57875f334f61aebed695e2e4193db5e:c974e17b8e7321ce',
    '{"description":"","state":"success","targetUrl":""}',
  ],
  [
    'slack.message.post',
    { channel: '#incidents', text: 'seen', threadTs: '1.000001' },
    'slack:post:acme:#incidents:1.000001',
    '{"text":"seen"}',
  ],
  ['slack.message.post', { channel: 'C012AB3CD', text: 'seen' }, 'slack:post:acme:C012AB3CD:', '{"text":"seen"}'],
  [
    'slack.message.update',
    { channel: 'C012AB3CD', ts: '1.000001', text: 'seen' },
    'slack:update:acme:C012AB3CD:1.000001',
    '{"text":"seen"}',
  ],
  [
    'pagerduty.event',
    { action: 'resolve', dedupKey: 'k' },
    'pd:event:acme:8254c329a92850f6',
    '{"action":"resolve","dedupKey":"k"}',
  ],
  [
    'pagerduty.event',
    { action: 'trigger', summary: 'down', source: 'web', severity: 'error' },
    'pd:event:acme:new alert',
    '{"action":"trigger","severity":"error","source":"web","summary":"down"}',
  ],
  [
    'http.get',
    { url: 'https://api.example.com/health' },
    'http:GET:acme:api.example.com',
    '{"url":"https://api.example.com/health"}',
  ],
  [
    'http.request',
    { url: 'https://api.example.com/refunds', method: 'POST', body: { amount: 5 } },
    'http:POST:acme:api.example.com',
    '{"body":{"amount":5},"method":"POST","url":"https://api.example.com/refunds"}',
  ],
  [
    'model.invoke',
    { model: 'anthropic.claude-x', prompt: 'Is it?' },
    'bedrock:converse:acme:anthropic.claude-x',
    '{"json":false,"maxTokens":1024,"model":"anthropic.claude-x","prompt":"Is it?"}',
  ],
];

/** A command and a session name where they run, not an instance of a connection. */
const KEYS_WITHOUT_INSTANCE: typeof KEYS = [
  [
    'agent.command',
    { command: '/usr/bin/systemctl', args: ['restart', 'db'], environment: 'staging', segment: 'vpc-a' },
    'agent:command:staging:vpc-a:/usr/bin/systemctl',
    '{"args":["restart","db"],"command":"/usr/bin/systemctl","environment":"staging","profile":"staging-standard","segment":"vpc-a","timeoutSeconds":60}',
  ],
  [
    'agent.session',
    { configuration: 'reviewer', prompt: 'Look', maxActions: 5 },
    'agent:session:reviewer',
    '{"actions":[],"configuration":"reviewer","maxActions":5,"prompt":"Look","timeoutSeconds":3600,"url":""}',
  ],
];

it.each([...KEYS, ...KEYS_WITHOUT_INSTANCE])('%s has the key of its receipts', (tool, input, key, fields) => {
  const operation = findOperation(tool);
  const proposal = operation?.propose(operation.parse(input), 'acme');
  expect(proposal?.key).toBe(`${key}:${createHash('sha256').update(fields).digest('hex')}`);
});

it.each(KEYS)('%s of another instance is another write', (tool, input) => {
  const operation = findOperation(tool);
  const [here, there] = ['acme', 'globex'].map((instance) => operation?.propose(operation.parse(input), instance).key);
  expect(here).not.toBe(there);
});

it('this table has the key of every tool', () => {
  expect([...new Set([...KEYS, ...KEYS_WITHOUT_INSTANCE].map(([tool]) => tool))].sort()).toEqual(toolNames().sort());
});
