import { afterEach, expect, test } from 'vitest';
import type { Commit } from '../../lambdas/run/commit.ts';
import type { CommitEvent } from '../../lambdas/run/events/events.ts';
import { onTerminal, type StubApi, stubApi } from './command-line.ts';

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
    deadlineAt: '2026-03-03T02:00:00.000Z',
    head: { seq: 1, hash: '00' },
    steps: [],
    approvals: [],
    receipts: [],
    stopRequest: null,
    rollback: null,
    compensation: [],
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
      'started by oscar, 23:59:59.500; the run ends as failed_terminal',
      'assign: not reversed: somebody changed it',
      'label: write reversed',
    ].join('\n'),
  );
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
  // An operator who undoes the write by hand copies this line.
  expect(stdout).toContain(`\n  undo      servicenow.incident.update ${JSON.stringify(input)}\n`);
  const words = stdout.replace(/\s+/g, ' ');
  expect(words.split(reason)).toHaveLength(3);
  expect(words).not.toContain('…');
  const others = stdout.split('\n').filter((line) => !line.startsWith('  undo') && !line.startsWith('head'));
  expect(others.filter(({ length }) => length > 60)).toEqual([]);
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
