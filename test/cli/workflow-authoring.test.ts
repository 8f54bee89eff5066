import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lineDiff } from '../../bin/commands/workflow/line-diff.ts';
import { piped } from './command-line.ts';

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
