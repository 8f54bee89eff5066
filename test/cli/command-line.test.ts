import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { cut, widthOf } from '../../bin/terminal/fit-text.ts';
import { processTerminal } from '../../bin/terminal/terminal.ts';
import { STATUS_TEXTS } from '../../lambdas/api/operations/status-texts.ts';
import {
  countersign,
  onTerminal,
  piped,
  plainEnvironment,
  ROOT,
  Running,
  type StubApi,
  startCountersign,
  stubApi,
} from './command-line.ts';

const RUN_ID = `run_${'ab12'.repeat(8)}`;
const SIMILAR_RUN_ID = `run_${'ab13'.repeat(8)}`;

const summary = (runId: string, facts: object = {}) => ({
  runId,
  status: 'running',
  title: 'A title',
  subject: 'github:octo-org/payments#1',
  automation: 'label-new-issue',
  workflow: { name: 'label-new-issue', version: 1 },
  trigger: { source: 'github', event: 'issues.opened', key: 'github:1' },
  createdAt: '2026-03-02T09:00:00.000Z',
  startedAt: null,
  updatedAt: '2026-03-02T09:00:00.000Z',
  completedAt: null,
  durationMs: null,
  approvalOverdueSince: null,
  error: null,
  ...facts,
});

const stepCommit = (seq: number) => ({
  seq,
  at: '2026-03-02T09:00:00.000Z',
  events: [{ type: 'step.succeeded', step: `step-${seq}`, index: seq, outputHash: '00' }],
  prevHash: '',
  hash: '',
});

let api: StubApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

/** A port that was free a moment ago, so nothing responds there. */
async function unreachable(): Promise<string> {
  const closed = await stubApi(() => ({ status: 200, body: {} }));
  await closed.close();
  return closed.url;
}

describe('usage', () => {
  test.each([
    [[], 'no command given'],
    [['run'], 'unknown command "run"; did you mean "runs"?'],
    [['runs'], 'runs requires a subcommand: list, show, watch'],
    [['runs', 'delete'], 'unknown command "runs delete"; runs has: list, show, watch'],
    [['runs', 'list', '--colour'], 'unknown option --colour'],
    [['runs', 'list', '--secret', 'x'], 'countersign runs list: unknown option --secret'],
    [['runs', 'list', '--limit', '0'], '--limit must be a number from 1 to 100, not "0"'],
    [['runs', 'list', '--limit', '-1'], '--limit must be a number from 1 to 100, not "-1"'],
    [['runs', 'list', '--limit', '--all'], '--limit requires a value'],
    [['runs', 'resolve', 'ab12', '--reason', 'x'], '--as is required: succeeded or failed'],
    [['runs', 'list', '--limit', '101'], '--limit must be a number from 1 to 100, not "101"'],
    [['runs', 'list', '--status', 'done'], 'unknown status "done"'],
    [['runs', 'list', '--since', '5'], '--since 5 is not a time; use 2026-11-17T09:30Z'],
    [['runs', 'list', '--until', 'May 2001'], '--until May 2001 is not a time'],
    [['runs', 'list', '--text', ''], '--text must not be empty'],
    [['runs', 'bulk', 'cancel', '--since', '5', '--yes'], '--since 5 is not a time'],
    [['runs', 'bulk', 'cancel', '--status', 'queued', '--as', 'failed'], 'runs bulk cancel does not take --as'],
    [['runs', 'bulk', 'retry', '--status', 'paused', '--reason', 'x'], 'runs bulk retry does not take --reason'],
    [['runs', 'bulk', 'cancel', 'job', '--status', 'queued'], 'runs bulk cancel: unexpected argument "job"'],
    [
      ['runs', 'bulk', 'resume', 'bulk_1', '--status', 'queued'],
      'runs bulk resume does not take --status; the job has',
    ],
    [['dead-letters', 'redrive', '--id', 'a', '--all'], 'pass --all, or the messages'],
    [['runs', 'list', 'everything'], 'countersign runs list: unexpected argument "everything"'],
    [['runs', 'show'], 'countersign runs show requires ID'],
    [['runs', 'show', 'INC0010001'], '"INC0010001" is not a run id'],
    [['approvals', 'show', 'INC0010001'], '"INC0010001" is not an approval id'],
    [['approvals', 'reject', RUN_ID], '--reason is required'],
    [['approvals', 'list', '--limit', 'x'], '--limit must be a number from 1 to 100'],
    [['runs', 'list', '--url', 'here'], '--url here is not a URL'],
    [['runs', 'list', '--url', 'https://api.example.com'], 'you are not signed in at https://api.example.com'],
  ])('%j exits with 2 and a message', async (args, sentence) => {
    const { exitCode, stdout, stderr } = await onTerminal(100, args);
    expect(stderr.split('\n').at(-1), 'the message comes last').toContain(sentence);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
  });

  test('a usage error shows the help of the nearest command only', async () => {
    const usage = 'usage: countersign runs list [--status STATUS]';
    expect((await onTerminal(100, ['runs', 'list', '--colour'])).stderr).toContain(usage);
    expect((await onTerminal(100, ['runs', 'list', 'everything'])).stderr).toContain(usage);
    const group = (await onTerminal(100, ['policy', 'tset'])).stderr;
    expect(group).toContain('countersign policy test');
    expect(group).not.toContain('countersign runs');
    expect((await onTerminal(100, ['polcy'])).stderr).toBe('unknown command "polcy"; did you mean "policy"?');
  });

  test('the usage shows required options without brackets', async () => {
    expect((await onTerminal(100, ['runs', 'signal', '--help'])).stdout).toMatch(/ID --event EVENT \[--payload JSON\]/);
    expect((await onTerminal(100, ['approvals', 'reject', '--help'])).stdout).toMatch(/ID --reason TEXT \[--yes\]/);
  });

  test('prints the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(await onTerminal(100, ['--version'])).toMatchObject({ exitCode: 0, stdout: version });
  });

  test('help works as an option and as a command', async () => {
    for (const words of [[], ['runs'], ['runs', 'list']]) {
      const asked = await onTerminal(100, ['help', ...words]);
      expect(asked).toEqual(await onTerminal(100, [...words, '--help']));
      expect(asked.exitCode).toBe(0);
    }
    expect(await onTerminal(100, ['help', 'run'])).toMatchObject({ exitCode: 2, stdout: '' });
  });

  test.each([
    [['--help']],
    [['-h']],
    [['runs', '--help']],
    [['runs', 'list', '--help']],
    [['runs', 'show', '--help']],
    [['webhook', 'send', '--help']],
    [['approvals', '--help']],
    [['approvals', 'edit', '--help']],
  ])('%j prints help within 100 columns', async (args) => {
    const { exitCode, lines, stderr } = await onTerminal(100, args);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(lines.join('\n')).toContain(`countersign ${args.filter((each) => !each.startsWith('-')).join(' ')}`.trim());
    expect(lines.filter((line) => line.length > 100)).toEqual([]);
  });

  test.each([
    ['npm', ['run', '--silent', 'countersign', '--', '--help']],
    ['npx', ['countersign', '--help']],
  ])('works through %s', async (program, args) => {
    const { exitCode, stdout } = await new Running(program, args, plainEnvironment()).ended;
    expect(exitCode).toBe(0);
    expect(stdout).toContain('countersign runs watch ID');
  });
});

describe('an API that cannot be used', () => {
  test('exits with 3 and a hint if nothing responds', async () => {
    const url = await unreachable();
    for (const args of [
      ['runs', 'list'],
      ['runs', 'show', RUN_ID],
      ['runs', 'watch', RUN_ID],
      ['webhook', 'send', 'events/github-ping.json'],
    ]) {
      const { exitCode, stdout, stderr } = await piped(args, { COUNTERSIGN_URL: url });
      expect({ exitCode, stdout, stderr }).toEqual({
        exitCode: 3,
        stdout: '',
        stderr: `nothing responds at ${url}; start the local host with npm start, or pass the URL of a stage with --url\n`,
      });
    }
  });

  test.each([
    [
      401,
      { message: 'Unauthorized' },
      3,
      'rejected the credential: pass a valid one with --key or COUNTERSIGN_API_KEY, or run countersign login',
    ],
    [403, { message: 'Forbidden' }, 3, 'rejected the credential'],
    [401, { detail: 'the token has expired; sign in again' }, 3, 'rejected the credential: the token has expired'],
    [403, { detail: 'a member may look at runs' }, 1, 'a member may look at runs'],
    [404, { message: 'Not Found' }, 3, 'is not a Countersign API (it responded with 404); check --url'],
    [500, { detail: 'something went wrong on our side' }, 3, 'responded with 500: something went wrong on our side'],
    [404, { detail: `there is no run ${RUN_ID}` }, 1, `there is no run ${RUN_ID}`],
    [400, { detail: 'the cursor is odd' }, 2, 'the cursor is odd'],
  ])('a response %i %j ends the command with code %i', async (status, body, code, sentence) => {
    api = await stubApi(() => ({ status, body }));
    const { exitCode, stderr } = await onTerminal(100, ['runs', 'show', RUN_ID, '--url', api.url]);
    expect(stderr).toContain(sentence);
    expect(exitCode).toBe(code);
  });
});

describe('naming a run', () => {
  test('a complete id is requested directly', async () => {
    api = await stubApi(() => ({ status: 404, body: { detail: 'no' } }));
    await onTerminal(100, ['runs', 'show', RUN_ID, '--url', api.url]);
    expect(api.asked).toEqual([`GET /api/v1/runs/${RUN_ID}`]);
  });

  test.each([
    [409, 'several runs start with run_ab1', 1],
    [404, 'there is no run run_ab1', 1],
  ])(
    'the API finds the run by its first characters, and its response %i "%s" is shown',
    async (status, detail, code) => {
      api = await stubApi(() => ({ status, body: { detail } }));
      for (const reference of ['ab1', 'run_ab1']) {
        const { exitCode, stderr } = await onTerminal(100, ['runs', 'watch', reference, '--url', api.url]);
        expect(stderr).toContain(detail);
        expect(exitCode).toBe(code);
      }
      expect(api.asked).toEqual(['GET /api/v1/runs/run_ab1', 'GET /api/v1/runs/run_ab1']);
    },
  );

  test('a search reads on until it has found enough, and says how far it has searched', async () => {
    const found = [[], [summary(RUN_ID)], [summary(SIMILAR_RUN_ID)]];
    const searchedBackTo = '2026-11-17T09:30:00.000Z';
    api = await stubApi(() => {
      const runs = found.shift() ?? [];
      return { status: 200, body: { runs, nextCursor: 'next', searchedBackTo } };
    });
    const search = ['runs', 'list', '--text', 'disk', '--since', '2026-11-01', '--limit', '2', '--url', api.url];
    const { lines, stderr } = await onTerminal(120, search);
    expect(lines.slice(1)).toHaveLength(2);
    expect(stderr).toContain('searched back to 2026-11-17 09:30:00 UTC');
    expect(api.asked[0]).toBe('GET /api/v1/runs?since=2026-11-01T00%3A00%3A00.000Z&text=disk&limit=2');
    expect(api.asked[2]).toContain('limit=1&cursor=next');
  });

  test('a list shows ids long enough to be unique', async () => {
    const twins = [`run_${'0'.repeat(20)}${'1'.repeat(12)}`, `run_${'0'.repeat(20)}${'2'.repeat(12)}`];
    api = await stubApi(() => ({ status: 200, body: { runs: twins.map((id) => summary(id)), nextCursor: null } }));
    const { lines } = await onTerminal(120, ['runs', 'list', '--url', api.url]);
    expect(lines.slice(1).map((line) => line.split(' ')[0])).toEqual(twins.map((id) => id.slice(0, 25)));
  });
});

describe('untrusted text', () => {
  test('a title cannot control the terminal', async () => {
    const title = 'red \u001b[31malert\u001b]0;owned\u0007 \u202eesrever\nnext line';
    api = await stubApi(() => ({ status: 200, body: { runs: [summary(RUN_ID, { title })], nextCursor: null } }));
    const { stdout, lines } = await onTerminal(200, ['runs', 'list', '--url', api.url]);
    expect(stdout.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
    expect(lines).toHaveLength(2);
    expect(stdout).toContain('red  [31malert ]0;owned   esrever next line');
  });

  test('wide characters take two columns and are never split', () => {
    expect(widthOf('建物 🚒')).toBe(7);
    expect(cut('建物のビルド', 6)).toBe('建物…');
    expect(cut('octo-org/payments#1', 10, 'end')).toBe('…ayments#1');
  });

  test('an event of a newer server is shown as JSON', async () => {
    const events = [{ type: 'moon.changed', phase: 'full' }];
    api = await stubApi(() => ({
      status: 200,
      body: { status: 'succeeded', commits: [{ ...stepCommit(1), events }], next: 1, more: false },
    }));
    const { stdout } = await onTerminal(100, ['runs', 'watch', RUN_ID, '--url', api.url]);
    expect(stdout).toContain('moon.changed {"phase":"full"}');
  });
});

describe('long runs', () => {
  test('show fetches all pages of commits', async () => {
    const detail = {
      ...summary(RUN_ID),
      enrichment: null,
      deadlineAt: '2026-03-02T11:00:00.000Z',
      head: { seq: 3, hash: '00' },
      trace: { id: '0'.repeat(32), url: null },
      steps: [],
      approvals: [],
      receipts: [],
      stopRequest: null,
      rollback: null,
      compensation: [],
      evidence: null,
      reruns: [],
      commits: [stepCommit(1)],
      moreCommitsSince: 1,
    };
    api = await stubApi((path) => {
      const since = /events\?since=(\d+)/.exec(path)?.[1];
      if (since === undefined) return { status: 200, body: detail };
      const seq = Number(since) + 1;
      return { status: 200, body: { status: 'running', commits: [stepCommit(seq)], next: seq, more: seq < 3 } };
    });
    const { stdout } = await piped(['runs', 'show', RUN_ID, '--json', '--url', api.url]);
    const shown = JSON.parse(stdout);
    expect(shown.commits).toEqual([stepCommit(1), stepCommit(2), stepCommit(3)]);
    expect(shown).not.toHaveProperty('moreCommitsSince');
  });

  test('watch continues after a short API failure and shows no event twice', async () => {
    let answers = 0;
    api = await stubApi((path) => {
      // A stage without the live feed.
      if (path.endsWith('/live/ticket')) return { status: 404, body: { code: 'NOT_FOUND', detail: 'there is none' } };
      answers += 1;
      if (answers === 2) return { status: 503, body: { message: 'Service Unavailable' } };
      const seq = Number(/since=(\d+)/.exec(path)?.[1]) + 1;
      const status = seq === 2 ? 'succeeded' : 'running';
      return { status: 200, body: { status, commits: [stepCommit(seq)], next: seq, more: false } };
    });
    const { exitCode, lines, stderr } = await onTerminal(100, ['runs', 'watch', RUN_ID, '--url', api.url]);
    expect(exitCode).toBe(0);
    expect(lines.map((line) => line.slice(14, 20))).toEqual(['step-1', 'step-2']);
    expect(stderr).toContain('responded with 503');
  });

  test('watch says once how to decide while a run waits for approval', async () => {
    const pages = [
      { status: 'waiting_approval', commits: [stepCommit(1)], next: 1, more: false },
      { status: 'succeeded', commits: [stepCommit(2)], next: 2, more: false },
    ];
    api = await stubApi((path) => ({ status: 200, body: pages[path.endsWith('since=0') ? 0 : 1] }));
    const { stderr } = await onTerminal(100, ['runs', 'watch', RUN_ID, '--url', api.url]);
    expect(stderr.match(/waiting for approval/g)).toHaveLength(1);
    expect(stderr).toContain(`decide at ${api.url}/_sim, or run npx countersign approvals show run_ab12ab12`);
  });

  test('Ctrl-C ends a watch with 130 and no message', async () => {
    api = await stubApi((path) => {
      const seq = path.endsWith('since=0') ? 1 : 0;
      return { status: 200, body: { status: 'running', commits: seq ? [stepCommit(1)] : [], next: 1, more: false } };
    });
    const watch = startCountersign(['runs', 'watch', RUN_ID, '--url', api.url]);
    await watch.hasPrinted('step-1: succeeded');
    watch.signal('SIGINT');
    const { exitCode, stderr } = await watch.ended;
    expect({ exitCode, stderr }).toEqual({ exitCode: 130, stderr: '' });
  });
});

test('FORCE_COLOR colours statuses, NO_COLOR does not', async () => {
  api = await stubApi(() => ({
    status: 200,
    body: { runs: [summary(RUN_ID, { status: 'succeeded' })], nextCursor: null },
  }));
  const list = ['runs', 'list', '--url', api.url];
  expect((await countersign(list, { FORCE_COLOR: '1' })).stdout).toContain('\u001b[32msucceeded\u001b[39m');
  expect((await countersign(list, { NO_COLOR: '1' })).stdout).not.toContain('\u001b');
});

test('a list with errors and overdue approvals fits 80 columns and names the codes', async () => {
  const failed = { status: 'failed_terminal', error: { code: 'TARGET_REFUSED', message: 'no' }, durationMs: 12 };
  const overdue = { status: 'waiting_approval', approvalOverdueSince: '2026-03-02T09:30:00.000Z' };
  const runs = [summary(RUN_ID, failed), summary(SIMILAR_RUN_ID, overdue)];
  api = await stubApi(() => ({ status: 200, body: { runs, nextCursor: null } }));
  const { lines } = await onTerminal(80, ['runs', 'list', '--url', api.url]);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(lines[0]).toMatch(/^RUN +STATUS +ERROR +AGE /);
  expect(lines.join('\n')).toContain('TARGET_REFUSED');
  expect(lines.join('\n')).toContain('approval overdue');
});

test('status has every problem on one screen of 80 by 24, the urgent ones first', async () => {
  const texts = Object.entries(STATUS_TEXTS).slice(0, 8);
  const problems = texts.map(([kind, { many, severity, command, runbook }]) => ({
    kind,
    count: 3,
    since: '2026-03-02T08:30:00.000Z',
    oldestRun: { runId: RUN_ID, title: 'Checkout database refuses connections again', errorCode: 'TARGET_REFUSED' },
    what: many.replace('#', '3'),
    severity,
    command,
    runbook,
  }));
  const at = '2026-03-02T09:30:00.000Z';
  const body = {
    tenant: 'acme',
    at,
    healthy: false,
    problems,
    counts: { byStatus: [] },
    lastSweepAt: at,
    notChecked: [],
  };
  api = await stubApi(() => ({ status: 200, body }));
  const { lines, exitCode } = await onTerminal(80, ['status', '--url', api.url]);
  expect(exitCode).toBe(1);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(lines.length).toBeLessThanOrEqual(24);
  expect(lines[0]).toBe('acme  8 problems');
  expect(lines.filter((line) => line.startsWith('! '))).toHaveLength(8);
});

test('a list without runs names an automation that does not exist, and the nearest one', async () => {
  const automations = [{ name: 'label-new-issue' }];
  const body = { runs: [], automations, nextCursor: null };
  api = await stubApi(() => ({ status: 200, body }));
  const { stderr, exitCode } = await onTerminal(80, [
    'runs',
    'list',
    '--automation',
    'label-new-isue',
    '--url',
    api.url,
  ]);
  expect(exitCode).toBe(0);
  expect(stderr).toContain('no run matches');
  expect(stderr).toContain('there is no automation "label-new-isue"; did you mean "label-new-issue"?');
});

test('the list marks a run whose approval is overdue', async () => {
  const overdue = { status: 'waiting_approval', approvalOverdueSince: '2026-03-02T09:30:00.000Z' };
  api = await stubApi(() => ({ status: 200, body: { runs: [summary(RUN_ID, overdue)], nextCursor: null } }));
  expect((await piped(['runs', 'list', '--url', api.url])).stdout).toContain('waiting_approval, overdue');
});

test('lines are not limited if the terminal does not report its width', () => {
  const { isTTY, columns } = process.stdout;
  try {
    process.stdout.isTTY = true;
    process.stdout.columns = 0;
    expect(processTerminal().columns).toBe(Number.POSITIVE_INFINITY);
    process.stdout.columns = 80;
    expect(processTerminal().columns).toBe(80);
  } finally {
    Object.assign(process.stdout, { isTTY, columns });
  }
});
