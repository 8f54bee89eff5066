import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { lazy, Suspense } from 'react';
import { Link } from 'wouter';
import type { Receipt, Step, WholeRun } from '../data/run.ts';
import { Copyable } from '../parts/copyable.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { SessionView } from './session.tsx';
import { stateOf } from './step-state.ts';
import { Value } from './value.tsx';

const Output = lazy(() => import('./output.tsx'));

/** One step: what it was given, what policy said, what it wrote, who decided, and what came back. */
export function StepDetail({ whole, step }: { whole: WholeRun; step: Step }) {
  const { run, receipts, approvals } = whole;
  const { type, text } = stateOf(step);
  const receipt = receipts.find(({ key }) => 'receiptKey' in step && key === step.receiptKey);
  const asked = approvals.filter(({ stepId }) => stepId === step.id);
  return (
    <Container
      header={
        <Header variant="h2" description={<UntrustedText text={step.tool} />}>
          Step {step.index + 1}: <UntrustedText text={step.id} max={80} />
        </Header>
      }
    >
      <div className="step-detail">
        <p className="facts">
          <StatusIndicator type={type}>{text}</StatusIndicator>
          {'startedAt' in step && step.startedAt !== undefined && (
            <span>
              started <PointInTime at={step.startedAt} />
            </span>
          )}
          {'completedAt' in step && (
            <span>
              ended <PointInTime at={step.completedAt} />
            </span>
          )}
          {'retryAt' in step && step.flag === undefined && (
            <span>
              tries again <PointInTime at={step.retryAt} />
            </span>
          )}
          {'assigned' in step && step.assigned && (
            <span>
              on agent <UntrustedText text={step.assigned.agentName} max={80} />, profile {step.assigned.profile}
            </span>
          )}
        </p>
        {'error' in step && (
          <p>
            <strong className="overdue">{step.error.code}</strong>{' '}
            <UntrustedText text={step.error.message} lines="many" max={1_000} />
          </p>
        )}
        {'awaits' in step && step.awaits.kind !== 'session' && <Value label="Waits for" value={step.awaits} />}
        {'session' in step && step.session && <SessionView run={run} step={step} session={step.session} />}
        {asked.map(({ approvalId, status, requestedAt }) => (
          <p key={approvalId}>
            <Link href={`/approvals/${encodeURIComponent(approvalId)}`}>Approval</Link>: {status}, requested{' '}
            <PointInTime at={requestedAt} />
          </p>
        ))}
        {'assigned' in step && step.assigned && (
          <Suspense fallback={<p>Loading the output …</p>}>
            <Output runId={run.runId} step={step} />
          </Suspense>
        )}
        {receipt && <ReceiptView receipt={receipt} />}
        {'input' in step && step.input !== undefined && <Value label="Input" value={step.input} />}
        {'output' in step && <Value label="Output" value={step.output} />}
        {'governed' in step && step.governed && <Value label="Policy" value={step.governed} isOpen={false} />}
        {step.status === 'pending' && <p>The run has not reached this step.</p>}
      </div>
    </Container>
  );
}

/** The record of a write: where, what was there before, what the target returned, and how to undo it. */
function ReceiptView({ receipt }: { receipt: Receipt }) {
  return (
    <section className="receipt">
      <h3>
        {receipt.effect === 'read' ? 'Read' : 'Receipt of the write'}: {receipt.outcome}
      </h3>
      <dl className="id-list">
        <dt>Target</dt>
        <dd>
          <Copyable text={receipt.target} label="the target" />
        </dd>
        <dt>Fields</dt>
        <dd>
          <UntrustedText text={receipt.fields.join(', ') || 'none'} />
        </dd>
        <dt>Key</dt>
        <dd>
          <Copyable text={receipt.key} label="the key" />
        </dd>
      </dl>
      {'recovered' in receipt && receipt.recovered && (
        <p>The response was lost. The write was found at the target by its mark and not made again.</p>
      )}
      {'before' in receipt && receipt.before !== undefined && (
        <Value label="Before" value={receipt.before} isOpen={false} />
      )}
      {'response' in receipt && <Value label="The target returned" value={receipt.response} isOpen={false} />}
      {'reversal' in receipt && receipt.reversal !== undefined && (
        <Value label="How to undo it" value={receipt.reversal} isOpen={false} />
      )}
    </section>
  );
}
