import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseWorkflow } from '../../lambdas/workflow/parse-workflow.ts';

const SHIPPED = join(import.meta.dirname, '..', '..', 'workflows');

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
  it.each(readdirSync(SHIPPED))('that ships, %s, is valid', (file) => {
    expect(parseWorkflow(readFileSync(join(SHIPPED, file), 'utf8'), file).name).toBe(file.replace('.yaml', ''));
  });

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
    ['an unknown field', `name: example\nstep: 1\nsteps:\n  - { id: a, tool: transform }\n`, 'file.yaml:1:'],
    ['an unknown field of a step', step('{ id: b, tool: transform, wiht: {} }'), 'file.yaml:4: steps.1:'],
    ['an unknown tool', step('{ id: b, tool: servicenow.incident.delete }'), 'file.yaml:4: steps.1.tool:'],
    ['the same id twice', step('{ id: first, tool: transform }'), 'file.yaml:4: steps.1.id:'],
    ['an id with a dash', step('{ id: add-note, tool: transform }'), 'file.yaml:4: steps.1.id:'],
    [
      'an expression that is none',
      step('{ id: b, tool: transform, with: { x: "{% ( %}" } }'),
      'file.yaml:4: steps.1.with:',
    ],
    ['a condition that is none', step('{ id: b, tool: transform, when: "true" }'), 'file.yaml:4: steps.1.when:'],
    [
      'a reference to a later step',
      step('{ id: b, tool: transform, with: { x: "{% steps.c.output %}" } }\n  - { id: c, tool: transform }'),
      'file.yaml:4: steps.1.with:',
    ],
    [
      'a reference to itself',
      step('{ id: b, tool: transform, with: { x: "{% steps.b.output %}" } }'),
      'file.yaml:4: steps.1.with:',
    ],
    ['no attempts', step('{ id: b, tool: transform, retry: { attempts: 0 } }'), 'file.yaml:4: steps.1.retry.attempts:'],
    ['a need that is no step', step('{ id: b, tool: transform, needs: [c] }'), 'file.yaml:4: steps.1.needs:'],
    ['a step that needs itself', step('{ id: b, tool: transform, needs: [b] }'), 'file.yaml:4: steps.1.needs:'],
    [
      'a reference past its needs',
      step('{ id: b, tool: transform, needs: [], with: { x: "{% steps.first.output %}" } }'),
      'file.yaml:4: steps.1.with:',
    ],
  ])('with %s is refused, at its line', (_what, text, where) => {
    const found = problems(text);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(where);
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

  it('with aliases that explode is refused like any other mistake', () => {
    const levels = Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]`);
    const bomb = `a0: &a0 [x, x]\n${levels.join('\n')}\nname: example\nsteps: *a9\n`;
    expect(() => parseWorkflow(bomb, 'file.yaml')).toThrow(expect.objectContaining({ code: 'WORKFLOW_INVALID' }));
  });
});
