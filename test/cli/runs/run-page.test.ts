import { afterEach, expect, test } from 'vitest';
import type { Commit } from '../../../lambdas/run/commit.ts';
import type { CommitEvent } from '../../../lambdas/run/events/events.ts';
import { onTerminal, type StubApi, stubApi } from '../command-line.ts';

const RUN_ID = `run_${'ab12'.repeat(8)}`;

let api: StubApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

const commit = (seq: number, at: string, ...events: CommitEvent[]): Commit => ({
  seq,
  at,
  events,
  prevHash: '',
  hash: '',
});

async function shown(facts: object, columns = 120): Promise<string> {
  const body = {
    runId: RUN_ID,
    status: 'failed_terminal',
    title: 'A title',
    subject: null,
    automation: 'hand-over',
    workflow: { name: 'hand-over', version: 1 },
    trigger: { source: 'servicenow', event: 'incident.insert', key: 'k' },
    createdAt: '2026-03-02T23:59:58.000Z',
    startedAt: '2026-03-02T23:59:59.000Z',
    updatedAt: '2026-03-03T00:00:01.000Z',
    completedAt: '2026-03-03T00:00:01.000Z',
    durationMs: 3000,
    error: null,
    enrichment: null,
    inputs: null,
    deadlineAt: '2026-03-03T02:00:00.000Z',
    head: { seq: 1, hash: '00' },
    trace: { id: '0'.repeat(32), url: null },
    steps: [],
    approvals: [],
    receipts: [],
    stopRequest: null,
    rollback: null,
    compensation: [],
    reruns: [],
    evidence: null,
    commits: [],
    ...facts,
  };
  api = await stubApi(() => ({ status: 200, body }));
  return (await onTerminal(columns, ['runs', 'show', RUN_ID, '--url', api.url])).stdout;
}

test('an event of another day shows its date', async () => {
  const asked: CommitEvent = {
    type: 'approval.requested',
    step: 'assign',
    approvalId: `${RUN_ID}.1-0`,
    asks: 'policy',
    actionHash: '',
    tier: 'medium',
    quorum: 1,
    groups: [],
    makers: [],
    slaAt: '2026-03-02T23:59:59.000Z',
    expiresAt: '2026-03-03T23:59:58.000Z',
  };
  const waits: CommitEvent = { type: 'step.waiting', step: 'w', index: 1, awaits: 'time', until: asked.slaAt };
  const sameDay = await shown({ commits: [commit(1, '2026-03-02T23:59:58.000Z', asked, waits)] });
  expect(sameDay).toContain('ended       2026-03-03 00:00:01, 3.0 s later');
  expect(sameDay).toContain(
    '\n1  23:59:58.000  assign: approval requested from 1 person for medium risk, until 2026-03-03 23:59:58\n',
  );
  expect(sameDay).toContain('w: waiting until 23:59:59.000');
  await api?.close();
  const done: CommitEvent = { type: 'step.canceled', step: 'w', index: 1 };
  const twoDays = await shown({
    commits: [commit(1, '2026-03-02T23:59:58.000Z', waits), commit(2, '2026-03-03T00:00:01.000Z', done)],
  });
  expect(twoDays).toContain('\n1  2026-03-02 23:59:58.000  w: waiting');
  expect(twoDays).toContain('\n2  2026-03-03 00:00:01.000  w: canceled with the run');
});

test('a run shows its current step, result, resume count, cancellation and step durations', async () => {
  const stdout = await shown({
    steps: [{ id: 'label', index: 0, tool: 'github.labels.add', status: 'succeeded', attempt: 1, durationMs: 2500 }],
    currentStep: 'label',
    resumeCount: 2,
    cancellation: { actor: 'oscar', at: '2026-03-03T00:00:00.000Z', reason: 'duplicate' },
    result: { labels: ['triage'] },
  });
  expect(stdout).toMatch(/^at step +label$/m);
  expect(stdout).toMatch(/^resumed +2 times$/m);
  expect(stdout).toMatch(/^canceled +by oscar: duplicate$/m);
  expect(stdout).toMatch(/^result +\{"labels":\["triage"\]\}$/m);
  expect(stdout).toMatch(/^label +github.labels.add +succeeded +- +1 +2.5 s +-$/m);
});

test('a rolled-back run shows its undo steps and the result for each write', async () => {
  const verdict = (word: string) => ({ governed: { decision: { verdict: word } } });
  const stdout = await shown({
    steps: [
      { id: 'label', index: 0, tool: 'github.labels.add', status: 'rolled_back', attempt: 1, ...verdict('allow') },
      { id: 'assign', index: 1, tool: 'servicenow.incident.update', status: 'succeeded', ...verdict('needs_approval') },
      { id: 'close', index: 2, tool: 'servicenow.incident.update', status: 'failed_terminal', ...verdict('deny') },
      { id: 'undo_label', index: 5000, tool: 'github.labels.remove', status: 'succeeded', attempt: 1, undoes: 0 },
    ],
    rollback: { endsAs: 'failed_terminal', actor: 'oscar', at: '2026-03-02T23:59:59.500Z' },
    compensation: [
      { step: 'assign', receiptKey: 'a', outcome: 'drifted', reason: 'somebody changed it' },
      { step: 'label', receiptKey: 'b', outcome: 'reversed' },
    ],
  });
  expect(stdout).toMatch(/^label +github.labels.add +rolled_back +allow +1 +- +-$/m);
  expect(stdout).toMatch(/^assign +servicenow.incident.update +succeeded +approval /m);
  expect(stdout).toMatch(/^close +servicenow.incident.update +failed_terminal +deny /m);
  expect(stdout).toMatch(/^undo_label +github.labels.remove +succeeded /m);
  expect(stdout).toContain(
    [
      'ROLLBACK',
      'started by oscar, 23:59:59.500',
      'assign: not reversed: somebody changed it',
      'label: write reversed',
    ].join('\n'),
  );
});

test('a repeated run and its original show each other', async () => {
  const other = `run_${'cd34'.repeat(8)}`;
  const again = await shown({ request: { actor: 'oscar', rerunOf: other } });
  expect(again).toMatch(new RegExp(`^repeats +${other}$`, 'm'));
  expect(again).not.toContain('STEPS');
  await api?.close();
  const createdAt = '2026-03-03T00:00:02.000Z';
  const original = await shown({ reruns: [{ runId: other, kind: 'replay', requestedBy: 'oscar', createdAt }] });
  expect(original).toMatch(new RegExp(`^replay +${other} by oscar$`, 'm'));
});

const WRITE = {
  runId: RUN_ID,
  stepId: 'assign',
  key: 'k',
  tool: 'servicenow.incident.update',
  target: 'servicenow:acme:incident:6dbb1847acd165f19a4179377de298c8',
  fields: ['assignment_group', 'state'],
  outcome: 'succeeded',
};

test('on a narrow terminal no event is cut', async () => {
  const input = { sysId: '6dbb1847acd165f19a4179377de298c8', fields: { assignment_group: '', state: 'a'.repeat(100) } };
  const reason = 'because '.repeat(30).trim();
  const failed: CommitEvent = {
    type: 'step.failed',
    step: 'post',
    index: 2,
    error: { code: 'TARGET_REFUSED', message: reason },
  };
  const stdout = await shown(
    {
      receipts: [{ ...WRITE, reversal: { tool: 'servicenow.incident.update', input, expects: {} } }],
      steps: [{ id: 'post', index: 2, tool: 'servicenow.incident.add_work_note', status: 'succeeded', attempt: 1 }],
      error: { code: 'TARGET_REFUSED', message: reason },
      commits: [commit(1, '2026-03-02T23:59:58.000Z', failed)],
    },
    60,
  );
  const words = stdout.replace(/\s+/g, ' ');
  expect(words.split(reason)).toHaveLength(3);
  expect(words).not.toContain('…');
  expect(stdout.split('\n').filter(({ length }) => length > 60)).toEqual([]);
  expect(stdout.replace(/\s+/g, '')).toContain(`undoservicenow.incident.update${JSON.stringify(input)}`);
});

test('a receipt shows fields, outcome and undo separately', async () => {
  const stdout = await shown({ receipts: [{ ...WRITE, reversal: { irreversible: 'it is gone' } }] });
  expect(stdout).toContain(
    '\n  fields    assignment_group, state\n  outcome   succeeded\n  undo      none: it is gone\n',
  );
});

test('an event that a person caused shows the name', async () => {
  const resumed: CommitEvent = {
    type: 'run.status_changed',
    from: 'paused',
    to: 'running',
    initiator: 'user',
    actor: 'oscar',
  };
  const stdout = await shown({ commits: [commit(1, '2026-03-02T23:59:58.000Z', resumed)] });
  expect(stdout).toContain('run: running by oscar\n');
});

const succeeded = (index: number, id: string, tool: string, facts: object = {}) => ({
  ...{ index, id, tool, leaseVersion: 1, attempt: 1, updatedAt: '2026-03-03T00:00:01.000Z' },
  ...{ status: 'succeeded', completedAt: '2026-03-03T00:00:01.000Z', output: null, ...facts },
});
const skipped = { attempt: 0, skipped: true };
const stepLines = (text: string) =>
  (text.split('STEPS\n')[1] ?? '')
    .split('\n\n')[0]
    ?.split('\n')
    .slice(1)
    .map((line) =>
      line
        .replace(/ +-/g, '')
        .replace(/(?<=\S) {2,}/g, ' | ')
        .trimEnd(),
    );

test('a loop shows its items below it, and its unused slots as one line', async () => {
  const steps = [
    succeeded(0, 'notify__0', 'forEach.items', { output: ['a', 'b'] }),
    succeeded(1, 'notify__1', 'slack.message.post'),
    // Its `when` was false for the second item.
    succeeded(2, 'notify__2', 'slack.message.post', skipped),
    ...[3, 4, 5].map((slot) => succeeded(slot, `notify__${slot}`, 'slack.message.post', skipped)),
    succeeded(6, 'notify', 'forEach'),
    succeeded(7, 'after', 'transform'),
  ];
  const skip = (step: string): CommitEvent => ({
    type: 'step.succeeded',
    step,
    index: 1,
    outputHash: '',
    skipped: true,
  });
  const commits = [
    commit(1, '2026-03-02T23:59:58.000Z', ...[3, 4, 5].map((slot) => skip(`notify__${slot}`)), skip('x')),
  ];
  const text = await shown({ steps, commits });
  expect(stepLines(text)).toEqual([
    'notify | forEach, 2 items | succeeded | 1',
    '  notify__1 | slack.message.post | succeeded | 1',
    '  notify__2 | slack.message.post | skipped',
    '  3 unused slots | skipped',
    'after | transform | succeeded | 1',
  ]);
  expect(text).toContain('notify__3 to notify__5: skipped\n');
  expect(text).toContain(' x: skipped\n');
});

test('a loop over calls shows the steps of each call, and the status that it has reached', async () => {
  const pending = (index: number, id: string, tool: string) => ({ index, id, tool, status: 'pending' });
  const steps = [
    succeeded(0, 'each__0', 'forEach.items', { output: ['a'] }),
    succeeded(1, 'each__1__0', 'workflow.inputs'),
    { ...succeeded(2, 'each__1__page', 'pagerduty.event'), status: 'waiting_approval' },
    pending(3, 'each__1', 'workflow.call'),
    pending(4, 'each__2__0', 'workflow.inputs'),
    pending(5, 'each__2__page', 'pagerduty.event'),
    pending(6, 'each__2', 'workflow.call'),
    pending(7, 'each', 'forEach'),
    succeeded(8, 'call__0', 'workflow.inputs', skipped),
    succeeded(9, 'call__page', 'pagerduty.event', skipped),
    succeeded(10, 'call', 'workflow.call', skipped),
    succeeded(11, 'a__b', 'transform'),
  ];
  expect(stepLines(await shown({ steps }))).toEqual([
    'each | forEach, 1 item | waiting_approval',
    '  each__1 | workflow.call | waiting_approval',
    '    each__1__page | pagerduty.event | waiting_approval | 1',
    '  1 unused slot | pending',
    'call | workflow.call | skipped',
    'a__b | transform | succeeded | 1',
  ]);
});

test('a loop whose list is not known yet, or failed, shows its steps', async () => {
  const failed = {
    ...succeeded(0, 'x__0', 'forEach.items'),
    status: 'failed_terminal',
    error: { code: 'INPUT_INVALID', message: 'too many' },
  };
  const steps = [
    failed,
    { index: 1, id: 'x__1', tool: 'transform', status: 'pending' },
    { index: 2, id: 'x', tool: 'forEach', status: 'pending' },
  ];
  const text = await shown({ steps });
  expect(stepLines(text)?.slice(0, 3)).toEqual([
    'x | forEach | failed_terminal',
    '  x__0 | forEach.items | failed_terminal | 1',
    '  x__1 | transform | pending',
  ]);
});

const valued = (fields: object) => ({ governed: { request: { action: { fields } }, decision: { verdict: 'allow' } } });

test('inputs, outputs and written values are shown, and long ones are cut', async () => {
  const long = 'x'.repeat(500);
  const step = { id: 'assign', index: 0, tool: WRITE.tool, status: 'succeeded', attempt: 1, receiptKey: 'k' };
  const stdout = await shown(
    {
      status: 'succeeded',
      inputs: { service: 'orders', note: long },
      steps: [
        { ...step, output: { sysId: 'a' }, ...valued({ assignment_group: 'dba', state: long }) },
        { id: 'next', index: 1, tool: 'http.get', status: 'failed_terminal', attempt: 1, input: { url: long } },
        { id: 'none', index: 2, tool: 'http.get', status: 'succeeded', attempt: 0, output: null, skipped: true },
      ],
      receipts: [{ ...WRITE, before: { assignment_group: '' }, reversal: { irreversible: 'it is gone' } }],
    },
    80,
  );
  expect(stdout).toMatch(/\nINPUTS\nservice: "orders"\nnote: "x+/);
  expect(stdout).toContain('\nVALUES\nassign\n  output    {"sysId":"a"}\nnext\n  input     {"url":\n');
  expect(stdout).toContain(`\nin full: npx countersign runs show ${RUN_ID.slice(0, 12)} --step STEP\n`);
  expect(stdout).toContain('\n  wrote     assignment_group: "dba", before ""\n');
  const state = stdout.slice(stdout.indexOf('state:'), stdout.indexOf('  outcome')).replace(/\s/g, '');
  expect(state).toBe(`state:"${'x'.repeat(199)}…`);
  expect(stdout.split('\n').filter(({ length }) => length > 80)).toEqual([]);
});

test('the first lines say what the run is about and what to do', async () => {
  const unknown = { ...WRITE, outcome: 'unknown', error: { code: 'OUTCOME_UNKNOWN', message: 'no response' } };
  const id = RUN_ID.slice(0, 12);
  const top = async (facts: object) => {
    const stdout = await shown(facts, 200);
    await api?.close();
    return stdout.split('\n').slice(0, 5);
  };
  expect(await top({ status: 'needs_human', subject: 'INC1', receipts: [unknown] })).toEqual([
    'A title  needs_human',
    '',
    'automation  hand-over',
    'subject     INC1',
    `next        check the targets, then close: npx countersign runs resolve ${id} --as succeeded|failed --reason TEXT --write assign=happened|did_not`,
  ]);
  const resolution = { outcome: 'failed', actor: 'oscar', at: '2026-03-03T00:00:02.000Z', reason: 'gone', writes: {} };
  const next: [facts: object, line: RegExp][] = [
    [{ status: 'failed_terminal' }, /^next +repeat: .* runs rerun run_\w+; or close: .* runs resolve run_\w+ --as /],
    [{ status: 'failed_terminal', resolution }, /^resolved +as failed by oscar/],
    [{ status: 'waiting_approval', completedAt: null }, /^next +decide: npx countersign approvals show run_/],
    [{ status: 'paused', completedAt: null }, /^next +continue: npx countersign runs resume run_/],
    [{ status: 'running', completedAt: null }, /^next +follow it: npx countersign runs watch run_/],
    [{ status: 'succeeded' }, /^workflow /],
  ];
  for (const [facts, line] of next) expect((await top(facts))[4]).toMatch(line);
});

test('a failed rollback run is not to be repeated: that would make the writes again', async () => {
  const stdout = await shown({ status: 'failed_terminal', rollbackOf: `run_${'cd34'.repeat(8)}` }, 200);
  expect(stdout).toMatch(
    /^next +correct by hand what was not undone, then close: npx countersign runs resolve run_\w+ --as /m,
  );
  expect(stdout).not.toContain('rerun');
});
