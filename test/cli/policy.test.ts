import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { compiledRego } from '../policy/rego.ts';
import { onTerminal, type StubApi, stubApi } from './command-line.ts';

const folder = mkdtempSync(join(tmpdir(), 'countersign-policies-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let api: StubApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}

const FREEZE = '@id("freeze") @reason("change freeze") forbid (principal, action, resource);';

it.each(['test', 'replay', 'publish'])('policy %s prints help within 100 columns', async (verb) => {
  const { exitCode, lines } = await onTerminal(100, ['policy', verb, '--help']);
  expect(exitCode).toBe(0);
  expect(lines.filter(({ length }) => length > 100)).toEqual([]);
});

describe('policy test', () => {
  it('passes with the shipped policies and cases', async () => {
    const { exitCode, stdout, stderr } = await onTerminal(120, ['policy', 'test']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toContain('needs_approval (1 person for medium risk) by one-person');
    expect(stdout).toMatch(/\d+ cases, all passed$/);
  });

  it("tests a tenant's policies with the shipped ones, and reports failed cases with the reason", async () => {
    file('frozen/freeze.cedar', FREEZE);
    const cases = file(
      'cases.yaml',
      [
        '- { name: frozen, request: { tool: github.labels.add }, expect: { verdict: deny, policies: [freeze] } }',
        '- { name: thawed, request: { tool: github.labels.add }, expect: allow }',
        '- { name: a tool that is misspelt, request: { tool: github.label.add }, expect: deny }',
      ].join('\n'),
    );
    const { exitCode, stdout } = await onTerminal(120, ['policy', 'test', cases, '--policies', join(folder, 'frozen')]);
    expect(exitCode).toBe(1);
    expect(stdout).toContain('  ok    frozen');
    expect(stdout).toContain('  FAIL  thawed\n        expected allow; got:\n        deny by freeze: change freeze');
    expect(stdout).toContain(
      'policy could not decide; got:\n        deny: policy could not decide: unknown tool "github.label.add"',
    );
    expect(stdout).toContain('3 cases, 2 failed');
  });

  it('decides a case at its time, with the facts of its trigger and the current values', async () => {
    const freeze = 'forbid (principal, action, resource) when { context.now.weekday == Weekday::"saturday" };';
    const urgent =
      'forbid (principal, action, resource) when { context.trigger has labels && context.trigger.labels.contains("sev1") };';
    const taken =
      'forbid (principal, action, resource) unless { context has before && context.before.values.contains("a=") };';
    file('facts/facts.cedar', [freeze, urgent, taken].join('\n'));
    const request = (more: string) => `{ tool: github.labels.add, before: { a: '' }${more} }`;
    const cases = [
      `- { name: usual, request: ${request('')}, expect: allow }`,
      `- { name: weekend, request: ${request(', at: 2026-01-10T09:00:00Z')}, expect: deny }`,
      `- { name: urgent, request: ${request(', trigger: { labels: [sev1] }')}, expect: deny }`,
      '- { name: taken, request: { tool: github.labels.add, before: { a: b } }, expect: deny }',
      '- { name: unread, request: { tool: github.labels.add }, expect: deny }',
    ];
    const path = file('facts.yaml', cases.join('\n'));
    const { exitCode, stdout } = await onTerminal(120, ['policy', 'test', path, '--policies', join(folder, 'facts')]);
    expect(stdout).toContain('5 cases, all passed');
    expect(exitCode).toBe(0);
  });

  it.each([
    ['tier', '{ verdict: needs_approval, tier: high }', 'expected tier high'],
    ['quorum', '{ verdict: needs_approval, quorum: 3 }', 'expected quorum 3'],
    ['groups', '{ verdict: needs_approval, groups: [sre] }', 'expected groups sre'],
    ['policies', '{ verdict: needs_approval, policies: [mine] }', 'expected it to be determined by mine'],
  ])('compares %s', async (_, expected, said) => {
    const cases = file(
      'one.yaml',
      `- { name: one, request: { tool: servicenow.incident.update }, expect: ${expected} }`,
    );
    const { exitCode, stdout } = await onTerminal(120, ['policy', 'test', cases]);
    expect(exitCode).toBe(1);
    expect(stdout).toContain(said);
  });

  it('tests a compiled Rego policy', async () => {
    file('rego/policy.wasm', gunzipSync(Buffer.from(compiledRego('decision').wasmGzipBase64, 'base64')));
    const cases = file(
      'rego.yaml',
      '- { name: one, request: { tool: pagerduty.event }, expect: { verdict: needs_approval, groups: [sre] } }',
    );
    const { exitCode } = await onTerminal(120, ['policy', 'test', cases, '--policies', join(folder, 'rego')]);
    expect(exitCode).toBe(0);
  });

  it('reports all problems of policies with their lines', async () => {
    file('broken/mine.cedar', '\n\npermit (principal, action == Action::"run", resource);');
    const { exitCode, stdout, stderr } = await onTerminal(120, [
      'policy',
      'test',
      '--policies',
      join(folder, 'broken'),
    ]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toContain('mine.cedar:3: ');
  });

  it.each([
    [
      'a tool that is none',
      'forbid (principal, action, resource == Operation::"servicenow.incident.updat");',
      'unknown tool',
    ],
    [
      'a connector that is none',
      'forbid (principal, action, resource in Connector::"ServiceNow");',
      'unknown connector',
    ],
    ['no policy at all', '// forbid (principal, action, resource);', 'contains no policy'],
  ])('rejects a file with %s', async (_, text, said) => {
    const policies = dirname(file('idle/mine.cedar', text));
    const { exitCode, stderr } = await onTerminal(120, ['policy', 'test', '--policies', policies]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(said);
  });

  it.each([
    ['no such file', () => [join(folder, 'nothing.yaml')], 'cannot read'],
    ['no cases', () => [file('empty.yaml', '[]')], 'is not a list of cases'],
    ['not YAML', () => [file('odd.yaml', '{')], 'odd.yaml'],
    [
      'a field that is none',
      () => [file('odd.yaml', '- { name: x, request: { tool: t, user: u }, expect: allow }')],
      'user',
    ],
    [
      'an empty folder of policies',
      () => ['--policies', dirname(file('none/readme.md', ''))],
      'contains no .cedar or .wasm file',
    ],
    ['a folder that is none', () => ['--policies', join(folder, 'nowhere')], 'cannot read'],
  ])('with %s, exits with 2 and a message', async (_, args, said) => {
    const { exitCode, stderr } = await onTerminal(120, ['policy', 'test', ...args()]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(said);
  });
});

const outcome = (verdict: string) =>
  verdict === 'needs_approval' ? { verdict, requirement: { tier: 'high', quorum: 2, groups: [['sre']] } } : { verdict };

const flip = (n: number, from: string, to: string, { loosens }: { loosens: boolean }) => ({
  runId: `run_${String(n).padStart(32, '0')}`,
  step: 'label',
  tool: 'github.labels.add',
  target: 'github:acme:octo-org/payments#1',
  from: outcome(from),
  to: outcome(to),
  loosens,
  reasons: ['a low-risk write needs no approval'],
});

/** An API whose replay has these pages. */
async function replaying(...pages: object[][]): Promise<string[]> {
  const policies = dirname(file('changed/mine.cedar', FREEZE));
  let page = 0;
  api = await stubApi(() => {
    page += 1;
    const nextCursor = page < pages.length ? `c${page}` : null;
    return { status: 200, body: { runs: 10, examined: 30, flips: pages[page - 1], nextCursor } };
  });
  return ['policy', 'replay', '--policies', policies, '--url', api.url];
}

describe('policy replay', () => {
  it('reads all pages and lists every changed decision', async () => {
    const args = await replaying(
      [flip(1, 'allow', 'deny', { loosens: false })],
      [],
      [flip(2, 'needs_approval', 'allow', { loosens: true })],
    );
    const { lines, stdout } = await onTerminal(200, args);
    expect(api?.asked).toEqual(Array(3).fill('POST /api/v1/policies/replay'));
    expect(lines.slice(0, 4)).toEqual([
      expect.stringMatching(/^tightens {4}run_0+1 label: github.labels.add at github:acme:octo-org\/payments#1$/),
      '            allow → deny: a low-risk write needs no approval',
      expect.stringMatching(/^loosens {5}run_0+2 label: github.labels.add at/),
      '            needs_approval (2 people for high risk, from sre) → allow: a low-risk write needs no approval',
    ]);
    expect(stdout).toContain('90 decisions of 30 runs: 2 would change, 1 loosens');
  });

  it('cuts nothing on a narrow terminal', async () => {
    const args = await replaying([flip(2, 'needs_approval', 'allow', { loosens: true })]);
    const { lines, stdout } = await onTerminal(40, args);
    expect(lines.filter(({ length }) => length > 40)).toEqual([]);
    expect(stdout.replace(/\s+/g, ' ')).toContain('from sre) → allow: a low-risk write needs no approval');
  });

  it('exits with 1 if a decision loosens, unless acknowledged', async () => {
    const loosening = [flip(1, 'needs_approval', 'allow', { loosens: true })];
    const { exitCode, stderr } = await onTerminal(200, await replaying(loosening));
    expect(exitCode).toBe(1);
    expect(stderr).toContain('then pass --acknowledge');
    await api?.close();
    expect((await onTerminal(200, [...(await replaying(loosening)), '--acknowledge'])).exitCode).toBe(0);
  });

  it('exits with 0 if decisions only tighten', async () => {
    const args = await replaying([flip(1, 'allow', 'needs_approval', { loosens: false })]);
    const { exitCode, stdout, stderr } = await onTerminal(200, args);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toContain('1 would change, none loosens');
  });

  it('prints everything as JSON', async () => {
    const flips = [flip(1, 'deny', 'needs_approval', { loosens: true })];
    const { exitCode, stdout } = await onTerminal(200, [...(await replaying(flips)), '--json']);
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toEqual({ runs: 10, examined: 30, flips });
  });

  it.each([
    [['policy', 'replay'], '--policies is required'],
    [['policy', 'replay', '--policies', '.', '--since', 'yesterday'], 'is not a time'],
  ])('%j exits with 2', async (args, said) => {
    file('changed/mine.cedar', FREEZE);
    const { exitCode, stderr } = await onTerminal(
      100,
      args.map((each) => (each === '.' ? join(folder, 'changed') : each)),
    );
    expect(exitCode).toBe(2);
    expect(stderr).toContain(said);
  });
});

describe('policy publish', () => {
  it.each([
    [{ hash: 'old', policies: [] }, 'replaced no policies (the shipped ones remain)'],
    [{ hash: 'old', policies: ['a', 'b'] }, 'replaced 2 policies: a, b'],
    [{ hash: 'abc', policies: ['freeze'] }, 'unchanged: the same policies were published before'],
    [{ problems: ['mine.cedar:1: unexpected token'] }, 'replaced invalid policies'],
  ])('publishes the folder and reports what it replaced: %j', async (replaced, said) => {
    api = await stubApi(() => ({ status: 200, body: { hash: 'abc', policies: ['freeze'], replaced } }));
    const policies = dirname(file('changed/mine.cedar', FREEZE));
    const { exitCode, stdout } = await onTerminal(100, ['policy', 'publish', policies, '--url', api.url]);
    expect({ exitCode, stdout, asked: api.asked }).toEqual({
      exitCode: 0,
      stdout: `published 1 policy: freeze\n${said}\nhash abc`,
      asked: ['PUT /api/v1/policies'],
    });
  });

  it('names the problem', async () => {
    api = await stubApi(() => ({ status: 422, body: { detail: 'mine.cedar:1: unexpected token' } }));
    const policies = dirname(file('changed/mine.cedar', FREEZE));
    const { exitCode, stderr } = await onTerminal(100, ['policy', 'publish', policies, '--url', api.url]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: 'mine.cedar:1: unexpected token' });
  });
});
