import Alert from '@cloudscape-design/components/alert';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import type { ResponseFrom } from '../../client/api-client.ts';
import { nameOf } from '../../lambdas/approval/texts/known-names.ts';
import { requirementText } from '../../lambdas/run/events/requirement-text.ts';
import { Copyable } from '../parts/copyable.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';

export type Plan = ResponseFrom<'POST /api/v1/workflows/simulate'>;
type PlannedStep = Plan['steps'][number];
type PlannedCall = Extract<PlannedStep, { kind: 'call' }>;

const OUTCOMES = {
  runs: { type: 'success', text: 'The run would make all its writes without an approval.' },
  needs_approval: { type: 'info', text: 'The run would wait for approval.' },
  denied: { type: 'error', text: 'Policy would deny a write, and the run would fail.' },
  fails: { type: 'error', text: 'The run would fail.' },
} as const;

/** What a run would do, step by step. */
export function PlanView({ plan }: { plan: Plan }) {
  const { outcome, writes, warnings, steps, planHash, environment, automation } = plan;
  const { type, text } = OUTCOMES[outcome];
  return (
    <section className="plan" aria-label="Plan">
      <Alert type={type}>
        {text} {writes.planned === 1 ? '1 write' : `${writes.planned} writes`}
        {writes.max !== null && ` of at most ${writes.max}`}, as <UntrustedText text={automation} /> in {environment}.
      </Alert>
      {warnings.map((warning) => (
        <Alert key={warning} type="warning">
          <UntrustedText text={warning} max={1_000} />
        </Alert>
      ))}
      <ol className="plan-steps">
        {steps.map((step) => (
          <li key={step.id} className={step.reached ? undefined : 'secondary'}>
            <strong>
              <UntrustedText text={step.id} />
            </strong>{' '}
            <UntrustedText text={step.tool} />
            {step.conditional && ' (if its condition is true)'}
            {!step.reached && ' (not reached)'}
            <StepBody step={step} />
          </li>
        ))}
      </ol>
      <p className="secondary">
        Hash of the plan: <Copyable text={planHash} label="the hash of the plan" />
      </p>
    </section>
  );
}

function StepBody({ step }: { step: PlannedStep }) {
  switch (step.kind) {
    case 'skipped':
      return <p>Skipped: its condition is false.</p>;
    case 'inner':
      return null;
    case 'failing':
      return (
        <p>
          <StatusIndicator type="error">Fails</StatusIndicator>: {step.error.code}:{' '}
          <UntrustedText text={step.error.message} max={1_000} />
        </p>
      );
    case 'gate':
      return (
        <p>
          <StatusIndicator type="pending">Asks for approval</StatusIndicator> by{' '}
          <UntrustedText text={requirementText(step.gate)} />
        </p>
      );
    case 'call':
      return <Call call={step} />;
  }
}

function Call({ call }: { call: PlannedCall }) {
  const { effect, target, madeBy, unread, decision, provisional } = call;
  if (madeBy) {
    const by = 'runId' in madeBy ? `run ${madeBy.runId}` : `step ${madeBy.step}`;
    return <p>Nothing is written: {by} has made the identical write.</p>;
  }
  return (
    <>
      <p>
        {effect === 'read' ? 'Reads' : 'Writes'} <UntrustedText text={target} max={200} />. <Verdict call={call} />
        {decision.reasons.length > 0 && (
          <span className="secondary">
            {' '}
            <UntrustedText text={decision.reasons.join('; ')} max={600} />
          </span>
        )}
      </p>
      {effect !== 'read' && <Changes call={call} />}
      {provisional && <p className="secondary">Some values are known only when the run reaches the step.</p>}
      {unread !== null && (
        <p className="secondary">
          The target was not read: <UntrustedText text={unread} max={600} />
        </p>
      )}
    </>
  );
}

function Verdict({ call: { outcome, gate, coveredBy } }: { call: PlannedCall }) {
  if (outcome === 'denied') return <StatusIndicator type="error">Denied by policy.</StatusIndicator>;
  if (coveredBy !== null) return <>The approval of {coveredBy} covers it.</>;
  if (outcome === 'runs' || !gate) return <StatusIndicator type="success">Allowed.</StatusIndicator>;
  return (
    <StatusIndicator type="pending">
      Needs approval by <UntrustedText text={requirementText(gate)} />.
    </StatusIndicator>
  );
}

function Changes({ call: { before, after, fields, names } }: { call: PlannedCall }) {
  const text = (field: string, value: unknown): string => {
    const known = nameOf(names, field, value);
    const shown = typeof value === 'string' ? value : JSON.stringify(value);
    return known === undefined ? (shown ?? 'nothing') : `${known} (${shown})`;
  };
  return (
    <table className="grid">
      <thead>
        <tr>
          <th scope="col">Field</th>
          <th scope="col">Before</th>
          <th scope="col">After</th>
        </tr>
      </thead>
      <tbody>
        {Object.entries(after ?? fields).map(([field, value]) => (
          <tr key={field}>
            <th scope="row">
              <UntrustedText text={field} />
            </th>
            <td>{before ? <UntrustedText text={text(field, before[field])} lines="many" /> : 'not known'}</td>
            <td>
              <UntrustedText text={text(field, value)} lines="many" />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
