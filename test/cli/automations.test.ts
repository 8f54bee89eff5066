import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { onTerminal, type StubApi, stubApi } from './command-line.ts';

const folder = mkdtempSync(join(tmpdir(), 'countersign-automations-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let api: StubApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

const FILTER = '{% trigger.priority in ["1", "2"] %}';
const TRIAGE = {
  name: 'triage-incident',
  enabled: true,
  workspace: 'default',
  triggers: [{ source: 'servicenow', event: 'incident.insert', filter: FILTER }],
  workflow: { name: 'triage-incident', version: 2 },
  notifications: [{ type: 'slack_channel', channel: 'C0OPS' }],
};

async function answering(body: unknown, status = 200): Promise<string> {
  api = await stubApi(() => ({ status, body }));
  return api.url;
}

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

it('automations list shows event, workflow and filter', async () => {
  const off = { ...TRIAGE, name: 'off', enabled: false };
  const url = await answering({ automations: [TRIAGE, off], nextCursor: null });
  const { exitCode, lines } = await onTerminal(120, ['automations', 'list', '--url', url]);
  expect(exitCode).toBe(0);
  expect(lines[1]).toMatch(
    /^triage-incident +servicenow incident.insert +triage-incident v2 +\{% trigger.priority in .*%\}$/,
  );
  expect(lines[2]).toMatch(/^off .* disabled$/);
});

it('automations show prints one automation', async () => {
  const url = await answering(TRIAGE);
  const { stdout } = await onTerminal(80, ['automations', 'show', 'triage-incident', '--url', url]);
  expect(api?.asked).toEqual(['GET /api/v1/automations/triage-incident']);
  expect(stdout).toContain('triage-incident  enabled');
  expect(stdout).toContain(`filter      ${FILTER}`);
});

it('automations list and show say that instructions start a session', async () => {
  const actions = [{ tool: 'github.labels.add' }, { tool: 'github.labels.add', with: { number: 8 } }];
  const workflow = { name: 'automation.by-words', version: 3 };
  const session = {
    ...TRIAGE,
    name: 'by-words',
    workflow,
    instructions: 'Propose a label.\nSay why.',
    session: { actions },
  };
  const url = await answering(session);
  const { lines } = await onTerminal(80, ['automations', 'show', 'by-words', '--url', url]);
  const text = lines.join('\n');
  expect(text).toMatch(/workflow +a session, automation\.by-words v3/);
  expect(text).toMatch(/Instructions\n *Propose a label\.\n *Say why\.$/i);
  expect(text).toMatch(/may propose +github\.labels\.add$/m);
});

describe('automations put', () => {
  it.each([
    ['YAML', `name: triage-incident\ntrigger: { source: servicenow, event: incident.insert }\n`],
    ['JSON', JSON.stringify({ name: 'triage-incident', trigger: { source: 'servicenow', event: 'incident.insert' } })],
  ])('sends the content of a %s file unchanged', async (_, text) => {
    const url = await answering({ ...TRIAGE, effectiveWithinSeconds: 60 });
    const { exitCode, stdout } = await onTerminal(100, ['automations', 'put', file('one', text), '--url', url]);
    expect(exitCode).toBe(0);
    expect(api?.asked).toEqual(['PUT /api/v1/automations/triage-incident']);
    expect(api?.sent).toEqual([
      { name: 'triage-incident', trigger: { source: 'servicenow', event: 'incident.insert' } },
    ]);
    expect(stdout).toBe('saved triage-incident; within 60 s, servicenow incident.insert starts triage-incident v2');
  });

  it('prints the problem that the server reports', async () => {
    const url = await answering({ detail: 'trigger.event: GitHub sends no "issues.open"' }, 422);
    const args = ['automations', 'put', file('typo.yaml', 'name: a'), '--url', url];
    expect(await onTerminal(100, args)).toMatchObject({
      exitCode: 1,
      stderr: 'trigger.event: GitHub sends no "issues.open"',
    });
  });

  it.each([
    ['nothing', '', '"name" is missing'],
    ['no YAML', '{', 'bad.yaml'],
    ['a list', '- name: a', '"name" is missing'],
  ])('with %s in the file, exits with 2 and sends no request', async (_, text, said) => {
    const url = await answering({});
    const { exitCode, stderr } = await onTerminal(100, ['automations', 'put', file('bad.yaml', text), '--url', url]);
    expect({ exitCode, asked: api?.asked }).toEqual({ exitCode: 2, asked: [] });
    expect(stderr).toContain(said);
  });
});
