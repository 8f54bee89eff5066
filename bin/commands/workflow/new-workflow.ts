import { findOperation } from '../../../lambdas/connectors/registry.ts';
import { NO_TENANT_POLICIES } from '../../../lambdas/policy/policy.ts';
import { wirePolicy } from '../../../lambdas/policy/policy.wiring.ts';
import { wireExpressions } from '../../../lambdas/workflow/expressions/expressions.wiring.ts';
import { parseWorkflow } from '../../../lambdas/workflow/parse-workflow.ts';
import { describeTool, exampleInput, TRIGGER_FIELDS } from './describe-tool.ts';
import { WorkflowTest } from './test-file.ts';
import { tryCase } from './try-case.ts';

export interface NewWorkflow {
  name: string;
  source: 'github' | 'servicenow' | 'manual';
  tool: string;
  /** The path from the new files to the JSON Schemas; without it, they name none. */
  schemas?: string;
}

const SYS_ID = '9d385017c611228701d22104cc95c371';

/** A small event of each source, in YAML flow style. */
const EVENTS = {
  github: `
      source: github
      event: issues
      payload:
        action: opened
        issue: { number: 7, title: Checkout fails, html_url: "https://github.com/octo-org/payments/issues/7", labels: [] }
        repository: { name: payments, full_name: octo-org/payments, html_url: "https://github.com/octo-org/payments" }
        sender: { login: ana-dev }`,
  servicenow: `
      source: servicenow
      payload:
        instance: acme
        table: incident
        operation: insert
        sys_id: ${SYS_ID}
        sys_mod_count: 0
        record: { number: INC0010001, short_description: Orders are slow, priority: "1", sys_created_by: ana }`,
} as const;

const TRIGGERS = {
  github:
    'trigger:\n  source: github\n  event: issues.opened\n  # filter: "{% trigger.payload.issue.title = \'…\' %}"   # start a run only if this is true',
  servicenow:
    'trigger:\n  source: servicenow\n  event: incident.insert\n  # filter: "{% trigger.priority = \'1\' %}"   # start a run only if this is true',
  manual: 'trigger: { source: manual }     # people and the API start it: countersign runs start',
} as const;

/** A valid workflow, its automation, and a test case that passes, by file name. */
export async function newWorkflow(wanted: NewWorkflow): Promise<Record<string, string>> {
  const { name } = wanted;
  const workflow = workflowText(wanted);
  return {
    [`${name}.yaml`]: workflow,
    [`${name}.automation.yaml`]: automationText(wanted),
    [`${name}.test.yaml`]: await testText(wanted, workflow),
  };
}

const schemaLine = ({ schemas }: NewWorkflow, file: string) =>
  schemas === undefined ? '' : `# yaml-language-server: $schema=${schemas}/${file}\n`;

function workflowText(wanted: NewWorkflow): string {
  const { name, source, tool } = wanted;
  const known = source === 'manual' ? [] : (TRIGGER_FIELDS[source] ?? []);
  const input = exampleInput(tool, known);
  const summary = describeTool(tool)?.summary ?? '';
  return `${schemaLine(wanted, 'workflow.json')}name: ${name}
description: What this workflow is for, in one sentence.
# Values that the workflow takes when it starts; use them as {% inputs.reason %}.
inputs:
  reason: { type: string, default: not given, maxLength: 200 }
# onFailure: rollback          # if a step fails: fail (default), pause, or undo the writes
steps:
  - id: facts                  # calls nothing: a place for values that several steps use
    tool: transform
    with: { reason: "{% inputs.reason %}" }
  # ${summary}
  - id: first
    tool: ${tool}
    # when: "{% steps.facts.output.reason != 'test' %}"   # skip the step unless this is true
    # approvers: { groups: [sre], quorum: 1 }             # who must approve, in addition to what policy requires
${input.length > 0 ? `    with:\n${input.map((line) => `      ${line}`).join('\n')}\n` : ''}`;
}

const automationText = (wanted: NewWorkflow): string => `${schemaLine(wanted, 'automation.json')}name: ${wanted.name}
${TRIGGERS[wanted.source]}
workflow: { name: ${wanted.name}, version: 1 }   # workflow publish prints the version
inputs: { reason: "started by an automation" }
`;

/** The case expects what the workflow does now, so it passes until the workflow changes. */
async function testText(wanted: NewWorkflow, workflow: string): Promise<string> {
  const { name, source } = wanted;
  const event = source === 'manual' ? '' : `\n    event:${EVENTS[source]}`;
  const head = `${schemaLine(wanted, 'workflow-test.json')}workflow: ${name}.yaml
cases:
  - name: ${source === 'manual' ? 'a person starts it' : 'an event starts it'}${event}
    inputs: { reason: a test }
    # targets: { first: { before: {} } }   # what the targets say; a test reads nothing
`;
  return `${head}    expect:\n${await expectation(head, name, workflow)}`;
}

async function expectation(head: string, name: string, workflow: string): Promise<string> {
  const { parse } = await import('yaml');
  const [given] = WorkflowTest.parse(parse(`${head}    expect: {}\n`)).cases;
  const expressions = wireExpressions();
  const policy = wirePolicy(
    { policies: async () => NO_TENANT_POLICIES },
    { log: { info: () => {}, warn: () => {}, error: () => {} } },
  );
  try {
    if (!given) throw new Error('a new test file has one case');
    const { plan } = await tryCase({ policy, expressions }, '.', parseWorkflow(workflow, `${name}.yaml`), given);
    const first = plan?.steps.find(({ id }) => id === 'first');
    const writes = first?.kind === 'call' && findOperation(first.tool)?.effect !== 'read';
    const fields = writes && !first.provisional ? `, fields: ${JSON.stringify(first.fields)}` : '';
    const outcome = first?.kind === 'call' ? first.outcome : first?.kind === 'failing' ? 'fails' : 'runs';
    const steps = `      steps: { facts: runs, first: { outcome: ${first?.kind === 'gate' ? 'needs_approval' : outcome}${fields} } }\n`;
    return `      outcome: ${plan?.outcome}\n${steps}`;
  } finally {
    expressions.stop();
  }
}
