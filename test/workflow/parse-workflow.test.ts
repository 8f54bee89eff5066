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
  it('gives its steps in their order, with what was left out filled in', () => {
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
      'file.yaml:2: step: "step" is no field here',
    ],
    ['an unknown field of a step', step('{ id: b, tool: transform, wiht: {} }'), 'file.yaml:4: steps.1.wiht:'],
    ['an unknown tool', step('{ id: b, tool: servicenow.incident.delete }'), 'file.yaml:4: steps.1.tool:'],
    ['an id that an undo would have', step('{ id: undo_first, tool: transform }'), 'file.yaml:4: steps.1.id:'],
    ['the same id twice', step('{ id: first, tool: transform }'), 'file.yaml:4: steps.1.id:'],
    ['an id with a dash', step('{ id: add-note, tool: transform }'), 'file.yaml:4: steps.1.id:'],
    [
      'an expression that is none',
      step('{ id: b, tool: transform, with: { x: "{% ( %}" } }'),
      'file.yaml:4: steps.1.with.x:',
    ],
    [
      'markdown of a text that is not constant',
      step(
        '{ id: b, tool: github.comment.create, with: { owner: o, repo: r, number: 7, body: "**{% trigger.title %}**", markdown: true } }',
      ),
      'file.yaml:4: steps.1.with.markdown: is only allowed where "body" is constant',
    ],
    [
      'markdown that an expression decides',
      step(
        `{ id: b, tool: servicenow.incident.add_work_note, with: { sysId: ${'a'.repeat(32)}, note: x, markdown: "{% true %}" } }`,
      ),
      'file.yaml:4: steps.1.with.markdown: must be true or false, not an expression',
    ],
    ['a condition that is none', step('{ id: b, tool: transform, when: "true" }'), 'file.yaml:4: steps.1.when:'],
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
      'file.yaml:4: steps.1.autoApproveThreshold: it opens gates of a validation mode',
    ],
    ...[
      ['tool: pagerduty.event, with: { action: resolve, dedupKey: k }', 'set "confidence" on this step as well'],
      ['tool: transform, confidence: "{% 1 %}"', 'only a step that writes has a gate'],
      [
        'tool: pagerduty.event, with: { action: resolve, dedupKey: k }, critical: true, confidence: "{% 1 %}"',
        'a critical step always asks',
      ],
    ].map(([what, said]): [string, string, string] => [
      `a step's own threshold that never counts: ${said}`,
      `validation: { mode: per_step }\n${step(`{ id: b, ${what}, autoApproveThreshold: 0.5 }`)}`,
      `file.yaml:5: steps.1.autoApproveThreshold: ${String(said).startsWith('set') ? 'nothing is compared with it; ' : ''}${said}`,
    ]),
    ['a need that is no step', step('{ id: b, tool: transform, needs: [c] }'), 'file.yaml:4: steps.1.needs:'],
    ['a step that needs itself', step('{ id: b, tool: transform, needs: [b] }'), 'file.yaml:4: steps.1.needs:'],
    [
      'a reference past its needs',
      step('{ id: b, tool: transform, needs: [], with: { x: "{% steps.first.output %}" } }'),
      'file.yaml:4: steps.1.with.x:',
    ],
  ])('with %s is refused, at its line', (_what, text, where) => {
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
      'a reference to nothing there is',
      step('{ id: b, tool: transform, with: { x: "{% triger.a %}" } }'),
      'with.x: there is no "triger"',
    ],
    [
      'a step without its output',
      step('{ id: b, tool: transform, with: { x: "{% steps.first.a %}" } }'),
      'steps.first.output.a',
    ],
    [
      'an enrichment there is not',
      step('{ id: b, tool: transform, with: { x: "{% enrichment.titel %}" } }'),
      'there are title',
    ],
    [
      'a fact of the run there is not',
      step('{ id: b, tool: transform, with: { x: "{% run.status %}" } }'),
      'there is run.id',
    ],
    [
      'a confidence that is no JSONata',
      step('{ id: b, tool: transform, confidence: "{% ( %}" }'),
      'steps.1.confidence:',
    ],
    [
      'a key made of what a step gave',
      `name: x\nconcurrencyKey: "{% steps.a.output %}"\nsteps:\n  - { id: a, tool: transform }\n`,
      'file.yaml:2: concurrencyKey: there is no "steps"',
    ],
    ['an input that is missing', update('{ fields: { state: "2" } }'), 'steps.1.with.sysId: is missing: a text'],
    [
      'an action there is not',
      step('{ id: b, tool: pagerduty.event, with: { action: page } }'),
      'must be trigger or acknowledge or resolve',
    ],
    ['an input of another kind', update(`{ sysId: ${SYS_ID}, fields: [1] }`), 'steps.1.with.fields:'],
    [
      'an input that does not fit',
      update('{ sysId: INC1, fields: { state: "{% trigger.x %}" } }'),
      'with.sysId: a ServiceNow sys_id',
    ],
    [
      'an input nobody asked for',
      update(`{ sysId: ${SYS_ID}, field: {}, fields: { state: "2" } }`),
      'with.field: "field" is no field',
    ],
    [
      'a wait without an end',
      step('{ id: b, tool: wait, with: {} }'),
      'seconds is missing: a number, or until is missing: a text',
    ],
    [
      'a wait for no signal',
      step('{ id: b, tool: wait.external, with: { timeoutSeconds: "{% 5 %}" } }'),
      'with.event: is missing',
    ],
    ['a gate of an unknown tier', step('{ id: b, tool: approval, with: { tier: huge } }'), 'steps.1.with.tier:'],
    [
      'less risk than the tool has',
      update(`{ sysId: ${SYS_ID}, fields: { state: "2" } }`, ', risk: low'),
      'steps.1.risk: servicenow.incident.update is of risk medium',
    ],
    [
      'a rollback of nothing',
      step('{ id: b, tool: slack.message.post, with: { channel: "#a", text: b }, rollback: auto }'),
      'steps.1.rollback:',
    ],
    [
      'a rollback of nothing on failure',
      `name: x\nonFailure: rollback\nsteps:\n  - { id: a, tool: transform }\n`,
      'file.yaml:2: onFailure:',
    ],
    ['drift of nothing', `name: x\nonDrift: refuse\nsteps:\n  - { id: a, tool: transform }\n`, 'file.yaml:2: onDrift:'],
    [
      'one gate for much',
      `name: x\nblastRadius: medium\nvalidation:\n  mode: final_only\nsteps:\n  - ${post('a')}\n`,
      'file.yaml:4: validation.mode: final_only is for blast radius low',
    ],
    [
      'one gate for a step that hits much',
      `name: x\nvalidation: { mode: final_only }\nsteps:\n  - ${post('a', ', blastRadius: high')}\n`,
      'file.yaml:4: steps.0.blastRadius:',
    ],
    [
      'one gate before nothing',
      `name: x\nvalidation: { mode: final_only }\nsteps:\n  - { id: a, tool: transform }\n`,
      'file.yaml:2: validation.mode: final_only asks before the write that follows all others, and there is none',
    ],
    [
      'one gate, and a write beside it',
      `name: x\nsteps:\n  - ${post('a', ', needs: []')}\n  - ${post('b', ', needs: []')}\nvalidation: { mode: final_only }\n`,
      'file.yaml:5: validation.mode: final_only asks before the write that follows all others',
    ],
    [
      'one gate that may be passed by',
      `name: x\nvalidation: { mode: final_only }\nsteps:\n  - ${post('a')}\n  - ${post('b', ', when: "{% trigger.x = 1 %}"')}\n`,
      'file.yaml:2: validation.mode: final_only asks before "b", which "when" may skip',
    ],
    [
      'an expression that is not closed',
      step('{ id: b, tool: transform, with: { x: "hello {% trigger.title" } }'),
      'steps.1.with.x: "{%" and "%}" stand around an expression; one is missing',
    ],
    [
      'an expression that is not opened',
      step('{ id: b, tool: transform, with: { x: "{% trigger.a %} and trigger.b %}" } }'),
      'steps.1.with.x: "{%" and "%}" stand around an expression; one is missing',
    ],
    [
      'an expression for a name',
      step('{ id: b, tool: transform, with: { x: { "{% trigger.a %}": 1 } } }'),
      'a name cannot be an expression',
    ],
    [
      'two expressions for a condition',
      step('{ id: b, tool: transform, when: "{% true %} and {% true %}" }'),
      'steps.1.when: write it as one expression',
    ],
    [
      'a condition without one',
      step('{ id: b, tool: transform, when: true }'),
      'steps.1.when: write it as one expression',
    ],
    [
      'two expressions for a key of runs',
      `name: x\nconcurrencyKey: "{% trigger.a %}/{% trigger.b %}"\nsteps:\n  - { id: a, tool: transform }\n`,
      'file.yaml:2: concurrencyKey: write it as one expression',
    ],
    [
      'a function there is not',
      step('{ id: b, tool: transform, with: { x: "{% $uppercas(trigger.title) %}" } }'),
      'steps.1.with.x: there is no $uppercas; is $uppercase meant?',
    ],
    [
      'a name that was given no value',
      step('{ id: b, tool: transform, when: "{% $foo = 1 %}" }'),
      'steps.1.when: there is no $foo; give it a value first',
    ],
    [
      'a function without its sign',
      step('{ id: b, tool: transform, with: { x: "{% uppercase(trigger.title) %}" } }'),
      'steps.1.with.x: the name of a function starts with $: write $uppercase(...)',
    ],
    [
      'a pattern',
      step('{ id: b, tool: transform, with: { x: "{% $contains(trigger.title, /a+/) %}" } }'),
      'steps.1.with.x: regular expressions are not available; use $contains',
    ],
    [
      'a name of its input that does not fit, whatever its value will be',
      update(`{ sysId: ${SYS_ID}, fields: { work_notes: "{% trigger.x %}" } }`),
      'steps.1.with.fields.work_notes: work notes and comments append, they are not set',
    ],
    [
      'markdown in a text that an expression is part of',
      step('{ id: b, tool: slack.message.post, with: { channel: "#a", text: "hi {% trigger.x %}", markdown: true } }'),
      'steps.1.with.markdown: is only allowed where "text" is constant',
    ],
    [
      'markdown in a text that an expression gives',
      step(
        '{ id: b, tool: slack.message.update, with: { channel: C012345, ts: "1.2", text: "{% trigger.x %}", markdown: true } }',
      ),
      'steps.1.with.markdown: is only allowed where "text" is constant',
    ],
    [
      'markdown that an expression decides',
      step('{ id: b, tool: slack.message.post, with: { channel: "#a", text: hi, markdown: "{% true %}" } }'),
      'steps.1.with.markdown: must be true or false, not an expression',
    ],
    ...[
      ['an expression for a URL', '{% trigger.url %}', 'with.url: the URL is one expression; write scheme, host'],
      ['an expression for a host', 'https://{% trigger.host %}/x', 'with.url: an expression gives a part of the host'],
      ['an expression behind a host', 'https://api.example.com{% trigger.x %}/x', 'gives a part of the host'],
      ['an expression for a port', 'https://api.example.com:{% trigger.x %}/', 'gives a part of the host'],
      ['an expression for a scheme', '{% trigger.x %}://api.example.com/', 'gives a part of the host'],
      ['an expression below a host', 'https://a.{% trigger.x %}.example.com/', 'gives a part of the host'],
      ['dots around an expression', 'https://api.example.com/../{% trigger.x %}', 'a path may not have'],
      ['an expression nobody sends', 'https://api.example.com/#{% trigger.x %}', 'remove "#"'],
    ].map(([what, url, said]): [string, string, string] => [
      String(what),
      step(`{ id: b, tool: http.get, with: { url: "${url}" } }`),
      String(said),
    ]),
    [
      'help that comes too late',
      `name: x\napprovals: { slaSeconds: 60, expiresSeconds: 60 }\nsteps:\n  - { id: a, tool: transform }\n`,
      'approvals.slaSeconds:',
    ],
    [
      'help that comes later than an approval expires by default',
      'name: x\napprovals: { slaSeconds: 86400 }\nsteps:\n  - { id: a, tool: transform }\n',
      'approvals.slaSeconds: an approval expires after 86400 s',
    ],
    [
      'a signal awaited for longer than a run may take by default',
      step('{ id: b, tool: wait.external, with: { event: go, timeoutSeconds: 7200 } }'),
      'with.timeoutSeconds: the run ends 7200 s after it began; set deadlineSeconds to more than 7200',
    ],
    [
      'a signal awaited for longer than its own deadline',
      `deadlineSeconds: 60\n${step('{ id: b, tool: wait.external, with: { event: go, timeoutSeconds: 61 } }')}`,
      'the run ends 60 s after it began',
    ],
    [
      'waits that are too long together',
      `${step('{ id: b, tool: wait, with: { seconds: 4000 } }')}  - { id: c, tool: wait, with: { seconds: 3200 } }\n`,
      'set deadlineSeconds to more than 7200',
    ],
  ])('with %s is refused, saying what to do', (_what, text, says) => {
    const found = problems(text);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(says);
  });

  it.each([
    ['expressions where any value may come', update('{ sysId: "{% trigger.sysId %}", fields: { state: "{% 2 %}" } }')],
    ['a whole part of its input from an expression', update(`{ sysId: ${SYS_ID}, fields: "{% trigger.fields %}" }`)],
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
      'drift that can be seen',
      `${update(`{ sysId: ${SYS_ID}, fields: { state: "2" } }`)}onDrift: refuse\nonFailure: rollback\n`,
    ],
    [
      'names it gives a value itself',
      step(
        "{ id: b, tool: transform, with: { x: \"{% ($f := function($n) { $n + 1 }; trigger.items@$i#$at.{ 'a': $f($i), 'b': $at } ~> $string) %}\" } }",
      ),
    ],
    [
      'one gate where it belongs',
      `name: x\nvalidation: { mode: final_only }\nsteps:\n  - ${post('a')}\n  - ${post('b')}\n`,
    ],
    [
      'names within what a path leads to',
      step('{ id: b, tool: transform, with: { x: "{% trigger.items[kind = 1].{ \'a\': name } %}" } }'),
    ],
  ])('may have %s', (_what, text) => {
    expect(problems(text)).toEqual([]);
  });

  it('is told of a mistake at the line of its field, however deep', () => {
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

  it('that is too large, written or unfolded, is refused', () => {
    expect(problems(step(`{ id: b, tool: transform, with: { x: "${'x'.repeat(WORKFLOW_MAX_BYTES)}" } }`))).toHaveLength(
      1,
    );
    const folded = `name: x\nsteps:\n  - { id: a, tool: transform, with: { a: &a "${'x'.repeat(10_000)}", b: [${Array(30).fill('*a').join(', ')}] } }\n`;
    expect(problems(folded)).toEqual([expect.stringContaining('split it')]);
  });

  it('says what is wrong with a condition where the condition is', () => {
    const text = step('id: b\n    tool: transform\n    with: { x: 1 }\n    when: "{% ( %}"');
    expect(problems(text)).toEqual([expect.stringContaining('file.yaml:7: steps.1.when:')]);
  });

  it('with steps in a circle names them all', () => {
    const text =
      'name: circle\nsteps:\n  - { id: a, tool: transform, needs: [b] }\n  - { id: b, tool: transform, needs: [a] }\n';
    expect(problems(text)).toEqual([
      expect.stringContaining('file.yaml:3: steps.0.needs:'),
      expect.stringContaining('file.yaml:4: steps.1.needs:'),
    ]);
  });

  it('with several mistakes is told of all of them at once', () => {
    expect(problems(step('{ id: first, tool: nothing }\n  - { id: c, tool: transform, needs: [x] }'))).toHaveLength(3);
  });

  it('is told of what it says along with what it looks like', () => {
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
    ['two documents', 'name: x\nsteps: []\n---\nname: y\n', 'file.yaml:3: a file holds one workflow'],
    ['an expression without quotes', 'name: x\nsteps: {% trigger.a %}\n', 'file.yaml:2: a text with an expression'],
    ['quotes in quotes', 'name: x\ndescription: "a "b" c"\nsteps: []\n', 'file.yaml:2: a text with an expression'],
    ['an alias of nothing', 'name: x\nsteps:\n  - *step\n', 'file.yaml:3: there is no "&step" before "*step"'],
    ['a list that is not closed', 'name: x\nsteps: [\n', 'file.yaml:3: indent it like its neighbours'],
    ['a key twice', 'name: x\nname: y\nsteps: []\n', 'file.yaml:2: this name is there already'],
    [
      'a line that is indented otherwise',
      'name: x\nsteps:\n  - id: a\n   tool: wait\n',
      'file.yaml:4: a quote, ":" or "-" is missing',
    ],
    ['a list instead of a workflow', '- id: a\n', 'file.yaml:1: a workflow is "name: ..." and "steps: ..."'],
    ['steps that are no list', 'name: x\nsteps:\n  a: { tool: wait }\n', 'file.yaml:2: steps: must be a list'],
    ['no steps at all', 'name: x\nsteps:\n', 'file.yaml:2: steps: is missing: a list'],
  ])('with %s is told so in plain words, once', (_what, text, says) => {
    const found = problems(text);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(says);
  });

  it('with aliases that explode is refused like any other mistake', () => {
    const levels = Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]`);
    const bomb = `a0: &a0 [x, x]\n${levels.join('\n')}\nname: example\nsteps: *a9\n`;
    expect(() => parseWorkflow(bomb, 'file.yaml')).toThrow(expect.objectContaining({ code: 'WORKFLOW_INVALID' }));
  });
});
