import type { RecordedFields } from './replay.ts';

/** What each event tells of the run and its trigger. */
export const RUN_EVENTS: RecordedFields = {
  'run.accepted': ({ run, trigger }, { automation, workflow, source, event, key, triggerHash }, { at, seq }) => {
    if (seq !== 1) return;
    Object.assign(run, { automation, workflow, trigger: { source, event, key }, createdAt: at });
    Object.assign(trigger, { source, event, receivedAt: at, payload: { sha256: triggerHash } });
  },
  'run.enriched': ({ run }, _event, { at }) => {
    run.startedAt = at;
  },
  'run.status_changed': ({ run }, { to, actor, error }, { at }) => {
    const durationMs = Math.max(0, Date.parse(at) - Date.parse(String(run.createdAt)));
    Object.assign(run, { status: to, error, completedAt: at, durationMs });
    if (to === 'rolling_back') run.rollback = { endsAs: error ? 'failed_terminal' : 'canceled', actor, at, error };
  },
  'run.resumed': ({ run }) => {
    run.resumeCount = Number(run.resumeCount ?? 0) + 1;
  },
  'write.compensated': ({ run }, { step, receiptKey, outcome, reason }) => {
    const before = Array.isArray(run.compensation) ? run.compensation : [];
    run.compensation = [...before, { step, receiptKey, outcome, reason }];
  },
};
