import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { onTerminal, type StubApi, stubApi } from '../command-line.ts';

const COLUMNS = 100;
const GOOD = 'workflows/label-new-issue.yaml';
const EVENT = 'events/github-issue-opened.json';

let folder: string;
let bad: string;
let api: StubApi | undefined;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'countersign-workflow-'));
  bad = join(folder, 'bad.yaml');
  writeFileSync(bad, 'name: bad\nsteps:\n  - id: a\n    tool: github.labels.delete\n    needs: [b]\n');
});
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(async () => {
  await api?.close();
  api = undefined;
});

describe('workflow validate', () => {
  test('reports for every file whether it is valid, with line and hint for each problem', async () => {
    const { exitCode, lines } = await onTerminal(COLUMNS, ['workflow', 'validate', GOOD, bad]);
    expect(exitCode).toBe(1);
    expect(lines).toEqual([
      `${GOOD}: label-new-issue is valid (1 step)`,
      expect.stringContaining(`${bad}:4: steps.0.tool: unknown tool "github.labels.delete"`),
      expect.stringContaining(`${bad}:5: steps.0.needs: unknown step "b"`),
    ]);
  });

  test('exits with 0 if all files are valid, and prints JSON', async () => {
    const { exitCode, stdout } = await onTerminal(COLUMNS, ['workflow', 'validate', GOOD, '--json']);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toEqual([{ file: GOOD, valid: true, name: 'label-new-issue', problems: [] }]);
    const wrong = await onTerminal(COLUMNS, ['workflow', 'validate', bad, '--json']);
    expect(JSON.parse(wrong.stdout)).toMatchObject([{ valid: false, problems: [{ line: 4 }, { line: 5 }] }]);
  });

  test.each([
    [['workflow', 'validate'], 'requires FILE…'],
    [['workflow', 'validate', 'no/such.yaml'], 'cannot read no/such.yaml'],
    [['workflow', 'simulate', GOOD, '--source', 'github'], '--source describes an event; pass its file with --event'],
    [['workflow', 'simulate', GOOD, '--event', EVENT, '--title', 'x'], '--title is for a plan without --event'],
    [['workflow', 'simulate', GOOD, '--input', 'service'], '--input must be NAME=VALUE, not "service"'],
    [['workflow', 'simulate', GOOD, '--inputs', 'README.md'], 'README.md is not a JSON object'],
    [['workflow', 'simulate', GOOD, '--event', 'README.md'], 'cannot derive the source'],
    [['workflow', 'simulate', GOOD, '--event', 'README.md', '--source', 'github'], 'README.md is not a JSON object'],
    [['workflow', 'simulate', GOOD, '--event', 'events/github-ping.json'], 'pass --github-event'],
  ])('%j exits with 2 and a message', async (args, sentence) => {
    const { exitCode, stdout, stderr } = await onTerminal(COLUMNS, args);
    expect(stderr).toContain(sentence);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
  });

  test.each([['validate'], ['simulate'], ['publish']])(
    'workflow %s explains itself within 100 columns',
    async (verb) => {
      const { exitCode, lines } = await onTerminal(COLUMNS, ['workflow', verb, '--help']);
      expect(exitCode).toBe(0);
      expect(lines.filter((line) => line.length > COLUMNS)).toEqual([]);
    },
  );
});

describe('a file with mistakes', () => {
  test.each([
    ['publish', []],
    ['simulate', ['--event', EVENT]],
  ])('is not sent by workflow %s', async (verb, more) => {
    api = await stubApi(() => ({ status: 500, body: {} }));
    const { exitCode, stdout } = await onTerminal(COLUMNS, ['workflow', verb, bad, ...more, '--url', api.url]);
    expect(exitCode).toBe(1);
    expect(stdout).toContain(`${bad}:4: steps.0.tool:`);
    expect(api.asked).toEqual([]);
  });
});

describe('workflow publish', () => {
  test('says so if the newest version has the same content', async () => {
    api = await stubApi(() => ({ status: 200, body: { name: 'label-new-issue', version: 2, warnings: [] } }));
    const { exitCode, lines } = await onTerminal(COLUMNS, ['workflow', 'publish', GOOD, '--url', api.url]);
    const unchanged = 'label-new-issue version 2 has this content; nothing was published';
    expect({ exitCode, lines }).toEqual({ exitCode: 0, lines: [unchanged] });
  });

  test('makes an automation run the new version', async () => {
    const automation = { name: 'label', workflow: { name: 'label-new-issue', version: 1 } };
    api = await stubApi((path) => {
      if (path.endsWith('/workflows'))
        return { status: 201, body: { name: 'label-new-issue', version: 2, warnings: [] } };
      return { status: 200, body: { ...automation, effectiveWithinSeconds: 60 } };
    });
    const args = ['workflow', 'publish', GOOD, '--automation', 'label', '--url', api.url];
    const { exitCode, lines } = await onTerminal(COLUMNS, args);
    expect({ exitCode, lines }).toEqual({
      exitCode: 0,
      lines: ['published label-new-issue version 2', 'label uses it within 60 s'],
    });
    expect(api.asked).toEqual([
      'GET /api/v1/automations/label',
      'POST /api/v1/workflows',
      'PUT /api/v1/automations/label',
    ]);
  });

  test('publishes nothing for an unknown automation', async () => {
    api = await stubApi(() => ({ status: 404, body: { detail: 'there is no automation label' } }));
    const args = ['workflow', 'publish', GOOD, '--automation', 'label', '--url', api.url];
    const { exitCode, stderr } = await onTerminal(COLUMNS, args);
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: 'there is no automation label' });
    expect(api.asked).toEqual(['GET /api/v1/automations/label']);
  });
});

describe('workflow simulate', () => {
  const call = {
    id: 'assign',
    tool: 'servicenow.incident.update',
    reached: true,
    conditional: false,
    kind: 'call',
    effect: 'natural',
    target: `servicenow:acme:incident:${'ab'.repeat(16)}`,
    fields: { group: 'network', state: '2' },
    provisional: false,
    risk: 'medium',
    reversible: true,
    destructive: false,
    decision: { verdict: 'allow', policyHash: 'h', policies: ['p'], reasons: ['because'] },
    outcome: 'runs',
    gate: null,
    madeBy: null,
    before: { group: 'desk', state: '2' },
    after: { group: 'network', state: '2' },
    beforeHash: 'x',
    unread: null,
  };
  const note = {
    ...call,
    id: 'note',
    tool: 'servicenow.incident.add_work_note',
    fields: { note: '(known after apply)' },
    before: null,
    after: null,
    provisional: true,
    reversible: false,
    unread: 'there was no time',
  };
  const facts = { reached: true, conditional: false };
  const plan = (outcome: string, ...steps: object[]) => ({
    workflow: { name: 'example', version: 4 },
    automation: 'triage',
    trigger: { source: 'github', event: 'issues.opened' },
    title: 'Checkout fails \u001b[31m',
    environment: 'prod',
    outcome,
    steps,
    writes: { planned: 2, max: 5 },
    warnings: [],
    plannedAt: '2026-03-02T09:00:00.000Z',
    planHash: 'cd'.repeat(32),
  });
  const simulate = async (body: object, columns = COLUMNS, more: string[] = []) => {
    api = await stubApi(() => ({ status: 200, body }));
    return onTerminal(columns, ['workflow', 'simulate', GOOD, '--event', EVENT, '--url', api.url, ...more]);
  };

  test('without an event, plans a start by the caller with the given inputs', async () => {
    api = await stubApi(() => ({ status: 200, body: plan('runs') }));
    const inputs = join(folder, 'inputs.json');
    writeFileSync(inputs, '{"service":"orders","replicas":1}');
    const given = ['--inputs', inputs, '--input', 'service=payments', '--title', 'Restart'];
    const { exitCode } = await onTerminal(COLUMNS, ['workflow', 'simulate', GOOD, ...given, '--url', api.url]);
    expect(exitCode).toBe(0);
    expect(api.sent).toMatchObject([
      { source: 'manual', title: 'Restart', inputs: { service: 'payments', replicas: 1 } },
    ]);
    expect(api.sent[0]).not.toHaveProperty('payload');
  });

  test('sends a webhook of a source of our own with its name', async () => {
    api = await stubApi(() => ({ status: 200, body: plan('runs') }));
    const event = ['--event', EVENT, '--source', 'generic/alerts'];
    await onTerminal(COLUMNS, ['workflow', 'simulate', GOOD, ...event, '--url', api.url]);
    expect(api.sent).toMatchObject([{ source: 'generic', sourceName: 'alerts', payload: { action: 'opened' } }]);
  });

  test('shows changes as a diff, without control characters', async () => {
    const { exitCode, lines } = await simulate(plan('runs', { ...call, foundByName: ['group'] }, note));
    expect(exitCode).toBe(0);
    expect(lines).toEqual([
      'example v4 as triage in prod',
      'on github issues.opened: Checkout fails  [31m',
      '',
      '  assign: servicenow.incident.update servicenow:acme:incident:abababab…',
      '      ~ group: "desk" → "network"',
      '        state: "2" (unchanged)',
      '      found by name: group; the run writes the sys_id',
      '  note: servicenow.incident.add_work_note servicenow:acme:incident:abababab…',
      '      + note: "(known after apply)"',
      '      the current values were not read: there was no time',
      '      irreversible',
      '      policy decides again when all values are known',
      '',
      '2 writes of at most 5 per run; no approval needed',
      'nothing was written; plan hash cdcdcdcd…',
    ]);
  });

  test('shows approvals, denials, failures and steps that are not reached', async () => {
    const gate = { asks: 'policy', tier: 'high', quorum: 2, groups: [['sre', 'dba']] };
    const { exitCode, stdout } = await simulate(
      plan(
        'denied',
        { ...facts, id: 'ask', tool: 'approval', kind: 'gate', gate: { ...gate, asks: 'step' }, message: 'Look first' },
        { ...call, gate, outcome: 'needs_approval' },
        { ...facts, id: 'no', tool: 'wait', kind: 'skipped' },
        { ...note, outcome: 'denied', conditional: true },
        {
          ...facts,
          id: 'bad',
          tool: 'x',
          kind: 'failing',
          error: { code: 'CAP_EXCEEDED', message: 'm' },
          reached: false,
        },
      ),
      120,
    );
    expect(exitCode).toBe(3);
    for (const line of [
      '      Look first\n      needs approval by 2 people for high risk, from sre or dba (required by the workflow)',
      'needs approval by 2 people for high risk, from sre or dba (required by policy): because',
      '  no: wait\n      skipped: its condition is false',
      'abababab… (if its condition is true)',
      '      denied: because',
      '  bad: x (not reached)\n      fails: CAP_EXCEEDED: m',
      '2 writes of at most 5 per run; policy denies it',
    ]) {
      expect(stdout).toContain(line);
    }
  });

  test('shows an identical write without changes', async () => {
    const { lines } = await simulate(
      plan('runs', { ...call, madeBy: { runId: 'run_1' } }, { ...note, madeBy: { step: 'assign' } }),
    );
    expect(lines.slice(3, 7)).toEqual([
      '  assign: servicenow.incident.update servicenow:acme:incident:abababab…',
      '      identical to the write of run run_1; not written again',
      '  note: servicenow.incident.add_work_note servicenow:acme:incident:abababab…',
      '      identical to the write of step assign; not written again',
    ]);
  });

  test('exits with 1 if the run would fail, 0 if approval is needed', async () => {
    expect((await simulate(plan('fails'))).exitCode).toBe(1);
    await api?.close();
    expect((await simulate(plan('needs_approval'))).exitCode).toBe(0);
  });

  test('fits the terminal, and prints everything as JSON', async () => {
    const long = { ...call, before: { group: 'x'.repeat(300) }, after: { group: 'y' } };
    const { lines } = await simulate(plan('runs', long), 60);
    expect(lines.filter((line) => line.length > 60)).toEqual([]);
    await api?.close();
    const { stdout } = await simulate(plan('runs', long), 60, ['--json']);
    expect(JSON.parse(stdout)).toEqual(plan('runs', long));
  });
});

test('workflow show --version 3 shows that version: the option is not that of the program', async () => {
  api = await stubApi(() => ({ status: 404, body: { detail: 'there is no such version' } }));
  for (const option of [['--version', '3'], ['--version=3']]) {
    const shown = await onTerminal(100, ['workflow', 'show', 'label-new-issue', ...option, '--url', api.url]);
    expect(shown).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('there is no such version') });
  }
  const asked = 'GET /api/v1/workflows/label-new-issue/versions/3';
  expect(api.asked).toEqual([asked, asked]);
});
