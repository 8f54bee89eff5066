import { openWorkflow, parseWorkflow } from '../../lambdas/workflow/parse-workflow.ts';
import type { Workflow } from '../../lambdas/workflow/workflow.ts';
import { HOOKS_URL } from '../fakes/targets/http-through-fetch.ts';
import { GROUP_BY_NAME } from './actors/incident-editors.ts';
import { ALLOWED_COMMAND } from './invariants/agents.ts';

const SYS_ID = '"{% trigger.sysId %}"';
const UPDATE = (id: string, fields: string, more = '') =>
  `  - {id: ${id}, tool: servicenow.incident.update, with: {sysId: ${SYS_ID}, fields: {${fields}}}${more}}`;
const NOTE = (id: string, text: string, more = '') =>
  `  - {id: ${id}, tool: servicenow.incident.add_work_note, with: {sysId: ${SYS_ID}, note: "${text}"}${more}}`;
const POST = (id: string, text: string, more = '') =>
  `  - {id: ${id}, tool: slack.message.post, with: {channel: C012345, text: "${text}"}${more}}`;
const LABEL = (id: string, label: string, more = '') =>
  `  - {id: ${id}, tool: github.labels.add, with: {owner: octo-org, repo: payments, number: 7, labels: [${label}]}${more}}`;
const COMMENT = (id: string, text: string) =>
  `  - {id: ${id}, tool: github.comment.create, with: {owner: octo-org, repo: payments, number: 7, body: "${text}"}}`;
/** There is no such incident: every write to it fails permanently. */
const GONE = (id: string, more = '') =>
  `  - {id: ${id}, tool: servicenow.incident.update, with: {sysId: ffffffffffffffffffffffffffffffff, fields: {state: "2"}}${more}}`;
/** An opaque write: if its response is lost, neither a probe nor a retry can find out whether it was made. */
const HOOK = (id: string, more = '') =>
  `  - {id: ${id}, tool: http.request, with: {method: POST, url: "${HOOKS_URL}/deploy", body: {about: ${SYS_ID}}}${more}}`;
const OWN = '"{% trigger.sysId %}"';
/** A command that an agent runs. */
const COMMAND = (id: string, options = '', more = '', environment = 'staging') =>
  `  - {id: ${id}, tool: agent.command, with: {command: ${ALLOWED_COMMAND}, args: [restart, ${SYS_ID}], environment: ${environment}${options}}${more}}`;
const UNDO = `, rollback: {command: ${ALLOWED_COMMAND}, args: [stop, ${SYS_ID}]}`;

/** A session that may comment on one issue, twice at most. */
const SESSION = (id: string, more = '', timeoutSeconds = 900, configuration = 'bot') =>
  `  - {id: ${id}, tool: agent.session, with: {configuration: ${configuration}, prompt: look, timeoutSeconds: ${timeoutSeconds}, maxActions: 2, actions: [{tool: github.comment.create, with: {owner: octo-org, repo: payments, number: 7}}]}${more}}`;

/** The same as a command of an enrolled agent. */
const COMMAND_SESSION = (id: string, timeoutSeconds?: number) => SESSION(id, '', timeoutSeconds, 'hosts');

/** One workflow for each kind of run. A run of each is tried at every crash point. */
const TEXTS: Record<string, string[]> = {
  'sequential-steps': [
    'steps:',
    UPDATE('take', 'state: "2"'),
    UPDATE('assign', 'category: network'),
    UPDATE('close', 'state: "6"'),
  ],
  'marked-writes': [
    'steps:',
    NOTE('note', 'started'),
    POST('post', 'about {% trigger.sysId %}'),
    LABEL('label', OWN),
    NOTE('end', 'done'),
  ],
  'parallel-steps': [
    'steps:',
    NOTE('note', 'side', ', needs: []'),
    POST('post', 'side {% trigger.sysId %}', ', needs: []'),
    LABEL('label', OWN, ', needs: []'),
    UPDATE('assign', 'category: network', ', needs: []'),
    UPDATE('join', 'state: "6"', ', needs: [note, post, label, assign]'),
  ],
  'one-parallel-step-fails': [
    'steps:',
    POST('post', 'one side {% trigger.sysId %}', ', needs: []'),
    '  - {id: gone, tool: servicenow.incident.add_work_note, needs: [], with: {sysId: ffffffffffffffffffffffffffffffff, note: x}}',
    NOTE('after', 'never', ', needs: [post, gone]'),
  ],
  'reused-label': [
    'onFailure: rollback',
    'steps:',
    LABEL('label', 'shared'),
    '  - {id: rest, tool: wait, with: {seconds: 90}}',
    GONE('gone', ', when: "{% trigger.priority = \\"1\\" %}"'),
  ],
  'conditional-steps': [
    'steps:',
    '  - {id: facts, tool: transform, with: {title: "{% trigger.title %}", urgent: "{% trigger.priority = \\"1\\" %}"}}',
    NOTE('never', 'not urgent', ', when: "{% false %}"'),
    NOTE('urgent', 'it says {% steps.facts.output.title %}', ', when: "{% steps.facts.output.urgent %}"'),
    UPDATE('close', 'state: "6"'),
  ],
  'waits-90-seconds': ['steps:', '  - {id: rest, tool: wait, with: {seconds: 90}}', NOTE('note', 'rested')],
  'waits-for-a-signal': [
    'steps:',
    NOTE('before', 'asking'),
    '  - {id: answer, tool: wait.external, with: {event: go, timeoutSeconds: 400}}',
    POST('post', 'answered {% trigger.sysId %}'),
  ],
  'talks-in-a-thread': [
    'steps:',
    '  - {id: ask, tool: wait.external, with: {event: slack.message, timeoutSeconds: 400}}',
    POST('post', 'talked about {% trigger.text %}'),
    '  - {id: confirm, tool: wait.external, with: {event: slack.message, timeoutSeconds: 400}}',
  ],
  'signal-then-approval': [
    'steps:',
    '  - {id: answer, tool: wait.external, with: {event: go, timeoutSeconds: 400}}',
    UPDATE('close', 'state: "6"', ', risk: high'),
  ],
  'rollback-needs-approval': [
    'steps:',
    UPDATE('take', 'state: "2"', ', risk: high'),
    '  - {id: rest, tool: wait, with: {seconds: 900}}',
  ],
  'one-approval-per-phase': [
    'validation: {mode: per_phase}',
    'steps:',
    NOTE('first', 'one', ', needs: []'),
    UPDATE('beside', 'category: network', ', needs: []'),
    POST('after', 'about {% trigger.sysId %}', ', needs: [first, beside]'),
    COMMENT('comment', 'said').replace('}}', '}, needs: [after]}'),
    '  - {id: report, tool: servicenow.incident.add_work_note, needs: [comment], with: {sysId: "{% trigger.sysId %}", note: "comment {% steps.comment.output.commentId %}"}}',
  ],
  'model-chooses-target': [
    'steps:',
    '  - {id: classify, tool: model.invoke, when: "{% false %}", with: {prompt: which team}}',
    `  - {id: post, tool: slack.message.post, with: {channel: "{% steps.classify.output.team = \\"db\\" ? \\"C099999\\" : \\"C012345\\" %}", text: "about {% trigger.sysId %}"}}`,
    NOTE('note', 'reported'),
  ],
  'approval-step': ['steps:', NOTE('note', 'may I?'), '  - {id: gate, tool: approval}', UPDATE('close', 'state: "6"')],
  'pauses-on-failure': [
    'onFailure: pause',
    'steps:',
    NOTE('note', 'first'),
    '  - {id: gone, tool: servicenow.incident.update, with: {sysId: ffffffffffffffffffffffffffffffff, fields: {state: "2"}}}',
  ],
  'changed-in-bulk': ['onFailure: pause', 'steps:', NOTE('note', 'first'), GONE('gone')],
  'one-run-per-key': [
    'concurrencyKey: "{% trigger.payload.record.group %}"',
    'steps:',
    UPDATE('take', 'state: "2"'),
    NOTE('note', 'alone'),
  ],
  'ends-at-once': [
    'concurrencyKey: "{% trigger.payload.record.group %}"',
    'steps:',
    '  - {id: facts, tool: transform, with: {title: "{% trigger.title %}"}}',
  ],
  'write-cap': ['caps: {maxWritesPerRun: 2}', 'steps:', NOTE('one', '1'), POST('shared', 'shared'), NOTE('two', '2')],
  'identical-message': ['steps:', POST('shared', 'shared'), UPDATE('close', 'state: "6"')],
  'once-per-run': [
    'steps:',
    POST('own', 'shared', ', dedupeScope: run'),
    POST('again', 'shared', ', dedupeScope: run'),
  ],
  'short-deadline': [
    'deadlineSeconds: 150',
    'steps:',
    NOTE('note', 'soon'),
    '  - {id: rest, tool: wait, with: {seconds: "{% 400 %}"}}',
  ],
  'one-run-per-workflow': ['caps: {maxConcurrency: 1}', 'steps:', UPDATE('take', 'state: "2"'), NOTE('note', 'only')],
  'retried-by-operator': ['steps:', POST('post', 'again {% trigger.sysId %}'), NOTE('note', 'done')],
  'one-attempt': [
    'steps:',
    POST('post', 'once {% trigger.sysId %}', ', retry: {attempts: 1}'),
    UPDATE('close', 'state: "6"'),
  ],
  'high-blast-radius': [
    'blastRadius: medium',
    'steps:',
    NOTE('note', 'to everybody'),
    POST('post', 'to everybody {% trigger.sysId %}'),
    UPDATE('close', 'state: "6"'),
  ],
  'opaque-writes': ['steps:', UPDATE('take', 'state: "2"'), HOOK('hook'), NOTE('note', 'deployed')],
  'needs-approval': [
    'steps:',
    '  - {id: look, tool: servicenow.incident.get, with: {sysId: "{% trigger.sysId %}", fields: [state]}}',
    NOTE('note', 'closing soon', ', risk: high'),
    UPDATE('close', 'state: "6"', ', risk: high'),
  ],
  'two-approvers': [
    'steps:',
    POST('post', 'all of it {% trigger.sysId %}', ', blastRadius: high'),
    LABEL('label', OWN),
  ],
  'workers-unavailable': [
    'steps:',
    UPDATE('take', 'state: "2"'),
    NOTE('note', 'started'),
    UPDATE('close', 'state: "6"', ', risk: high'),
  ],
  'parallel-approvals': [
    'steps:',
    NOTE('note', 'both', ', needs: [], risk: high'),
    UPDATE('assign', `assignment_group: ${GROUP_BY_NAME}`, ', needs: [], risk: high'),
    UPDATE('close', 'state: "6"', ', needs: [note, assign]'),
  ],
  'edited-first': ['steps:', UPDATE('close', 'state: "6", category: network', ', blastRadius: high')],
  'quorum-not-reached': [
    'approvals: {expiresSeconds: 100, slaSeconds: 30}',
    'onFailure: rollback',
    'steps:',
    UPDATE('take', 'state: "2"'),
    '  - {id: gate, tool: approval, with: {message: may I, quorum: 2}}',
    UPDATE('close', 'state: "6"'),
  ],
  'overdue-together': [
    'approvals: {slaSeconds: 60, expiresSeconds: 3600}',
    'steps:',
    NOTE('note', 'first', ', needs: [], risk: high'),
    UPDATE('assign', 'category: network', ', needs: [], risk: high'),
    '  - {id: rest, tool: wait, needs: [], with: {seconds: 240}}',
    POST('post', 'about {% trigger.sysId %}', ', needs: [rest], risk: high'),
  ],
  'rejected-and-paused': [
    'onReject: pause',
    'steps:',
    UPDATE('take', 'state: "2"'),
    UPDATE('close', 'state: "6"', ', risk: high'),
  ],
  'third-write-fails': [
    'steps:',
    UPDATE('take', 'state: "2"'),
    LABEL('label', OWN),
    GONE('gone', ', rollback: auto'),
    NOTE('never', 'not reached'),
  ],
  'rolled-back-by-operator': [
    'deadlineSeconds: 120',
    'steps:',
    UPDATE('take', 'state: "2"'),
    UPDATE('close', 'state: "6"'),
    '  - {id: answer, tool: wait.external, with: {event: go, timeoutSeconds: "{% 400 %}"}}',
  ],
  'rolled-back-after-end': [
    'steps:',
    UPDATE('assign', 'category: network'),
    LABEL('label', OWN),
    NOTE('note', 'about {% trigger.sysId %}', ', retry: {attempts: 1}'),
    HOOK('hook'),
    UPDATE('close', 'state: "6"'),
  ],
  'repeated-after-end': [
    'steps:',
    POST('own', 'shared', ', dedupeScope: run'),
    UPDATE('close', 'state: "6", category: network', ', blastRadius: high'),
  ],
  'partly-irreversible': [
    'onFailure: rollback',
    'steps:',
    UPDATE('assign', 'category: network'),
    NOTE('note', 'for good'),
    COMMENT('comment', 'about {% trigger.sysId %}'),
    POST('shared', 'shared'),
    GONE('gone'),
  ],
  'changed-by-others': [
    'onFailure: rollback',
    'steps:',
    UPDATE('take', 'state: "2"'),
    UPDATE('assign', 'category: network'),
    '  - {id: rest, tool: wait, with: {seconds: 60}}',
    GONE('gone'),
  ],
  'for-each': [
    'onFailure: rollback',
    'steps:',
    '  - {id: ask, tool: servicenow.incident.update, forEach: {items: "{% [\\"2\\", \\"6\\"] %}", max: 3}, with: {sysId: "{% trigger.sysId %}", fields: {state: "{% item %}"}}}',
    '  - {id: none, tool: servicenow.incident.add_work_note, forEach: {items: "{% [] %}", max: 2}, with: {sysId: "{% trigger.sysId %}", note: "{% item %}"}}',
    GONE('gone', ', when: "{% trigger.priority = \\"1\\" %}"'),
  ],
  'calls-workflow': [
    'steps:',
    '  - {id: each, tool: workflow.call, forEach: {items: "{% [\\"a\\", \\"b\\"] %}", max: 2}, with: {workflow: called, inputs: {about: "{% item %}"}}}',
    '  - {id: never, tool: workflow.call, when: "{% false %}", with: {workflow: called, inputs: {about: x}}}',
    NOTE('note', '{% $join(steps.each.output.text) %}'),
  ],
  'agent-command': ['steps:', NOTE('before', 'restarting'), COMMAND('restart'), NOTE('after', 'restarted')],
  'agent-approved': ['steps:', COMMAND('restart', '', ', risk: high'), NOTE('after', 'restarted')],
  'agent-undone': [
    'onFailure: rollback',
    'steps:',
    UPDATE('take', 'state: "2"'),
    COMMAND('restart', UNDO),
    COMMAND('again', UNDO),
    GONE('gone'),
  ],
  'agent-parallel': [
    'steps:',
    COMMAND('one', UNDO, ', needs: []'),
    COMMAND('two', '', ', needs: []'),
    NOTE('beside', 'side', ', needs: []'),
    UPDATE('close', 'state: "6"', ', needs: [one, two, beside]'),
  ],
  'agent-pauses': [
    'onFailure: pause',
    'blastRadius: medium',
    'steps:',
    COMMAND('restart', UNDO),
    COMMAND('check', ', check: true'),
  ],
  'agent-forbidden': [
    'steps:',
    NOTE('before', 'removing'),
    `  - {id: remove, tool: agent.command, with: {command: /usr/bin/rm, args: ["-rf", /], environment: staging}}`,
  ],
  'session-completes': [
    'steps:',
    NOTE('before', 'asking'),
    SESSION('ask'),
    '  - {id: after, tool: servicenow.incident.add_work_note, with: {sysId: "{% trigger.sysId %}", note: "it said {% steps.ask.output.summary %}"}}',
  ],
  'session-approved': ['steps:', SESSION('ask', ', risk: high'), NOTE('after', 'answered')],
  'session-lost': [
    'onFailure: rollback',
    'steps:',
    UPDATE('take', 'state: "2"'),
    SESSION('ask'),
    NOTE('after', 'never'),
  ],
  'session-parallel': [
    'steps:',
    SESSION('one', ', needs: []', 120),
    SESSION('two', ', needs: []'),
    NOTE('beside', 'side', ', needs: []'),
    UPDATE('close', 'state: "6"', ', needs: [one, two, beside]'),
  ],
  'command-session-completes': [
    'steps:',
    COMMAND_SESSION('ask'),
    '  - {id: after, tool: servicenow.incident.add_work_note, with: {sysId: "{% trigger.sysId %}", note: "it said {% steps.ask.output.summary %}"}}',
  ],
  'command-session-ends-early': ['steps:', COMMAND_SESSION('ask'), NOTE('after', 'never')],
  'command-session-silent': [
    'onFailure: rollback',
    'steps:',
    UPDATE('take', 'state: "2"'),
    COMMAND_SESSION('ask', 120),
    NOTE('after', 'never'),
  ],
  'command-session-canceled': ['onFailure: pause', 'steps:', COMMAND_SESSION('ask', 120), NOTE('after', 'never')],
  'canceled-session': ['steps:', SESSION('ask'), NOTE('after', 'never')],
  'refuses-drift': [
    'onDrift: refuse',
    'onFailure: rollback',
    'steps:',
    UPDATE('take', 'category: network'),
    UPDATE('close', 'state: "6"', ', risk: high'),
  ],
};

/** The workflow that `calls-workflow` calls. */
const CALLED = [
  'name: called',
  'inputs: {about: {type: string, required: true}}',
  'steps:',
  '  - {id: facts, tool: transform, with: {text: "{% inputs.about %} {% trigger.sysId %}"}}',
  `  - {id: post, tool: slack.message.post, with: {channel: C012345, text: "{% steps.facts.output.text %}"}}`,
  'outputs: {text: "{% steps.facts.output.text %}"}',
].join('\n');

function read(text: string): Workflow {
  const file = openWorkflow(text);
  const called = file.calls().map(() => {
    const version = { version: 1, workflow: parseWorkflow(CALLED, 'called') };
    return ['called@newest', version] as const;
  });
  const found = file.read(new Map(called));
  if ('workflow' in found) return found.workflow;
  throw new Error(JSON.stringify(found.problems));
}

export type ShapeName = string;
export const SHAPE_NAMES: readonly ShapeName[] = Object.keys(TEXTS);
/** Shapes with commands, which need agents. */
export const AGENT_SHAPES: readonly ShapeName[] = SHAPE_NAMES.filter((name) => name.startsWith('agent-'));

/** Shapes with sessions, which need an agent that speaks A2A. */
export const SESSION_SHAPES: readonly ShapeName[] = SHAPE_NAMES.filter((name) => name.startsWith('session-'));

/** Runs of the shape need enrolled agents: they have commands, or sessions that are commands. */
export const needsAgents = (name: ShapeName): boolean =>
  TEXTS[name]?.some((line) => /tool: agent\.command|configuration: hosts/.test(line)) === true;
/** Runs of the shape have sessions. */
export const needsSessions = (name: ShapeName): boolean =>
  TEXTS[name]?.some((line) => line.includes('tool: agent.session')) === true;

/** More of them: sessions that are commands of enrolled agents, and sessions that a person cancels. */
export const MORE_SESSION_SHAPES: readonly ShapeName[] = SHAPE_NAMES.filter(
  (name) => needsSessions(name) && !SESSION_SHAPES.includes(name),
);

const parsed = new Map<ShapeName, Workflow>();

/** Parsed when it is first used: most tests use one shape of many. */
export function workflowOfShape(name: ShapeName): Workflow {
  const workflow = parsed.get(name) ?? read([`name: ${name}`, ...(TEXTS[name] ?? [])].join('\n'));
  parsed.set(name, workflow);
  return workflow;
}
