import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { siemKey, siemLines } from '../../../lambdas/evidence/export/siem.ts';
import type { Commit } from '../../../lambdas/run/commit.ts';
import type { CommitEvent } from '../../../lambdas/run/events/events.ts';
import { GovernedStory, TEXT_CANARIES } from '../bundle/governed-story.ts';

const { run, commits } = new GovernedStory().contents;
const lines = siemLines(run, commits).toString().split('\n');

/** What OCSF 1.8 requires of an API Activity event, and the ranges of its enumerations. */
const ApiActivity = z.looseObject({
  activity_id: z.union([z.literal(1), z.literal(2), z.literal(3), z.literal(4)]),
  category_uid: z.literal(6),
  class_uid: z.literal(6003),
  type_uid: z.int(),
  time: z.int(),
  severity_id: z.int().min(1).max(6),
  status_id: z.int().min(1).max(2),
  actor: z.looseObject({ app_name: z.string(), user: z.looseObject({ name: z.string() }).optional() }),
  api: z.looseObject({ operation: z.string(), service: z.looseObject({ name: z.string() }) }),
  src_endpoint: z.looseObject({ svc_name: z.string() }),
  resources: z.array(z.looseObject({ uid: z.string() })),
  metadata: z.looseObject({
    version: z.literal('1.8.0'),
    product: z.looseObject({ name: z.string(), vendor_name: z.string() }),
    uid: z.string(),
    sequence: z.int(),
    labels: z.array(z.string()),
  }),
  unmapped: z.looseObject({}),
});
const events = lines.slice(0, -1).map((line) => ApiActivity.parse(JSON.parse(line)));

/** The exported line of a commit with only these events. */
function exported(...of: CommitEvent[]) {
  const commit: Commit = { seq: 2, prevHash: 'a', at: '2026-01-02T03:04:05.678Z', events: of, hash: 'b' };
  return ApiActivity.parse(JSON.parse(siemLines(run, [commit]).toString()));
}
const moved = (to: string) =>
  ({ type: 'run.status_changed', from: 'running', to, initiator: 'system', actor: 'worker' }) as CommitEvent;
const error = { code: 'TARGET_REFUSED', message: 'CANARY-error' } as const;

describe('the SIEM export of a run', () => {
  it('has a line for each commit, in order, each with a newline', () => {
    expect(lines.at(-1)).toBe('');
    expect(events.map(({ metadata }) => metadata.sequence)).toEqual(commits.map(({ seq }) => seq));
    expect(new Set(events.map(({ metadata }) => metadata.uid)).size).toBe(commits.length);
  });

  it('is named by tenant, the day on which the run ended, and the run', () => {
    expect(siemKey(run)).toBe('siem/acme/2026/01/02/run_00000001.jsonl');
  });

  it('contains no text of people or targets', () => {
    for (const canary of TEXT_CANARIES) expect(lines.join('\n')).not.toContain(canary);
  });

  it('has activity and type `create` for the first commit, and `update` for the others', () => {
    expect(events.map(({ activity_id, type_uid }) => [activity_id, type_uid])).toEqual([
      [1, 600301],
      ...commits.slice(1).map(() => [3, 600303]),
    ]);
  });

  it('has the time in milliseconds, and names every kind of event of the commit', () => {
    const event = exported(
      { type: 'step.succeeded', step: 'a', index: 0, outputHash: 'c' },
      { type: 'step.canceled', step: 'b', index: 1 },
    );
    expect(event.time).toBe(Date.parse('2026-01-02T03:04:05.678Z'));
    expect(event.api.operation).toBe('step.succeeded');
    expect(event.metadata.labels).toEqual(['step.succeeded', 'step.canceled']);
  });

  it('has the hashes of the chain on each line', () => {
    expect(events.map(({ unmapped }) => unmapped.hash)).toEqual(commits.map(({ hash }) => hash));
  });

  it.each<[string, CommitEvent, { name: string } | undefined]>([
    [
      'a voter',
      { type: 'approval.voted', step: 'a', approvalId: 'b', person: 'ben', via: 'slack', decision: 'approve' },
      { name: 'ben' },
    ],
    [
      'an operator',
      { type: 'run.stop_requested', kind: 'cancel', initiator: 'user', actor: 'olivia' },
      { name: 'olivia' },
    ],
    ['who sent a signal', { type: 'step.retry_requested', step: 'a', index: 0, actor: 'oscar' }, { name: 'oscar' }],
    ['nobody for what the worker does by itself', moved('waiting_approval'), undefined],
  ])('names %s as the actor', (_who, event, user) => {
    expect(exported(event).actor.user).toEqual(user);
  });

  it('lists the run and the targets of its writes', () => {
    const event = { type: 'write.intended', step: 'a', receiptKey: 'k', tool: 't', requestHash: 'h' } as const;
    expect(exported({ ...event, target: 'github:octo-org/payments#7' }).resources).toEqual([
      { type: 'run', uid: 'run_00000001', name: 'triage' },
      { type: 'target', uid: 'github:octo-org/payments#7' },
    ]);
  });

  it.each<[string, CommitEvent, number, number]>([
    ['a step that succeeded', { type: 'step.succeeded', step: 'a', index: 0, outputHash: 'c' }, 1, 1],
    ['a step that failed', { type: 'step.failed', step: 'a', index: 0, error }, 2, 2],
    ['a run that failed', { ...moved('failed_terminal'), error } as CommitEvent, 3, 2],
    ['a run that timed out', { ...moved('timed_out'), error } as CommitEvent, 3, 2],
    ['a run that needs a human', { ...moved('needs_human'), error } as CommitEvent, 4, 2],
    [
      'a denied write',
      {
        type: 'policy.decided',
        step: 'a',
        index: 0,
        tool: 't',
        target: 'x',
        verdict: 'deny',
        policyHash: 'p',
        policies: [],
        reasons: [],
        actionHash: 'h',
      },
      3,
      2,
    ],
  ])('has the severity of %s', (_what, event, severity, status) => {
    expect(exported(event)).toMatchObject({ severity_id: severity, status_id: status });
  });

  it('has the code of an error, not its text', () => {
    expect(exported({ type: 'step.failed', step: 'a', index: 0, error })).toMatchObject({
      status_code: 'TARGET_REFUSED',
    });
  });
});
