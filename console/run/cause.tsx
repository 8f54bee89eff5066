import Alert from '@cloudscape-design/components/alert';
import { Link } from 'wouter';
import type { Step, WholeRun } from '../data/run.ts';
import { CommandLine } from '../parts/copyable.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { CORRECT_FIRST } from './correct-first.ts';
import { LABELS } from './perform-action.ts';
import { Value } from './value.tsx';

/** Where a failed run opens: the error, what the step was given, what the target returned, and what to do. */
export function Cause({ whole: { run, receipts }, step }: { whole: WholeRun; step: Step }) {
  const error = 'error' in step ? step.error : run.error;
  const receipt = receipts.find(({ key }) => 'receiptKey' in step && key === step.receiptKey);
  const open = run.actions.filter(({ may }) => may).map(({ action }) => `“${LABELS[action]}”`);
  const first = error && CORRECT_FIRST[error.code];
  if (step.status === 'failed_retryable' && step.flag !== undefined) return <Held flag={step.flag} step={step} />;
  return (
    <Alert
      type={step.status === 'failed_terminal' ? 'error' : 'warning'}
      header={`Step ${step.id} failed: ${error?.code}`}
    >
      <p>
        <UntrustedText text={error?.message ?? ''} lines="many" max={1_000} />
      </p>
      {'input' in step && step.input !== undefined && <Value label="It was given" value={step.input} isOpen={false} />}
      {receipt && 'response' in receipt && (
        <Value label="The target returned" value={receipt.response} isOpen={false} />
      )}
      {receipt?.outcome === 'unknown' && (
        <p>
          <b>Nobody knows whether the write was made.</b> Check <UntrustedText text={receipt.target} max={200} />, then
          resolve the run.
        </p>
      )}
      {first && (
        <p>
          What to do first: {first.text} {first.page && <Link href={first.page[1]}>{first.page[0]}</Link>}
        </p>
      )}
      <p>
        {open.length > 0
          ? `${first ? 'Then' : 'What to do'}: ${open.join(', ')}. “What you can do” explains each action.`
          : 'Your role cannot change this run.'}
      </p>
    </Alert>
  );
}

/** Nothing is wrong: the step continues by itself. */
function Held({ flag, step }: { flag: string; step: Step & { status: 'failed_retryable' } }) {
  return (
    <Alert type="warning" header={`Step ${step.id} waits: ${flag} is off`}>
      <p>
        <UntrustedText text={step.error.message} lines="many" max={1_000} />
      </p>
      <p>
        What to do: an owner or admin switches it on in the <Link href="/settings">settings</Link>. The run then
        continues within three minutes, without another approval.
      </p>
      <CommandLine command={`countersign settings set features.${flag}=true`} />
    </Alert>
  );
}
