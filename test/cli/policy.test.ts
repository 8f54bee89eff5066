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

it.each(['test', 'replay', 'publish'])('policy %s explains itself within 100 columns', async (verb) => {
  const { exitCode, lines } = await onTerminal(100, ['policy', verb, '--help']);
  expect(exitCode).toBe(0);
  expect(lines.filter(({ length }) => length > 100)).toEqual([]);
});

describe('policy test', () => {
  it('passes on the policies and cases that ship', async () => {
    const { exitCode, stdout, stderr } = await onTerminal(120, ['policy', 'test']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toContain('needs_approval (medium, 1 person) by one-person');
    expect(stdout).toMatch(/\d+ cases, all as expected$/);
  });

  it("tries a tenant's policies beside those that ship, and says what is not as expected and why", async () => {
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
      'policy could not decide; got:\n        deny: policy could not decide: there is no tool "github.label.add"',
    );
    expect(stdout).toContain('3 cases, 2 not as expected');
  });

  it.each([
    ['tier', '{ verdict: needs_approval, tier: high }', 'expected tier high'],
    ['quorum', '{ verdict: needs_approval, quorum: 3 }', 'expected quorum 3'],
    ['groups', '{ verdict: needs_approval, groups: [sre] }', 'expected groups sre'],
    ['policies', '{ verdict: needs_approval, policies: [mine] }', 'expected it from mine'],
  ])('compares %s', async (_, expected, said) => {
    const cases = file(
      'one.yaml',
      `- { name: one, request: { tool: servicenow.incident.update }, expect: ${expected} }`,
    );
    const { exitCode, stdout } = await onTerminal(120, ['policy', 'test', cases]);
    expect(exitCode).toBe(1);
    expect(stdout).toContain(said);
  });

  it('tries a compiled Rego policy', async () => {
    file('rego/policy.wasm', gunzipSync(Buffer.from(compiledRego('decision').wasmGzipBase64, 'base64')));
    const cases = file(
      'rego.yaml',
      '- { name: one, request: { tool: pagerduty.event }, expect: { verdict: needs_approval, groups: [sre] } }',
    );
    const { exitCode } = await onTerminal(120, ['policy', 'test', cases, '--policies', join(folder, 'rego')]);
    expect(exitCode).toBe(0);
  });

  it('says what is wrong with policies, each with its line', async () => {
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
    ['no such file', () => [join(folder, 'nothing.yaml')], 'cannot read'],
    ['no cases', () => [file('empty.yaml', '[]')], 'is not a list of cases'],
    ['not YAML', () => [file('odd.yaml', '{')], 'odd.yaml'],
    [
      'a field that is none',
      () => [file('odd.yaml', '- { name: x, request: { tool: t, user: u }, expect: allow }')],
      'user',
    ],
    ['an empty folder of policies', () => ['--policies', dirname(file('none/readme.md', ''))], 'has no .cedar file'],
    ['a folder that is none', () => ['--policies', join(folder, 'nowhere')], 'cannot be read'],
  ])('with %s, exits with 2 and a sentence', async (_, args, said) => {
    const { exitCode, stderr } = await onTerminal(120, ['policy', 'test', ...args()]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(said);
  });
});

const outcome = (verdict: string) =>
  verdict === 'needs_approval' ? { verdict, requirement: { tier: 'high', quorum: 2, groups: ['sre'] } } : { verdict };

const flip = (n: number, from: string, to: string) => ({
  runId: `run_${String(n).padStart(32, '0')}`,
  step: 'label',
  tool: 'github.labels.add',
  target: 'github:acme:octo-org/payments#1',
  from: outcome(from),
  to: outcome(to),
  reasons: ['the write puts little at risk'],
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
  it('asks page after page and lists every flip', async () => {
    const args = await replaying([flip(1, 'allow', 'deny')], [], [flip(2, 'needs_approval', 'allow')]);
    const { exitCode, lines, stdout } = await onTerminal(200, args);
    expect(api?.asked).toEqual(Array(3).fill('POST /api/v1/policies/replay'));
    expect(exitCode).toBe(0);
    expect(lines[1]).toMatch(/label +github.labels.add +github:acme:octo-org\/payments#1 +allow +deny/);
    expect(lines[2]).toMatch(/ needs_approval \(high, 2 people of sre\) +allow +the write puts little at risk$/);
    expect(stdout).toContain('90 decisions of 30 runs: 2 would flip');
  });

  it('exits with 1 if something denied would be allowed, unless that is acknowledged', async () => {
    const args = await replaying([flip(1, 'deny', 'allow')]);
    const { exitCode, stderr } = await onTerminal(200, args);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('1 that was denied would be allowed');
    await api?.close();
    const again = await replaying([flip(1, 'deny', 'allow')]);
    expect((await onTerminal(200, [...again, '--acknowledge'])).exitCode).toBe(0);
  });

  it('gives machines the whole of it', async () => {
    const args = await replaying([flip(1, 'deny', 'needs_approval')]);
    const { exitCode, stdout } = await onTerminal(200, [...args, '--json']);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ runs: 10, examined: 30, flips: [flip(1, 'deny', 'needs_approval')] });
  });

  it.each([
    [['policy', 'replay'], 'name the folder of the changed policies'],
    [['policy', 'replay', '--policies', '.', '--since', 'yesterday'], 'is not a time'],
  ])('%j is refused with code 2', async (args, said) => {
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
  it('hands the folder over and says what it is now', async () => {
    api = await stubApi(() => ({ status: 200, body: { hash: 'abc' } }));
    const policies = dirname(file('changed/mine.cedar', FREEZE));
    const { exitCode, stdout } = await onTerminal(100, ['policy', 'publish', policies, '--url', api.url]);
    expect({ exitCode, stdout, asked: api.asked }).toEqual({
      exitCode: 0,
      stdout: 'published: abc',
      asked: ['PUT /api/v1/policies'],
    });
  });

  it('tells what is wrong with it', async () => {
    api = await stubApi(() => ({ status: 422, body: { detail: 'mine.cedar:1: unexpected token' } }));
    const policies = dirname(file('changed/mine.cedar', FREEZE));
    const { exitCode, stderr } = await onTerminal(100, ['policy', 'publish', policies, '--url', api.url]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: 'mine.cedar:1: unexpected token' });
  });
});
