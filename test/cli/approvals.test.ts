import { afterEach, describe, expect, test } from 'vitest';
import type { ShownApproval } from '../../bin/client/api-client.ts';
import { onTerminal, type StubApi, stubApi } from './command-line.ts';

const RUN_ID = `run_${'ab12'.repeat(8)}`;
const OTHER_RUN_ID = `run_${'cd34'.repeat(8)}`;
const GROUP = '7db8c0366047d2b436c8dcd13dde2bf8';

function approval(facts: Partial<ShownApproval> = {}): ShownApproval {
  const { runId = RUN_ID } = facts;
  const action = {
    tool: 'servicenow.incident.update',
    connector: 'servicenow',
    instance: 'acme',
    target: 'servicenow:acme:incident:6dbb1847acd165f19a4179377de298c8',
    fields: { assignment_group: GROUP, tags: ['a'] },
    effect: 'natural',
    risk: 'medium',
    blastRadius: 'low',
    environment: 'prod',
    destructive: false,
    reversible: true,
    undo: false,
    makers: ['ana'],
  } as const;
  return {
    approvalId: `${runId}.2-1`,
    runId,
    stepIndex: 1,
    stepId: 'assign',
    status: 'notified',
    requestedAt: '2026-03-02T09:00:00.000Z',
    remindAt: '2026-03-02T09:05:00.000Z',
    slaAt: '2026-03-02T09:10:00.000Z',
    expiresAt: '2026-03-03T09:00:00.000Z',
    automation: 'triage-incident',
    workflow: { name: 'triage-incident', version: 3 },
    title: 'Checkout is down',
    subject: 'servicenow:acme:INC0010001',
    asks: 'policy',
    action: { ...action, fields: { ...action.fields, tags: [...action.fields.tags] }, makers: ['ana'] },
    before: { assignment_group: '' },
    after: { assignment_group: GROUP },
    actionHash: 'ab'.repeat(32),
    grounds: { policyHash: 'cd'.repeat(32), policies: ['two-people'], reasons: ['two must agree'] },
    requirement: { tier: 'high', quorum: 2, groups: [['dba']] },
    makers: ['ana'],
    votes: [{ person: 'ben', via: 'slack', decision: 'approve', at: '2026-03-02T09:01:00.000Z' }],
    edits: [],
    channel: '#approvals',
    ...facts,
  };
}

let api: StubApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

/** An API with these pending approvals, and this response to a decision. */
async function pending(approvals: ShownApproval[], decided: { status?: number; body?: unknown } = {}) {
  const { status = 200, body = { outcome: 'approved', approval: approval({ status: 'approved' }) } } = decided;
  api = await stubApi((path) => {
    if (path.endsWith('/decision')) return { status, body };
    const one = approvals.find(({ approvalId }) => path === `/api/v1/approvals/${approvalId}`);
    return { status: 200, body: one ?? { approvals, nextCursor: null } };
  });
  return api;
}

async function at(columns: number, args: string[], answers: string[] = []) {
  return onTerminal(columns, [...args, '--url', api?.url ?? ''], answers);
}

test('approvals show prints the name behind an id, why values were not read, and that nobody can approve', async () => {
  const unread = 'ServiceNow refused (403)';
  const warning = 'nobody can approve this: group dba has no approver of tier high';
  await pending([approval({ names: { assignment_group: { [GROUP]: 'Database' } }, unread, warning })]);
  const { stdout } = await at(200, ['approvals', 'show', `${RUN_ID}.2-1`]);
  expect(stdout).toContain(`~ assignment_group: "" → Database ("${GROUP}")`);
  expect(stdout).toContain(`The current values could not be read, so they are not shown: ${unread}`);
  expect(stdout).toContain(warning);
});

describe('approvals list', () => {
  test('shows who must approve, who has approved, the expiry and the write', async () => {
    await pending([approval(), approval({ runId: OTHER_RUN_ID, action: undefined, stepId: 'look', votes: [] })]);
    const { exitCode, lines } = await at(200, ['approvals', 'list']);
    expect(exitCode).toBe(0);
    expect(lines[0]).toMatch(/^APPROVAL +AGE +EXPIRES +NEEDS +TOOL +SUBJECT +TITLE$/);
    expect(lines[1]).toMatch(
      /^run_ab12ab12\.2-1 .* 2 people for high risk, from dba; approved by ben +servicenow.incident.update +INC0010001 +Checkout is down$/,
    );
    expect(lines[2]).toMatch(/^run_cd34cd34\.2-1 .* from dba +look /);
  });

  test('fits the terminal', async () => {
    await pending([approval({ title: 'x'.repeat(300) })]);
    const { lines } = await at(80, ['approvals', 'list']);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
  });

  test('prints all pages as JSON with --all', async () => {
    const pages = [
      { approvals: [approval()], nextCursor: 'more' },
      { approvals: [approval({ runId: OTHER_RUN_ID })], nextCursor: null },
    ];
    api = await stubApi((path) => ({ status: 200, body: pages[path.includes('cursor=more') ? 1 : 0] }));
    const { stdout } = await at(80, ['approvals', 'list', '--json', '--all']);
    expect(JSON.parse(stdout)).toEqual({
      approvals: [approval(), approval({ runId: OTHER_RUN_ID })],
      nextCursor: null,
    });
    expect(api.asked).toEqual(['GET /api/v1/approvals?limit=100', 'GET /api/v1/approvals?limit=100&cursor=more']);
  });

  test('says so if there are no open approvals', async () => {
    await pending([]);
    expect(await at(80, ['approvals', 'list'])).toMatchObject({ stdout: '', stderr: 'no open approvals' });
  });

  test('shows closed approvals with their status and who decided', async () => {
    await pending([approval({ status: 'rejected', decidedAt: '2026-03-02T09:02:00.000Z' })]);
    const { lines } = await at(200, ['approvals', 'list', '--status', 'decided', '--mine']);
    expect(lines[0]).toMatch(/^APPROVAL +AGE +STATUS +BY +TOOL +SUBJECT +TITLE$/);
    expect(lines[1]).toMatch(/^run_ab12ab12\.2-1 .* rejected +ben +servicenow.incident.update +INC0010001 /);
    expect(api?.asked).toEqual(['GET /api/v1/approvals?status=decided&mine=true']);
  });

  test('refuses an unknown status with the nearest one, and asks nothing', async () => {
    await pending([]);
    expect(await at(80, ['approvals', 'list', '--status', 'expird'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('did you mean "expired"?'),
    });
    expect(api?.asked).toEqual([]);
  });
});

describe('approvals show', () => {
  test('shows the values before and after, the reasons, the excluded people, votes and edits', async () => {
    const edit = { person: 'chloe', via: 'slack', at: '', previousHash: '' } as const;
    const edits = [{ ...edit, changes: [{ field: 'assignment_group', from: 'x', to: GROUP }] }];
    await pending([approval({ edits, makers: ['ana', 'chloe'] })]);
    const { stdout } = await at(100, ['approvals', 'show', 'ab12']);
    for (const shown of [
      `~ assignment_group: "" → "${GROUP}"`,
      '+ tags: ["a"]',
      'because     required by policy: two must agree (two-people)',
      'needs       2 people for high risk, from dba',
      'excluded    ana, chloe (makers of this write)',
      'expires     2026-03-03 09:00:00 UTC',
      'risk medium, blast radius low, in prod; reversible',
      `EDITS\nchloe in slack; earlier votes are void\n~ assignment_group: "x" → "${GROUP}"`,
      'VOTES\nben approved in slack, 09:01:00.000',
    ]) {
      expect(stdout).toContain(shown);
    }
  });

  test('escapes invisible characters and shows the complete write', async () => {
    const text = `pay \u202eevil\u202c\u001b[2J${'x'.repeat(500)}\nend`;
    const { action } = approval();
    await pending([approval({ action: action && { ...action, fields: { note: text } }, before: undefined })]);
    const { lines } = await at(80, ['approvals', 'show', RUN_ID]);
    const shown = lines.find((line) => line.startsWith('+ note: '));
    expect(shown).toBe(`+ note: "pay ⟦U+202E⟧evil⟦U+202C⟧\\u001b[2J${'x'.repeat(500)}\\nend"`);
  });

  test('accepts a run id, and lists the approvals if several are open', async () => {
    const second = { ...approval(), approvalId: `${RUN_ID}.5-2` };
    await pending([approval(), second]);
    const { exitCode, stderr } = await at(100, ['approvals', 'show', RUN_ID]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(`2 approvals match: ${RUN_ID}.2-1, ${RUN_ID}.5-2; give one of these ids`);
    expect(JSON.parse((await at(100, ['approvals', 'show', 'ab12.5-2', '--json'])).stdout)).toEqual(second);
  });
});

describe('a decision', () => {
  const decisions = () => api?.asked.filter((asked) => asked.startsWith('POST'));

  test.each([
    ['approvals', 'approve'],
    ['runs', 'approve'],
  ])('%s %s shows the write, asks for confirmation, and sends its hash', async (...command) => {
    await pending([approval()]);
    const { exitCode, stdout, stderr } = await at(100, [...command, 'ab12'], ['y']);
    expect(stdout).toContain(`~ assignment_group: "" → "${GROUP}"`);
    expect(stderr).toContain('approve? y/N');
    expect(stdout).toContain('approved; follow the run: npx countersign runs watch run_ab12ab12');
    expect(decisions()).toEqual([`POST /api/v1/approvals/${RUN_ID}.2-1/decision`]);
    expect(api?.sent).toEqual([{ decision: 'approve', actionHash: approval().actionHash }]);
    expect(exitCode).toBe(0);
  });

  test.each(['', 'n', 'perhaps'])('the answer %j decides nothing', async (answer) => {
    await pending([approval()]);
    expect((await at(100, ['approvals', 'approve', 'ab12'], [answer])).exitCode).toBe(1);
    expect(decisions()).toEqual([]);
  });

  test('requires --yes without a terminal', async () => {
    await pending([approval()]);
    const { exitCode, stderr } = await at(100, ['approvals', 'approve', 'ab12', '--json']);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: 'cannot ask for confirmation without a terminal; check the write with approvals show, then pass --yes',
    });
    expect(decisions()).toEqual([]);
    expect((await at(100, ['approvals', 'approve', 'ab12', '--json', '--yes'])).exitCode).toBe(0);
    expect(decisions()).toHaveLength(1);
  });

  test('a rejection sends its reason', async () => {
    await pending([approval()], { body: { outcome: 'rejected', approval: approval({ status: 'rejected' }) } });
    const { stdout } = await at(100, ['runs', 'reject', 'ab12', '--reason', 'not today'], ['yes']);
    expect(stdout).toContain('rejected; the write will not be made');
    expect(api?.sent).toMatchObject([{ decision: 'reject', reason: 'not today' }]);
  });

  test('an edit takes text for text fields and JSON for others, and shows the changes before it asks', async () => {
    const makers = ['ana', 'olivia'];
    await pending([approval()], { body: { outcome: 'edited', approval: approval({ makers, votes: [] }) } });
    const fields = ['--field', 'assignment_group=12', '--field', 'tags=["b", 2]'];
    const { stdout } = await at(100, ['approvals', 'edit', 'ab12', ...fields], ['y']);
    expect(stdout).toContain(`YOUR EDIT\n~ assignment_group: "${GROUP}" → "12"\n~ tags: ["a"] → ["b",2]`);
    expect(stdout).toContain('edited; needs approval by 2 people for high risk, from dba, excluding ana, olivia');
    expect(api?.sent).toMatchObject([{ fields: { assignment_group: '12', tags: ['b', 2] } }]);
  });

  test('an edit that gives a known name shows its id, and makers are shown by name where one is known', async () => {
    const [desk, opener] = ['e'.repeat(32), `servicenow:${'f'.repeat(32)}`];
    const shown = {
      makers: ['olivia', opener],
      makerNames: { [opener]: 'Ana Ortiz' },
      names: { assignment_group: { [GROUP]: 'Database', [desk]: 'Service Desk' } },
    };
    await pending([approval(shown)], { body: { outcome: 'edited', approval: approval(shown) } });
    const { stdout } = await at(200, ['approvals', 'edit', 'ab12', '--field', 'assignment_group=service desk'], ['y']);
    expect(stdout).toMatch(new RegExp(`^excluded +olivia, Ana Ortiz \\(${opener}\\) \\(makers of this write\\)$`, 'm'));
    expect(stdout).toContain(`~ assignment_group: Database ("${GROUP}") → Service Desk ("${desk}")`);
    expect(stdout).toContain(`excluding olivia, Ana Ortiz (${opener})`);
    expect(api?.sent).toMatchObject([{ fields: { assignment_group: 'service desk' } }]);
  });

  test.each([
    [[], '--field name=value is required'],
    [['--field', 'assignment_group'], '--field assignment_group must be name=value'],
    [['--field', 'tags=b'], 'tags must be JSON'],
    [['--field', 'tagz=b'], '--field tagz is not a field of this write; did you mean "tags"?'],
    [['--field', 'urgency=1'], '--field urgency is not a field of this write; it has: assignment_group, tags'],
  ])('an edit of %j is refused with code 2 before it is shown', async (fields, sentence) => {
    await pending([approval()]);
    const { exitCode, stdout, stderr } = await at(100, ['approvals', 'edit', 'ab12', '--yes', ...fields]);
    expect(stderr).toContain(sentence);
    expect([exitCode, stdout, decisions()]).toEqual([2, '', []]);
  });

  test.each([
    [403, 'you had a hand in this write, so someone else must decide on it', 1],
    [409, 'what is to be approved has changed since; look at it again', 1],
    [400, 'after this edit, too few people could approve the write', 1],
  ])('prints the detail of a refusal (%i) unchanged', async (status, detail, code) => {
    await pending([approval()], { status, body: { detail } });
    const { exitCode, stderr } = await at(100, ['approvals', 'approve', 'ab12', '--yes']);
    expect({ exitCode, stderr }).toEqual({ exitCode: code, stderr: detail });
  });

  test('a vote that does not decide says how many more are needed', async () => {
    await pending([approval()], { body: { outcome: 'counted', missing: 1, approval: approval() } });
    const { stdout } = await at(100, ['approvals', 'approve', 'ab12', '--yes']);
    expect(stdout).toContain('your vote counts; 1 more needed (2 people for high risk, from dba)');
  });
});
