import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recordedError } from '../../lambdas/run/errors.ts';
import { later } from '../../lambdas/run/lease.ts';
import { ACTIVE_STATUSES, type Run, RunStatus, TERMINAL_STATUSES } from '../../lambdas/run/run.ts';
import { transition } from '../../lambdas/run/statuses/transitions.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { accepted } from '../fakes/story.ts';

const SEED = 20_260_102;
const AT = later(STORY_BEGINS_AT, 1_234);
const BY = { at: AT, initiator: 'user', actor: 'olivia' } as const;
const STATUSES = [...RunStatus.options];

/** The table of the life cycle, written out by hand: what is not here must be refused. */
const TABLE: Record<string, string> = {
  queued: 'enriching canceled failed_terminal timed_out',
  enriching: 'ready canceled failed_terminal timed_out',
  ready: 'running canceled failed_terminal timed_out',
  running:
    'waiting_approval waiting_external failed_retryable paused rolling_back succeeded failed_terminal needs_human timed_out canceled',
  failed_retryable: 'running paused rolling_back failed_terminal timed_out canceled',
  waiting_approval: 'running paused rolling_back succeeded failed_terminal canceled',
  waiting_external: 'running succeeded failed_terminal timed_out canceled',
  paused: 'running rolling_back failed_terminal canceled',
  rolling_back: 'failed_terminal canceled needs_human',
  succeeded: '',
  failed_terminal: '',
  needs_human: '',
  timed_out: '',
  canceled: '',
};

function runIn(status: RunStatus): Run {
  const { run } = accepted();
  if ((ACTIVE_STATUSES as readonly string[]).includes(status)) return { ...run, status } as Run;
  const { dueAt: _none, ...facts } = run;
  return { ...facts, status, completedAt: AT, durationMs: 0 } as Run;
}

const isTerminal = (status: string) => (TERMINAL_STATUSES as readonly string[]).includes(status);
const follows = (from: string, to: string) => (TABLE[from] ?? '').split(' ').includes(to);
const PAIRS = STATUSES.flatMap((from) => STATUSES.map((to) => [from, to] as const));

describe('the table of transitions', () => {
  it('knows every status', () => {
    expect(Object.keys(TABLE).sort()).toEqual([...STATUSES].sort());
  });

  it.each(PAIRS.filter(([from, to]) => follows(from, to)))('allows %s → %s', (from, to) => {
    const moved = transition(runIn(from), to, BY);
    expect(moved).toMatchObject({
      ok: true,
      run: { status: to },
      event: { type: 'run.status_changed', from, to, initiator: 'user', actor: 'olivia' },
    });
  });

  it('refuses every other pair, and says whether the run had ended', () => {
    const others = PAIRS.filter(([from, to]) => !follows(from, to));
    const allowed = Object.values(TABLE).join(' ').split(' ').filter(Boolean);
    expect(others).toHaveLength(STATUSES.length ** 2 - allowed.length);
    for (const [from, to] of others) {
      const code = isTerminal(from) ? 'RUN_TERMINAL_STATE' : 'RUN_INVALID_TRANSITION';
      expect([from, to, transition(runIn(from), to, BY)]).toMatchObject([from, to, { ok: false, refusal: { code } }]);
    }
  });
});

describe('a transition', () => {
  it('changes neither the run it was given nor anything but the status', () => {
    const run = runIn('queued');
    const copy = structuredClone(run);
    const moved = transition(run, 'enriching', BY);
    expect(run).toEqual(copy);
    expect(moved).toMatchObject({ run: { ...copy, status: 'enriching' } });
  });

  it('to a terminal status records time, duration and error, and leaves nothing due', () => {
    const error = recordedError('TARGET_REFUSED', 'no');
    const moved = transition(runIn('running'), 'failed_terminal', { ...BY, reason: 'because' }, error);
    expect(moved).toMatchObject({
      run: { completedAt: AT, durationMs: 1_234, error },
      event: { reason: 'because', error },
    });
    expect(moved.ok && moved.run).not.toHaveProperty('dueAt');
  });

  it('never reports a negative duration, though clocks differ', () => {
    const moved = transition(runIn('queued'), 'canceled', { ...BY, at: later(STORY_BEGINS_AT, -5_000) });
    expect(moved).toMatchObject({ run: { durationMs: 0 } });
  });

  it('in any sequence stays within the table, and a terminal status is final', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...STATUSES), { maxLength: 40 }), (wanted) => {
        let run: Run = runIn('queued');
        for (const to of wanted) {
          const before = structuredClone(run);
          const moved = transition(run, to, BY);
          expect(moved.ok).toBe(follows(before.status, to));
          if (moved.ok) run = moved.run;
          else expect(run).toEqual(before);
          expect('completedAt' in run && 'durationMs' in run).toBe(isTerminal(run.status));
          expect('dueAt' in run).toBe(!isTerminal(run.status));
        }
      }),
      { seed: SEED, numRuns: 500 },
    );
  });
});
