import { describe, expect, it } from 'vitest';
import { parseWorkflow, WORKFLOW_MAX_BYTES } from '../../lambdas/workflow/parse-workflow.ts';

const step = (rest: string) => `name: example\nsteps:\n  - { id: first, tool: transform }\n  - ${rest}\n`;

function problems(text: string): string[] {
  try {
    parseWorkflow(text, 'file.yaml');
    return [];
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return code === 'WORKFLOW_INVALID'
      ? message.split('\n').filter((line) => line.startsWith('file.yaml:'))
      : [String(error)];
  }
}

describe('a workflow file', () => {
  it('returns its steps in order, with defaults', () => {
    const workflow = parseWorkflow(
      step('{ id: second, tool: transform, with: { was: "{% steps.first.output %}" } }'),
      'f',
    );
    expect(workflow.steps.map(({ id, dedupeScope }) => [id, dedupeScope])).toEqual([
      ['first', 'tenant'],
      ['second', 'tenant'],
    ]);
    expect(workflow.steps[0]?.with).toEqual({});
  });

  it.each<[string, string, string]>([
    ['broken YAML', 'name: x\nsteps: [\n', 'file.yaml:3:'],
    ['a key twice', 'name: x\nname: y\nsteps: []\n', 'file.yaml:2:'],
    ['nothing', '', 'file.yaml:1:'],
    ['no name', 'steps:\n  - { id: a, tool: transform }\n', 'file.yaml:1: name:'],
    ['a name in capitals', 'name: Example\nsteps:\n  - { id: a, tool: transform }\n', 'file.yaml:1: name:'],
    ['no steps', 'name: example\nsteps: []\n', 'file.yaml:2: steps:'],
    [
      'an unknown field',
      `name: example\nstep: 1\nsteps:\n  - { id: a, tool: transform }\n`,
      'file.yaml:2: step: unknown field "step"; did you mean "steps"?',
    ],
    ['an unknown field of a step', step('{ id: b, tool: transform, wiht: {} }'), 'file.yaml:4: steps.1.wiht:'],
    ['an unknown tool', step('{ id: b, tool: servicenow.incident.delete }'), 'file.yaml:4: steps.1.tool:'],
    ['a reserved id', step('{ id: undo_first, tool: transform }'), 'file.yaml:4: steps.1.id:'],
    ['the same id twice', step('{ id: first, tool: transform }'), 'file.yaml:4: steps.1.id:'],
    ['an id with a dash', step('{ id: add-note, tool: transform }'), 'file.yaml:4: steps.1.id:'],
    [
      'an invalid expression',
      step('{ id: b, tool: transform, with: { x: "{% ( %}" } }'),
      'file.yaml:4: steps.1.with.x:',
    ],
    [
      'markdown of a text that is not constant',
      step(
        '{ id: b, tool: github.comment.create, with: { owner: o, repo: r, number: 7, body: "**{% trigger.title %}**", markdown: true } }',
      ),
      'file.yaml:4: steps.1.with.markdown: is only allowed if "body" is constant',
    ],
    [
      'markdown that an expression decides',
      step(
        `{ id: b, tool: servicenow.incident.add_work_note, with: { sysId: ${'a'.repeat(32)}, note: x, markdown: "{% true %}" } }`,
      ),
      'file.yaml:4: steps.1.with.markdown: must be true or false, not an expression',
    ],
    [
      'a condition that is not an expression',
      step('{ id: b, tool: transform, when: "true" }'),
      'file.yaml:4: steps.1.when:',
    ],
    [
      'a reference to a later step',
      step('{ id: b, tool: transform, with: { x: "{% steps.c.output %}" } }\n  - { id: c, tool: transform }'),
      'file.yaml:4: steps.1.with.x:',
    ],
    [
      'a reference to itself',
      step('{ id: b, tool: transform, with: { x: "{% steps.b.output %}" } }'),
      'file.yaml:4: steps.1.with.x:',
    ],
    ['no attempts', step('{ id: b, tool: transform, retry: { attempts: 0 } }'), 'file.yaml:4: steps.1.retry.attempts:'],
    [
      "a step's own threshold without a validation mode",
      step(
        '{ id: b, tool: pagerduty.event, with: { action: resolve, dedupKey: k }, confidence: "{% 1 %}", autoApproveThreshold: 0.5 }',
      ),
      'file.yaml:4: steps.1.autoApproveThreshold: has no effect without a validation mode',
    ],
    ...[
      ['tool: pagerduty.event, with: { action: resolve, dedupKey: k }', 'has no effect without "confidence"'],
      ['tool: transform, confidence: "{% 1 %}"', 'has no effect because this step does not write'],
      [
        'tool: pagerduty.event, with: { action: resolve, dedupKey: k }, critical: true, confidence: "{% 1 %}"',
        'a critical step always requires approval',
      ],
    ].map(([what, said]): [string, string, string] => [
      `a step's own threshold that is never used: ${said}`,
      `validation: { mode: per_step }\n${step(`{ id: b, ${what}, autoApproveThreshold: 0.5 }`)}`,
      `file.yaml:5: steps.1.autoApproveThreshold: ${said}`,
    ]),
    ['an unknown step in needs', step('{ id: b, tool: transform, needs: [c] }'), 'file.yaml:4: steps.1.needs:'],
    ['a step that needs itself', step('{ id: b, tool: transform, needs: [b] }'), 'file.yaml:4: steps.1.needs:'],
    [
      'a reference past its needs',
      step('{ id: b, tool: transform, needs: [], with: { x: "{% steps.first.output %}" } }'),
      'file.yaml:4: steps.1.with.x:',
    ],
  ])('with %s is rejected at its line', (_what, text, where) => {
    const found = problems(text);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(where);
  });

  const update = (input: string, more = '') =>
    step(`{ id: b, tool: servicenow.incident.update, with: ${input}${more} }`);
  const SYS_ID = '9d385017c611228701d22104cc95c371';
  const post = (id: string, more = '') =>
    `{ id: ${id}, tool: slack.message.post, with: { channel: "#a", text: b }${more} }`;

  it.each<[string, string, string]>([
    [
      'an unknown reference',
      step('{ id: b, tool: transform, with: { x: "{% triger.a %}" } }'),
      'with.x: unknown name "triger"; did you mean "trigger"?',
    ],
    [
      'a step without its output',
      step('{ id: b, tool: transform, with: { x: "{% steps.first.a %}" } }'),
      'steps.first.output.a',
    ],
    [
      'an unknown enrichment field',
      step('{ id: b, tool: transform, with: { x: "{% enrichment.titel %}" } }'),
      'did you mean "title"?',
    ],
    [
      'an unknown field of the run',
      step('{ id: b, tool: transform, with: { x: "{% run.status %}" } }'),
      'the only field is run.id',
    ],
    [
      'a confidence that is not JSONata',
      step('{ id: b, tool: transform, confidence: "{% ( %}" }'),
      'steps.1.confidence:',
    ],
    [
      'a concurrency key with the output of a step',
      `name: x\nconcurrencyKey: "{% steps.a.output %}"\nsteps:\n  - { id: a, tool: transform }\n`,
      'file.yaml:2: concurrencyKey: unknown name "steps"',
    ],
    ['an input that is missing', update('{ fields: { state: "2" } }'), 'steps.1.with.sysId: is missing; expected text'],
    [
      'an unknown action',
      step('{ id: b, tool: pagerduty.event, with: { action: page } }'),
      'must be trigger or acknowledge or resolve',
    ],
    ['an input of another type', update(`{ sysId: ${SYS_ID}, fields: [1] }`), 'steps.1.with.fields:'],
    [
      'an invalid input',
      update('{ sysId: INC1, fields: { state: "{% trigger.x %}" } }'),
      'with.sysId: a ServiceNow sys_id',
    ],
    [
      'an unknown input field',
      update(`{ sysId: ${SYS_ID}, field: {}, fields: { state: "2" } }`),
      'with.field: unknown field "field"; did you mean "fields"?',
    ],
    [
      'a wait without an end',
      step('{ id: b, tool: wait, with: {} }'),
      'seconds is missing; expected a number, or until is missing; expected text',
    ],
    [
      'a wait without a signal',
      step('{ id: b, tool: wait.external, with: { timeoutSeconds: "{% 5 %}" } }'),
      'with.event: is missing',
    ],
    ['an approval of an unknown tier', step('{ id: b, tool: approval, with: { tier: huge } }'), 'steps.1.with.tier:'],
    [
      'less risk than the tool has',
      update(`{ sysId: ${SYS_ID}, fields: { state: "2" } }`, ', risk: low'),
      'steps.1.risk: servicenow.incident.update has risk medium',
    ],
    [
      'a rollback without reversible writes',
      step('{ id: b, tool: slack.message.post, with: { channel: "#a", text: b }, rollback: auto }'),
      'steps.1.rollback:',
    ],
    [
      'onFailure: rollback without reversible writes',
      `name: x\nonFailure: rollback\nsteps:\n  - { id: a, tool: transform }\n`,
      'file.yaml:2: onFailure:',
    ],
    [
      'onDrift without comparable writes',
      `name: x\nonDrift: refuse\nsteps:\n  - { id: a, tool: transform }\n`,
      'file.yaml:2: onDrift:',
    ],
    [
      'final_only with medium blast radius',
      `name: x\nblastRadius: medium\nvalidation:\n  mode: final_only\nsteps:\n  - ${post('a')}\n`,
      'file.yaml:4: validation.mode: final_only requires blast radius low',
    ],
    [
      'final_only with a step of high blast radius',
      `name: x\nvalidation: { mode: final_only }\nsteps:\n  - ${post('a', ', blastRadius: high')}\n`,
      'file.yaml:4: steps.0.blastRadius:',
    ],
    [
      'final_only without a write',
      `name: x\nvalidation: { mode: final_only }\nsteps:\n  - { id: a, tool: transform }\n`,
      'file.yaml:2: validation.mode: final_only requires one write that comes after all others',
    ],
    [
      'final_only with parallel writes',
      `name: x\nsteps:\n  - ${post('a', ', needs: []')}\n  - ${post('b', ', needs: []')}\nvalidation: { mode: final_only }\n`,
      'file.yaml:5: validation.mode: final_only requires one write that comes after all others',
    ],
    [
      'final_only with a conditional last write',
      `name: x\nvalidation: { mode: final_only }\nsteps:\n  - ${post('a')}\n  - ${post('b', ', when: "{% trigger.x = 1 %}"')}\n`,
      'file.yaml:2: validation.mode: final_only requires approval before "b", but "when" may skip that step',
    ],
    [
      'an expression that is not closed',
      step('{ id: b, tool: transform, with: { x: "hello {% trigger.title" } }'),
      'steps.1.with.x: an expression needs both "{%" and "%}"; one is missing',
    ],
    [
      'an expression that is not opened',
      step('{ id: b, tool: transform, with: { x: "{% trigger.a %} and trigger.b %}" } }'),
      'steps.1.with.x: an expression needs both "{%" and "%}"; one is missing',
    ],
    [
      'an expression for a name',
      step('{ id: b, tool: transform, with: { x: { "{% trigger.a %}": 1 } } }'),
      'a field name cannot be an expression',
    ],
    [
      'two expressions for a condition',
      step('{ id: b, tool: transform, when: "{% true %} and {% true %}" }'),
      'steps.1.when: must be one expression',
    ],
    ['a condition without one', step('{ id: b, tool: transform, when: true }'), 'steps.1.when: must be one expression'],
    [
      'two expressions for a concurrency key',
      `name: x\nconcurrencyKey: "{% trigger.a %}/{% trigger.b %}"\nsteps:\n  - { id: a, tool: transform }\n`,
      'file.yaml:2: concurrencyKey: must be one expression',
    ],
    [
      'an unknown function',
      step('{ id: b, tool: transform, with: { x: "{% $uppercas(trigger.title) %}" } }'),
      'steps.1.with.x: unknown variable or function $uppercas; did you mean $uppercase?',
    ],
    [
      'an undefined variable',
      step('{ id: b, tool: transform, when: "{% $foo = 1 %}" }'),
      'steps.1.when: unknown variable or function $foo; define it first',
    ],
    [
      'a function without $',
      step('{ id: b, tool: transform, with: { x: "{% uppercase(trigger.title) %}" } }'),
      'steps.1.with.x: function names start with $: write $uppercase(...)',
    ],
    [
      'a regular expression',
      step('{ id: b, tool: transform, with: { x: "{% $contains(trigger.title, /a+/) %}" } }'),
      'steps.1.with.x: regular expressions are not supported; use functions such as $contains',
    ],
    [
      'an invalid field name whose value is an expression',
      update(`{ sysId: ${SYS_ID}, fields: { work_notes: "{% trigger.x %}" } }`),
      'steps.1.with.fields.work_notes: work notes and comments cannot be set',
    ],
    [
      'markdown in a text that an expression is part of',
      step('{ id: b, tool: slack.message.post, with: { channel: "#a", text: "hi {% trigger.x %}", markdown: true } }'),
      'steps.1.with.markdown: is only allowed if "text" is constant',
    ],
    [
      'markdown in a text that an expression gives',
      step(
        '{ id: b, tool: slack.message.update, with: { channel: C012345, ts: "1.2", text: "{% trigger.x %}", markdown: true } }',
      ),
      'steps.1.with.markdown: is only allowed if "text" is constant',
    ],
    [
      'markdown that an expression decides',
      step('{ id: b, tool: slack.message.post, with: { channel: "#a", text: hi, markdown: "{% true %}" } }'),
      'steps.1.with.markdown: must be true or false, not an expression',
    ],
    ...[
      ['an expression for a URL', '{% trigger.url %}', 'with.url: the URL is one expression; scheme, host'],
      ['an expression for a host', 'https://{% trigger.host %}/x', 'with.url: the host contains an expression'],
      ['an expression behind a host', 'https://api.example.com{% trigger.x %}/x', 'the host contains an expression'],
      ['an expression for a port', 'https://api.example.com:{% trigger.x %}/', 'the host contains an expression'],
      ['an expression for a scheme', '{% trigger.x %}://api.example.com/', 'the host contains an expression'],
      ['an expression below a host', 'https://a.{% trigger.x %}.example.com/', 'the host contains an expression'],
      ['dots around an expression', 'https://api.example.com/../{% trigger.x %}', 'a path may not have'],
      ['an expression in the fragment', 'https://api.example.com/#{% trigger.x %}', 'remove "#"'],
    ].map(([what, url, said]): [string, string, string] => [
      String(what),
      step(`{ id: b, tool: http.get, with: { url: "${url}" } }`),
      String(said),
    ]),
    [
      'an escalation that is too late',
      `name: x\napprovals: { slaSeconds: 60, expiresSeconds: 60 }\nsteps:\n  - { id: a, tool: transform }\n`,
      'approvals.slaSeconds:',
    ],
    [
      'an escalation after the default expiry',
      'name: x\napprovals: { slaSeconds: 86400 }\nsteps:\n  - { id: a, tool: transform }\n',
      'approvals.slaSeconds: must be less than expiresSeconds (86400 s)',
    ],
    [
      'a wait for a signal beyond the default deadline',
      step('{ id: b, tool: wait.external, with: { event: go, timeoutSeconds: 7200 } }'),
      "with.timeoutSeconds: the run's deadline is 7200 s; set deadlineSeconds to more than 7200",
    ],
    [
      'a wait for a signal beyond its own deadline',
      `deadlineSeconds: 60\n${step('{ id: b, tool: wait.external, with: { event: go, timeoutSeconds: 61 } }')}`,
      "the run's deadline is 60 s",
    ],
    [
      'waits that together exceed the deadline',
      `${step('{ id: b, tool: wait, with: { seconds: 4000 } }')}  - { id: c, tool: wait, with: { seconds: 3200 } }\n`,
      'set deadlineSeconds to more than 7200',
    ],
  ])('with %s is rejected with a hint', (_what, text, says) => {
    const found = problems(text);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(says);
  });

  it.each([
    ['expressions as values', update('{ sysId: "{% trigger.sysId %}", fields: { state: "{% 2 %}" } }')],
    ['an object from an expression', update(`{ sysId: ${SYS_ID}, fields: "{% trigger.fields %}" }`)],
    [
      'a wait within its deadline',
      `deadlineSeconds: 90000\n${step('{ id: b, tool: wait.external, with: { event: go, timeoutSeconds: 86400 } }')}`,
    ],
    [
      'a wait that may be skipped',
      `${step('{ id: b, tool: wait, when: "{% trigger.x %}", with: { seconds: 7000 } }')}  - { id: c, tool: wait, with: { seconds: 7000 } }\n`,
    ],
    ['an end of its wait from an expression', step('{ id: b, tool: wait, with: { until: "{% trigger.until %}" } }')],
    [
      'a rollback of what an earlier step wrote',
      `${update(`{ sysId: ${SYS_ID}, fields: { state: "2" } }`)}  - { id: c, tool: transform, rollback: auto }\n`,
    ],
    ['more risk than the tool has', update(`{ sysId: ${SYS_ID}, fields: { state: "2" } }`, ', risk: high')],
    [
      'onDrift with a comparable write',
      `${update(`{ sysId: ${SYS_ID}, fields: { state: "2" } }`)}onDrift: refuse\nonFailure: rollback\n`,
    ],
    [
      'variables that it defines',
      step(
        "{ id: b, tool: transform, with: { x: \"{% ($f := function($n) { $n + 1 }; trigger.items@$i#$at.{ 'a': $f($i), 'b': $at } ~> $string) %}\" } }",
      ),
    ],
    [
      'final_only with one last write',
      `name: x\nvalidation: { mode: final_only }\nsteps:\n  - ${post('a')}\n  - ${post('b')}\n`,
    ],
    [
      'names within a filter',
      step('{ id: b, tool: transform, with: { x: "{% trigger.items[kind = 1].{ \'a\': name } %}" } }'),
    ],
  ])('with %s is accepted', (_what, text) => {
    expect(problems(text)).toEqual([]);
  });

  it('reports a mistake at the line of its field, also in nested fields', () => {
    const text = step(`id: b
    tool: servicenow.incident.update
    with:
      sysId: ${SYS_ID}
      fields:
        state: "2"
        work_notes:
          nested: true`);
    expect(problems(text)).toEqual([expect.stringContaining('file.yaml:10: steps.1.with.fields.work_notes:')]);
  });

  it('is rejected if it is too large, as text or with expanded aliases', () => {
    expect(problems(step(`{ id: b, tool: transform, with: { x: "${'x'.repeat(WORKFLOW_MAX_BYTES)}" } }`))).toHaveLength(
      1,
    );
    const folded = `name: x\nsteps:\n  - { id: a, tool: transform, with: { a: &a "${'x'.repeat(10_000)}", b: [${Array(30).fill('*a').join(', ')}] } }\n`;
    expect(problems(folded)).toEqual([expect.stringContaining('split it')]);
  });

  it('reports an invalid condition at its line', () => {
    const text = step('id: b\n    tool: transform\n    with: { x: 1 }\n    when: "{% ( %}"');
    expect(problems(text)).toEqual([expect.stringContaining('file.yaml:7: steps.1.when:')]);
  });

  it('names all steps of a cycle', () => {
    const text =
      'name: circle\nsteps:\n  - { id: a, tool: transform, needs: [b] }\n  - { id: b, tool: transform, needs: [a] }\n';
    expect(problems(text)).toEqual([
      expect.stringContaining('file.yaml:3: steps.0.needs:'),
      expect.stringContaining('file.yaml:4: steps.1.needs:'),
    ]);
  });

  it('reports all mistakes at once', () => {
    expect(problems(step('{ id: first, tool: nothing }\n  - { id: c, tool: transform, needs: [x] }'))).toHaveLength(3);
  });

  it('reports schema errors together with other mistakes', () => {
    const text = `name: Not A Name
onFailure: rolback
steps:
  - id: add-note
    tool: servicenow.incident.add_work_note
    with: { sysId: short, note: "{% triger.title %}" }
  - { id: b, tool: transform, needs: [c], critical: perhaps }
  - { id: c, tool: transform, needs: [b] }
  - { tool: wait, with: [] }
  - just a text
`;
    expect(problems(text).map((line) => line.split(': ').slice(0, 2).join(': '))).toEqual([
      'file.yaml:1: name',
      'file.yaml:2: onFailure',
      'file.yaml:4: steps.0.id',
      'file.yaml:6: steps.0.with.note',
      'file.yaml:6: steps.0.with.sysId',
      'file.yaml:7: steps.1.critical',
      'file.yaml:7: steps.1.needs',
      'file.yaml:8: steps.2.needs',
      'file.yaml:9: steps.3.id',
      'file.yaml:9: steps.3.with',
      'file.yaml:10: steps.4',
    ]);
  });

  it.each([
    ['a tab', 'name: x\nsteps:\n\t- { id: a, tool: transform }\n', 'file.yaml:3: indent with spaces'],
    ['two documents', 'name: x\nsteps: []\n---\nname: y\n', 'file.yaml:3: a file contains one workflow'],
    ['an expression without quotes', 'name: x\nsteps: {% trigger.a %}\n', 'file.yaml:2: text with an expression'],
    ['quotes in quotes', 'name: x\ndescription: "a "b" c"\nsteps: []\n', 'file.yaml:2: text with an expression'],
    [
      'an alias without an anchor',
      'name: x\nsteps:\n  - *step\n',
      'file.yaml:3: "*step" has no anchor "&step" before it',
    ],
    [
      'not a number',
      'name: x\nsteps:\n  - { id: a, tool: transform, with: { a: [1, .nan] } }\n',
      'file.yaml:3: ".nan" is not a finite number',
    ],
    [
      'a number beyond the range of a double',
      'name: x\nsteps:\n  - { id: a, tool: transform,\n      with: { a: 1e400 } }\n',
      'file.yaml:4: "1e400" is not a finite number',
    ],
    ['a field named with infinity', 'name: x\n-.inf: 1\n', 'file.yaml:2: "-.inf" is not a finite number'],
    ['a list that is not closed', 'name: x\nsteps: [\n', 'file.yaml:3: indent this line like its neighbours'],
    ['a key twice', 'name: x\nname: y\nsteps: []\n', 'file.yaml:2: this field appears twice'],
    [
      'a line with wrong indentation',
      'name: x\nsteps:\n  - id: a\n   tool: wait\n',
      'file.yaml:4: a quote, ":" or "-" is missing',
    ],
    ['a list instead of a workflow', '- id: a\n', 'file.yaml:1: a workflow needs "name: ..." and "steps: ..."'],
    ['steps that are not a list', 'name: x\nsteps:\n  a: { tool: wait }\n', 'file.yaml:2: steps: must be a list'],
    ['no steps at all', 'name: x\nsteps:\n', 'file.yaml:2: steps: is missing; expected a list'],
  ])('with %s gets one clear message', (_what, text, says) => {
    const found = problems(text);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(says);
  });

  it('is rejected if its aliases expand to too many values', () => {
    const levels = Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]`);
    const bomb = `a0: &a0 [x, x]\n${levels.join('\n')}\nname: example\nsteps: *a9\n`;
    expect(() => parseWorkflow(bomb, 'file.yaml')).toThrow(expect.objectContaining({ code: 'WORKFLOW_INVALID' }));
  });
});
