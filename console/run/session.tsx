import StatusIndicator, { type StatusIndicatorProps } from '@cloudscape-design/components/status-indicator';
import { Link } from 'wouter';
import type { ResponseFrom } from '../../client/api-client.ts';
import { useLive } from '../data/live.ts';
import type { RunDetail, Step } from '../data/run.ts';
import { PointInTime } from '../parts/point-in-time.tsx';
import { Problem } from '../parts/problem.tsx';
import { hasEnded } from '../parts/run-status.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';

type Session = NonNullable<Extract<Step, { session?: unknown }>['session']>;
type Action = ResponseFrom<'GET /api/v1/runs/{id}/actions'>['actions'][number];

/** The session of a step: where it runs, when it was last seen, what it reported, and what it proposed. */
export function SessionView({ run, step, session }: { run: RunDetail; step: Step; session: Session }) {
  const { configuration, at, startedAt, seenAt, actions, actionsMax, refused, completion } = session;
  const summary = summaryOf(step);
  return (
    <section className="receipt" aria-label="Session">
      <h3>
        Session: <span>{stateOf(step, session)}</span>
      </h3>
      <dl className="id-list">
        <dt>Configuration</dt>
        <dd>
          <UntrustedText text={configuration} max={63} />
        </dd>
        <dt>Runs at</dt>
        <dd>
          {session.isCommand && (
            <Link href={`/runs/${encodeURIComponent(session.sessionId)}`}>An agent, as a command</Link>
          )}
          {at && <UntrustedText text={placeOf(at)} max={300} />}
        </dd>
        <dt>Started</dt>
        <dd>
          <PointInTime at={startedAt} />
        </dd>
        <dt>Last activity</dt>
        <dd>
          <PointInTime at={seenAt} />
        </dd>
        {step.status === 'waiting_external' && (
          <>
            <dt>Must complete before</dt>
            <dd>
              <PointInTime at={step.awaits.until} />
            </dd>
          </>
        )}
        {completion && (
          <>
            <dt>Completed</dt>
            <dd>
              <PointInTime at={completion.at} />: {completion.outcome.replace('_', ' ')}
            </dd>
          </>
        )}
        {summary !== undefined && (
          <>
            <dt>Summary</dt>
            <dd>
              <UntrustedText text={summary} lines="many" max={4_000} />
            </dd>
          </>
        )}
        <dt>Actions</dt>
        <dd>
          {actions.length} of at most {actionsMax}
          {refused > 0 && `; ${refused} more refused`}
        </dd>
      </dl>
      {actions.length > 0 && <Actions run={run} step={step} />}
    </section>
  );
}

const placeOf = ({ url, connection }: NonNullable<Session['at']>): string => `A2A, ${url}, connection ${connection}`;

function stateOf(step: Step, { completion }: Session): string {
  if (completion) return 'completed';
  if (step.status === 'waiting_external') return 'at work';
  if (!('error' in step)) return 'ended with its run';
  return step.error.code === 'SESSION_TIMED_OUT' ? 'timed out' : 'lost';
}

/** What a session reported that did not succeed is the error of the step. */
function summaryOf(step: Step): string | undefined {
  const output = 'output' in step ? (step.output as { summary?: unknown } | null) : undefined;
  return typeof output?.summary === 'string' ? output.summary : undefined;
}

const STATES: Record<Action['status'], { type: StatusIndicatorProps.Type; text: string }> = {
  pending: { type: 'in-progress', text: 'Pending' },
  waiting_approval: { type: 'pending', text: 'Waits for approval' },
  succeeded: { type: 'success', text: 'Succeeded' },
  denied: { type: 'error', text: 'Denied' },
  failed: { type: 'error', text: 'Failed' },
  needs_human: { type: 'warning', text: 'Needs a person' },
  canceled: { type: 'stopped', text: 'Canceled' },
};
const OPEN: readonly Action['status'][] = ['pending', 'waiting_approval'];

/** Each is a run of its own, and may end after its session. */
function Actions({ run, step }: { run: RunDetail; step: Step }) {
  const request = { params: { id: run.runId }, query: { limit: '100' } };
  const { data, error, refetch } = useLive('GET /api/v1/runs/{id}/actions', request, { topic: 'tenant' });
  if (error && !data) return <Problem error={error} retry={refetch} />;
  const own = (data?.actions ?? []).filter(({ session }) => session?.step === step.id);
  const open = own.filter(({ status }) => OPEN.includes(status)).length;
  return (
    <>
      {hasEnded(run.status) && open > 0 && <p>{open} of its actions have not ended.</p>}
      <ul className="session-actions" aria-label="Actions of the session">
        {own.map(({ actionId, status, tool, target, approval }) => (
          <li key={actionId}>
            <StatusIndicator type={STATES[status].type}>{STATES[status].text}</StatusIndicator>{' '}
            <Link href={`/runs/${encodeURIComponent(actionId)}`}>
              <UntrustedText text={tool} max={100} />
            </Link>{' '}
            {target !== null && <UntrustedText text={target} max={200} />}{' '}
            {approval && <Link href={`/approvals/${encodeURIComponent(approval.approvalId)}`}>Show the approval</Link>}
          </li>
        ))}
      </ul>
    </>
  );
}
