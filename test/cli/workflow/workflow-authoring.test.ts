import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lineDiff } from '../../../bin/commands/workflow/line-diff.ts';
import { piped } from '../command-line.ts';

const folder = () => mkdtempSync(join(tmpdir(), 'countersign-'));

describe('workflow init and test', () => {
  it('make files whose test passes, and never overwrite one', async () => {
    const out = folder();
    const init = ['workflow', 'init', 'close', '--source', 'github', '--tool', 'github.comment.create', '--out', out];
    expect((await piped(init)).exitCode).toBe(0);
    const test = join(out, 'close.test.yaml');
    expect(await piped(['workflow', 'test', test])).toMatchObject({ exitCode: 0 });
    const before = readFileSync(test, 'utf8');
    expect(await piped(init)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('already exists') });
    expect(readFileSync(test, 'utf8')).toBe(before);
  });

  it('test shows what differs, and fails', async () => {
    const out = folder();
    await piped(['workflow', 'init', 'close', '--source', 'manual', '--tool', 'slack.message.post', '--out', out]);
    const file = join(out, 'close.test.yaml');
    writeFileSync(file, readFileSync(file, 'utf8').replace('outcome: runs, fields', 'outcome: denied, fields'));
    const { exitCode, stdout } = await piped(['workflow', 'test', file]);
    expect(exitCode).toBe(1);
    expect(stdout).toContain('steps.first.outcome\n          - expected "denied"\n          + got      "runs"');
    expect(stdout).toContain('1 cases, 1 failed');
  });

  it('a case can start with every source', async () => {
    const out = folder();
    writeFileSync(
      join(out, 'w.yaml'),
      `name: w
inputs: { service: { type: string, default: none } }
steps:
  - id: seen
    tool: transform
    with:
      from: "{% trigger.source & ' ' & trigger.event %}"
      about: "{% trigger.title & ' by ' & trigger.actor %}"
      service: "{% inputs.service %}"
`,
    );
    writeFileSync(
      join(out, 'alerts.yaml'),
      'name: alerts\ntitle: "{% trigger.payload.alert %}"\nactor: "{% trigger.payload.by %}"\n',
    );
    const issue = { action: 'opened', issue: { number: 1, title: 'Slow' }, sender: { login: 'mona' } };
    const incident = {
      instance: 'acme',
      table: 'incident',
      operation: 'insert',
      sys_id: 'a'.repeat(32),
      sys_mod_count: 0,
      record: { short_description: 'Down', sys_updated_by: 'ana' },
    };
    const cases: [object | undefined, string, string][] = [
      [
        { source: 'github', payload: { ...issue, repository: { full_name: 'o/r' } } },
        'github issues.opened',
        'Slow by mona',
      ],
      [{ source: 'servicenow', payload: incident }, 'servicenow incident.insert', 'Down by ana'],
      [
        { source: 'generic', definition: 'alerts.yaml', payload: { alert: 'Full', by: 'bo' } },
        'generic alerts',
        'Full by bo',
      ],
      [{ source: 'api', person: 'olivia', title: 'Now' }, 'api run.requested', 'Now by olivia'],
      [{ source: 'manual', person: 'olivia' }, 'manual run.requested', 'w, started by olivia by olivia'],
      [undefined, 'manual run.requested', 'w, started by somebody by somebody'],
      [
        { source: 'schedule', name: 'nightly', slot: '2026-03-02T02:00:00Z', makers: ['olivia'] },
        'schedule nightly',
        'nightly at 2026-03-02T02:00:00Z by olivia',
      ],
    ];
    const test = {
      workflow: 'w.yaml',
      cases: cases.map(([event, from, about]) => ({
        name: from,
        ...(event && { event }),
        inputs: { service: 'payments' },
        expect: { steps: { seen: { input: { from, about, service: 'payments' } } } },
      })),
    };
    writeFileSync(join(out, 'w.test.yaml'), JSON.stringify(test));
    const { exitCode, stdout } = await piped(['workflow', 'test', join(out, 'w.test.yaml')]);
    expect(stdout).toContain(`${cases.length} cases, all passed`);
    expect(exitCode).toBe(0);
  });

  it.each<[string, object, string]>([
    ['an unknown source', { source: 'githb', payload: {} }, 'github'],
    ['a schedule without its name', { source: 'schedule' }, 'name'],
    [
      'a file of a source that does not exist',
      { source: 'generic', definition: 'no.yaml', payload: {} },
      'cannot read',
    ],
  ])('explain %s', async (_what, event, sentence) => {
    const out = folder();
    writeFileSync(join(out, 'w.yaml'), 'name: w\nsteps:\n  - { id: a, tool: transform }\n');
    const test = { workflow: 'w.yaml', cases: [{ name: 'x', event, expect: {} }] };
    writeFileSync(join(out, 'w.test.yaml'), JSON.stringify(test));
    const { exitCode, stderr } = await piped(['workflow', 'test', join(out, 'w.test.yaml')]);
    expect(stderr).toContain(sentence);
    expect(exitCode).toBe(2);
  });

  it('refuse an unknown tool with the nearest one', async () => {
    const { stderr } = await piped(['workflow', 'init', 'x', '--tool', 'github.lables.add', '--out', folder()]);
    expect(stderr).toContain('did you mean "github.labels.add"?');
  });
});

describe('tools', () => {
  it('shows inputs, outputs and an example', async () => {
    const { stdout } = await piped(['tools', 'github.labels.add']);
    for (const text of ['reversible', 'with.labels', 'output.labels', 'tool: github.labels.add'])
      expect(stdout).toContain(text);
  });

  it('names the nearest tool', async () => {
    expect((await piped(['tools', 'slack.mesage.post'])).stderr).toContain('did you mean "slack.message.post"?');
  });
});

it('a difference is shown with the lines around it', () => {
  expect(lineDiff('a\nb\nc\nd\ne\nf', 'a\nb\nc\nD\ne\nf')).toEqual(['  b', '  c', '- d', '+ D', '  e', '  f']);
  expect(lineDiff('same', 'same')).toEqual([]);
});
