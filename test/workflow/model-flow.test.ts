import { describe, expect, it } from 'vitest';
import { derivedTargets } from '../../lambdas/workflow/model-flow.ts';
import { readWorkflow } from '../../lambdas/workflow/parse-workflow.ts';
import { Workflow } from '../../lambdas/workflow/workflow.ts';

const MODEL = { id: 'classify', tool: 'model.invoke', with: { prompt: 'which team', input: '{% trigger.title %}' } };
const FACTS = {
  id: 'facts',
  tool: 'transform',
  with: {
    team: '{% steps.classify.output.team %}',
    fixed: '#ops',
    list: [{ team: '{% steps.classify.output.team %}', fixed: 1 }],
    picked: '{% steps.classify.output.team = "db" ? "#db" : "#ops" %}',
  },
};
const SYS_ID = '{% trigger.sysId %}';
const POST = (channel: string, more = {}) => ({
  id: 'post',
  tool: 'slack.message.post',
  with: { channel, text: '{% steps.classify.output.text %}' },
  ...more,
});

const workflow = (...steps: object[]) => Workflow.parse({ name: 'flow', steps: [MODEL, FACTS, ...steps] });
const targetsOf = (...steps: object[]) => derivedTargets(workflow(...steps), steps.length + 1);
const problemsOf = (...steps: object[]) => {
  const read = readWorkflow(JSON.stringify({ name: 'flow', steps: [MODEL, FACTS, ...steps] }, null, 1));
  return 'problems' in read ? read.problems : [];
};

describe('model output in a target', () => {
  it.each([
    ['the whole', 'steps.classify.output.channel'],
    ['a part', '"#" & steps.classify.output.team'],
    ['an argument', '$lowercase(steps.classify.output.team)'],
    ['an item', 'steps.classify.output.channels[0]'],
    ['in a list', '$join(["#", steps.classify.output.team])'],
    ['behind a variable', '($c := steps.classify.output.channel; $c)'],
    ['behind two variables', '($a := $b; $b := steps.classify.output.channel; $a)'],
    ['behind a variable given in a branch', '(true ? ($c := steps.classify.output.c) : 0; $c)'],
    ['behind a function of the workflow’s own', '($f := function($x) {$x}; $f(steps.classify.output.c))'],
    [
      'behind a function that is named like one that chooses',
      '($lookup := function($m, $k) {$k}; $lookup({}, steps.classify.output.c))',
    ],
    ['in one branch', 'trigger.urgent ? "#a" : steps.classify.output.channel'],
    ['from the root', '$$.steps.classify.output.channel'],
    ['mapped', '$map(steps.classify.output.list, function($v) {$v.channel})'],
    ['applied', 'steps.classify.output.channel ~> $uppercase()'],
    ['looked up in', '$lookup(steps.classify.output, "channel")'],
    ['of an object of the model’s', 'steps.classify.output.(channel)'],
    ['through another step', 'steps.facts.output.team'],
    ['in a list of another step', 'steps.facts.output.list[0].team'],
    ['in another step as a whole', 'steps.facts.output'],
    ['after a default', '$exists(steps.classify.output.c) ? steps.classify.output.c : "#ops"'],
  ])('%s is rejected', (_what, expression) => {
    expect(targetsOf(POST(`{% ${expression} %}`))).toEqual([{ field: 'channel', how: 'carried', from: ['classify'] }]);
    const [problem, ...others] = problemsOf(POST(`{% ${expression} %}`));
    expect(others).toEqual([]);
    expect(problem).toMatchObject({ line: expect.any(Number) });
    expect(problem?.message).toMatch(/"channel" determines the target.*output of a model \(steps\.classify\)/);
  });

  it('between constant text is rejected', () => {
    expect(problemsOf(POST('#team-{% steps.classify.output.team %}'))).toHaveLength(1);
  });

  it.each([
    ['compared', 'steps.classify.output.team = "db" ? "#db" : "#ops"'],
    ['a key', '$lookup({"db": "#db", "net": "#net"}, steps.classify.output.team)'],
    ['an index', '["#db", "#net"][$$.steps.classify.output.at]'],
    ['a filter', 'trigger.channels[name = $$.steps.classify.output.team].id'],
    ['an order', 'trigger.channels^($$.steps.classify.output.by)[0]'],
    ['tested', '$contains(steps.classify.output.text, "database") ? "#db" : "#ops"'],
    ['one of all there is to see', '$lookup($$.steps, trigger.name).output.channel'],
    ['what another step was chosen by', 'steps.facts.output.picked'],
    ['a function under another name', '[$lookup][0]("steps").classify.output.text'],
    ['a function that takes what it stands on', '(function($o, $n)<o-n:x>{ $o })(1).steps.classify.output.text'],
    ['what another choice is put together with', '"x" & steps.facts.output.picked'],
  ])('%s requires approval', (_what, expression) => {
    const step = POST(`{% ${expression} %}`);
    expect(targetsOf(step)).toEqual([{ field: 'channel', how: 'chosen', from: ['classify'] }]);
    expect(problemsOf(step)).toEqual([]);
  });

  it.each([
    ['a constant', '#ops'],
    ['the trigger', '{% trigger.channel %}'],
    ['a constant beside a model’s words in another step', '{% steps.facts.output.fixed %}'],
    ['a constant in a list beside them', '{% steps.facts.output.list.fixed %}'],
  ])('is not found in %s', (_what, channel) => {
    expect(targetsOf(POST(channel))).toEqual([]);
    expect(problemsOf(POST(channel))).toEqual([]);
  });
});

describe('a field that determines the target', () => {
  const words = '{% steps.classify.output.x %}';
  const issue = { owner: 'o', repo: 'r', number: 7 };
  it.each<[string, string, object]>([
    ['owner', 'github.labels.add', { ...issue, owner: words, labels: ['a'] }],
    ['repo', 'github.labels.add', { ...issue, repo: words, labels: ['a'] }],
    ['number', 'github.comment.create', { ...issue, number: words, body: 'b' }],
    ['assignees', 'github.assignees.add', { ...issue, assignees: [words] }],
    ['commentId', 'github.comment.delete', { owner: 'o', repo: 'r', commentId: words }],
    ['sha', 'github.status.set', { owner: 'o', repo: 'r', sha: words, context: 'c', state: 'success' }],
    ['context', 'github.status.set', { owner: 'o', repo: 'r', sha: 'a'.repeat(40), context: words, state: 'success' }],
    [
      'targetUrl',
      'github.status.set',
      { owner: 'o', repo: 'r', sha: 'a'.repeat(40), context: 'c', state: 'success', targetUrl: words },
    ],
    ['sysId', 'servicenow.incident.get', { sysId: words, fields: ['state'] }],
    ['sysId', 'servicenow.incident.update', { sysId: words, fields: { state: '2' } }],
    ['fields.assigned_to', 'servicenow.incident.update', { sysId: SYS_ID, fields: { assigned_to: words } }],
    ['fields.assignment_group', 'servicenow.incident.update', { sysId: SYS_ID, fields: { assignment_group: words } }],
    ['fields.resolved_by', 'servicenow.incident.update', { sysId: SYS_ID, fields: { resolved_by: words } }],
    ['fields.watch_list', 'servicenow.incident.update', { sysId: SYS_ID, fields: { watch_list: words } }],
    ['threadTs', 'slack.message.post', { channel: '#a', text: 't', threadTs: words }],
    ['ts', 'slack.message.update', { channel: '#a', ts: words, text: 't' }],
    ['dedupKey', 'pagerduty.event', { action: 'resolve', dedupKey: words }],
    ['action', 'pagerduty.event', { action: words, dedupKey: 'k' }],
    ['url', 'http.get', { url: 'https://api.example.com/{% steps.classify.output.x %}' }],
    ['url', 'http.request', { method: 'POST', url: 'https://{% steps.classify.output.x %}/a' }],
    ['method', 'http.request', { method: words, url: 'https://api.example.com/a' }],
    ['model', 'model.invoke', { model: words, prompt: 'p' }],
    ['event', 'wait.external', { event: words }],
  ])('is checked: %s of %s', (field, tool, input) => {
    const step = { id: 'step', tool, with: input };
    expect(targetsOf(step)).toEqual([{ field, how: 'carried', from: ['classify'] }]);
    expect(problemsOf(step).some(({ message }) => message.startsWith(`"${field}" determines`))).toBe(true);
  });

  it.each<[string, string, object]>([
    ['text', 'slack.message.post', { channel: '#a', text: words }],
    ['note', 'servicenow.incident.add_work_note', { sysId: SYS_ID, note: words }],
    [
      'a field that names nobody',
      'servicenow.incident.update',
      { sysId: SYS_ID, fields: { short_description: words } },
    ],
    ['body', 'github.comment.create', { ...issue, body: words }],
    ['labels', 'github.labels.add', { ...issue, labels: [words] }],
    ['body', 'http.request', { method: 'POST', url: 'https://api.example.com/a', body: { a: words } }],
    ['summary', 'pagerduty.event', { action: 'trigger', summary: words, source: 's', severity: 'info' }],
    ['prompt', 'model.invoke', { prompt: words }],
  ])('does not include %s of %s', (_field, tool, input) => {
    const step = { id: 'step', tool, with: input };
    expect(targetsOf(step)).toEqual([]);
    expect(problemsOf(step)).toEqual([]);
  });

  it('in an object from a model requires approval', () => {
    const step = { id: 'step', tool: 'servicenow.incident.update', with: { sysId: SYS_ID, fields: words } };
    expect(targetsOf(step)).toEqual([{ field: 'fields', how: 'chosen', from: ['classify'] }]);
  });
});

describe('an approver', () => {
  it.each([
    ['groups', { groups: ['{% steps.classify.output.team %}'] }],
    ['quorum', { quorum: '{% steps.classify.output.risk = "high" ? 2 : 1 %}' }],
    ['tier', { tier: '{% steps.classify.output.risk = "high" ? "high" : "low" %}' }],
  ])('must not depend on a model, not even as a choice between constants: %s', (field, input) => {
    expect(problemsOf({ id: 'gate', tool: 'approval', with: input })).toMatchObject([
      { message: expect.stringMatching(new RegExp(`"${field}" determines who approves.*steps\\.classify`)) },
    ]);
  });

  it('may see the output of a model', () => {
    expect(problemsOf({ id: 'gate', tool: 'approval', with: { message: '{% steps.classify.output.text %}' } })).toEqual(
      [],
    );
  });
});

describe('a derivation includes', () => {
  const GET = { id: 'got', tool: 'http.get', with: { url: 'https://api.example.com/a' } };
  it('the condition of a write', () => {
    expect(targetsOf(POST('#a', { when: '{% steps.classify.output.urgent %}' }))).toEqual([
      { field: 'when', how: 'chosen', from: ['classify'] },
    ]);
  });

  it('values read from a target that a model chose', () => {
    const read = { ...GET, when: '{% steps.classify.output.urgent %}' };
    expect(targetsOf(read)).toEqual([]);
    expect(targetsOf(read, POST('{% steps.got.output.body.channel %}'))).toEqual([
      { field: 'channel', how: 'chosen', from: ['classify'] },
    ]);
  });

  it('the response to model output', () => {
    const asked = {
      id: 'asked',
      tool: 'http.request',
      with: { method: 'POST', url: 'https://api.example.com/a', body: '{% steps.classify.output.x %}' },
    };
    expect(targetsOf(asked, POST('{% steps.asked.output.body.channel %}'))).toMatchObject([{ how: 'carried' }]);
  });

  it('not the id of a message with model output', () => {
    const update = {
      id: 'later',
      tool: 'slack.message.update',
      with: { channel: '#a', ts: '{% steps.post.output.ts %}', text: 'done' },
    };
    expect(targetsOf(POST('#a'), update)).toEqual([]);
  });

  it('not the input of a person or another system', () => {
    const signal = { id: 'signal', tool: 'wait.external', with: { event: 'go' } };
    expect(targetsOf(signal, POST('{% steps.signal.output.channel %}'))).toEqual([]);
    expect(targetsOf(GET, POST('{% steps.got.output.body.channel %}'))).toEqual([]);
  });

  it('every model involved', () => {
    const second = { ...MODEL, id: 'second' };
    const step = POST('{% steps.second.output.x = steps.classify.output.y ? "#a" : "#b" %}');
    expect(targetsOf(second, step)).toEqual([{ field: 'channel', how: 'chosen', from: ['classify', 'second'] }]);
  });
});

describe('a list that a model made', () => {
  const loop = (items: string, channel: string) => ({ ...POST(channel), forEach: { items: `{% ${items} %}`, max: 2 } });
  const targets = (step: object) => {
    const read = readWorkflow(JSON.stringify({ name: 'flow', steps: [MODEL, FACTS, step] }));
    if ('problems' in read) return read.problems.map(({ message }) => message);
    return derivedTargets(
      read.workflow,
      read.workflow.steps.findIndex(({ id }) => id === 'post__2'),
    );
  };

  it('must not contain a target', () => {
    expect(targets(loop('steps.classify.output.channels', '{% item %}'))).toEqual([
      expect.stringContaining('"channel" determines the target'),
    ]);
    expect(targets(loop('steps.facts.output.list', '{% item.team %}'))).toHaveLength(1);
  });

  it.each([
    ['made by the model', 'steps.classify.output.list'],
    ['filtered by the model', 'trigger.list[name = $$.steps.classify.output.team]'],
  ])('needs an approval for each write, if it is %s', (_what, items) => {
    expect(targets(loop(items, '#ops'))).toEqual([{ field: 'when', how: 'chosen', from: ['classify'] }]);
  });

  it('needs no approval if it comes from elsewhere', () => {
    expect(targets(loop('trigger.list', '{% item %}'))).toEqual([]);
  });
});
